"""What speaks for a rule, and pictures of it as plain values."""
