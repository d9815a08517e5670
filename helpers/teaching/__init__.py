"""Prepare a class from the solved notebooks: slides, sessions, and a page about each exercise.

solved notebooks -> lesson -> slides, program, teacher_pages

Modules:
    commands         the commands of `course` for preparing a class
    lesson           a notebook in parts
    slides           slides in one file
    reveal           the files of reveal.js
    program          the sessions of a class
    teacher_pages    pages about exercises
    common_mistakes  the usual wrong answers
    prose            a notebook's text as HTML
    pages            HTML from templates
"""
