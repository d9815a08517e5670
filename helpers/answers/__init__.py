"""Find a learner's function, and all that it needs, in a notebook's cells or a kernel's history."""
