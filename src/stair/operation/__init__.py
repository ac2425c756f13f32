"""Rules in use: how they do on new data, what is to be added, and what has changed."""
