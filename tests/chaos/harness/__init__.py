"""The chaos run: kill, stop and cut off everything at once, then check that every promise held.

queues          the queues, and the checker's record of them
plan            how many jobs of which policies, how many faults of which kind; everything follows from one seed
journal         what each process records: each line is one `write` to an O_APPEND file, so it survives SIGKILL
producer        sends jobs, partly in transactions of its own
worker          a worker of `boss.work`
manual_worker   a worker that fetches and settles jobs itself
worker_process  starts a worker process again after it was killed
nemesis         owns the worker processes and causes the faults
server_faults   the faults of the server
small_disk      a disk that can be filled
standby         a standby that can be promoted
chaos_run       one run: a server, the nemesis and the producers, until every job has ended
history         what happened, as values
evidence        makes a history of the journals and the database
checker         finds violations in a history, independently of how it came about; its larger checks are in
explaining      reasons of ends and failures
lateness        times, where no fault is the reason of a delay
limits          what is allowed once
ordering        commits, priorities and keys
figures         counts what happened
command         the command line of `python -m tests.chaos`
"""
