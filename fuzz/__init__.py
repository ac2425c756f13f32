"""A differential fuzzer: draws tables, learns rules from them, and holds every answer against the
others. `python -m fuzz --help` says how to run it; docs/reliability.md says what is held."""
