"""The learner's whole vocabulary."""
