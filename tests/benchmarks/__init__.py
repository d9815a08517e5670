"""Measure the course and similar tools in one run, and report ratios: `make bench`. Tests assert none."""
