"""What a rule is: clauses, rules, the schema they were learned with, and what they cover."""
