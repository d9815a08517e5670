"""A learner's function as source, with all that it needs: from a notebook's cells or a kernel's history."""
