"""Pictures for the README, drawn by the code from real runs: `python -m tests.pictures`."""
