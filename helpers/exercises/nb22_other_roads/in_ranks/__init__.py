"""What ranks import for notebook 22: one module for each exercise that runs something around an answer."""
