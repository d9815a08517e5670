"""What a class's results are worth: decided after grading, from records, which stay as they are.

policy.toml --policy--> Policy ------------,
overrides.csv --overrides--> Override, ... -+--counted--> Counted, ... --reports.standing--> Standing
Record, ... -------------------------------'
grades.json (of the last run) --changes--> changes.csv, grades.json
"""
