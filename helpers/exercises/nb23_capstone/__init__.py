"""The exercises of notebook 23: a mesh, training on it, a script with bugs, a plan."""
