"""Compute a class's points after grading, from records that are not changed.

policy.toml --policy--> Policy ------------,
overrides.csv --overrides--> Override, ... -+--counted--> Counted, ... --reports.standing--> Standing
Record, ... -------------------------------'
grades.json (of the last run) --changes--> changes.csv, grades.json
"""
