"""Label-inference attacks, and how they are scored."""
