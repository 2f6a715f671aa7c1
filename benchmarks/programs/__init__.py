"""Programs that the harness starts as processes of their own. They exchange lines of JSON with it (`protocol`).

protocol          the program's side of that exchange; standard library only, other queues' interpreters import it
blocking_psycopg  the floor: a table, two blocking psycopg programs and nothing else
compared          one measurement of `compare`, on whichever checkout the interpreter imports
idle_worker       a worker whose queues stay empty
profiled_worker   a worker that samples its own CPU, or records the steps of each job
sampler           the CPU samples of `profiled_worker`
waits             the waits of a job other than send to handler: retries, cron, cancellation, wait_for
"""
