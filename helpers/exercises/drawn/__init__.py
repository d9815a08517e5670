"""Exercises with drawn worlds, ready for the notebooks whose checks they will be; tests/checks tries them."""
