"""The documents, and what runs them, draws them and builds the site from them."""
