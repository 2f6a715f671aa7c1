"""Everything breaks at once, and afterwards a checker asks whether the promises held.

plan       how many jobs of which policies, how many faults of which kind, all from one seed
journal    what each process writes down: one `write` to an O_APPEND file for each line survives SIGKILL
producer   sends jobs, also in transactions of its own; by_hand and worker run them
nemesis    keeps the workers, and kills, stops and cuts them off; proxy is the bad network between
conductor  starts all of these on a server of its own, and waits until every job has come to its end
history    what the journals and the database say, as values
checker    judges a history, and knows nothing of how it came about; figures counts what is worth telling
command    `python -m benchmarks chaos`
"""
