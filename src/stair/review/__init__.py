"""The local page on which a person accepts or rejects rules."""
