"""Speed, accuracy and power, measured; run with ``python -m benchmarks``."""
