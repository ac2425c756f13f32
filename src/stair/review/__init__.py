"""A person judges the rules: the verdicts, the rows to look at, and the page that shows them."""
