"""Measures trioboss: `python -m benchmarks latency|throughput|growth|idle|faults|peers|profile|store|all`."""
