"""The exercises of notebook 15: a mesh, training on it, experts, a script with bugs, a plan."""
