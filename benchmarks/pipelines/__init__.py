"""What `python -m benchmarks pipeline` measures, one module for each question."""
