"""Measured against peers, as ratios in one run: `make bench`. Never an assertion of a test."""
