"""The commands: each is a function, a `trioboss pipeline` command, and a script that spark-submit takes.

archive   exports history to a lake
compact   joins the small files of a lake, and drops its oldest days
erase     erases jobs in a lake and in Postgres
report    what the queues did
audit     checks the guarantees over history
capacity  how many slots each queue needs
all       report, audit and capacity
load      loads files or a table into a queue
synth     makes a history up
"""
