"""The parts that all benchmarks share.

options           the command line
server            a Postgres of the benchmark's own, or the one of --dsn; a fresh database for each run
environment       machine, versions and settings: a figure without them cannot be read
meters            CPU time of our programs, of Postgres, and of all other processes; WAL
processes         programs that run beside the harness and exchange lines of JSON with it
proxy             a TCP proxy that breaks connections; the tests use it, too
queue_programs    queues that are run as programs: trioboss and its peers
runs              measurements that several benchmarks share: latency, sends, bulk, steady state
draining          the measurement of a drain
filling           databases with a backlog, a blocked key, an archive; claims from them
floor             what the same Postgres reaches without a queue
bare_connections  statements and connections without a queue, which `store` compares with
idling            what programs use that have nothing to do
percentiles       percentiles, and latencies free of coordinated omission
tables, plots     figures as Markdown and as SVG
report            prints, stores and draws what a command measured
summary           the small file of a published run
progress          one line on standard error for each step
"""
