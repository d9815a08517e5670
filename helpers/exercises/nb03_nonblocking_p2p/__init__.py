"""Exercises of notebook 03: transfers that are issued first and waited for later."""
