"""Prepare a class from the solved notebooks: slides, sessions, and a page about each exercise.

solved notebooks -> lesson -> slides, program, teacher_pages
"""
