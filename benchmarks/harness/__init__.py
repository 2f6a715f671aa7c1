"""What all questions share.

options      the command line
server       a Postgres of our own, or the one named by --dsn; fresh databases in it
environment  the machine, the versions, the settings: what a number was measured on
meters       CPU seconds of our processes, of Postgres, and of everybody else
processes    programs beside this one that speak lines of JSON
percentiles  latencies, counted from when a job should have been sent
tables       numbers as text; plots has them as SVG; report prints and keeps both
contenders   queues as programs; workloads and draining are the runs that several questions share
"""
