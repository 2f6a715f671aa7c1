"""Questions to history, one function each: DataFrames in, a DataFrame out, and Spark computes it when it is used.

`jobs` has the columns of the table `archive`, `attempts` those of the table `attempt`: see pipeline/columns.py.
Durations are seconds.

times       expressions of time
attempts    all attempts, those of completed jobs included
ends        the last end of each job
hours       each queue in each hour
periods     hours joined to longer periods
rankings    hot keys, slow jobs, the cost of retries, dead letters
errors      errors by fingerprint
demand      arrivals and run times, for the queueing model
trace       attempts in the order of each key, for audits
violations  violations of the guarantees
"""
