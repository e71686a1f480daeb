"""What is built on the core: each folder is whole, and the core runs without it."""
