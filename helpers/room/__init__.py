"""For the person in front: slides, programs for a day or a semester, and what to say about each exercise."""
