"""Benchmarks of trioboss. `python -m benchmarks -h` lists the commands, README.md explains them.

latency, throughput, growth, idle, faults, peers, profile, store   one command each: `measure(server, options)`
compare          two checkouts of trioboss in the same run; its parts are in comparing/
pipeline         reading, loading and exporting history with Spark; its parts are in pipelines/
publish          the small summary of a stored run
harness          what all commands share
adapters         trioboss and other queues behind one protocol
peer_comparison  which other queues, at which settings, on which work, and how `peers` compares them
programs         processes that the harness starts
"""
