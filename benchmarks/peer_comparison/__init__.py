"""How `python -m benchmarks peers` compares trioboss with other queues.

catalogue   which queues, at which settings for which work, and what they promise
install     installs the peers from PyPI and npm into folders of their own
workloads   the work that all queues are given
results     the runs of one workload, by queue
targets     the ratios that trioboss is to reach
reporting   results as tables and plots
"""
