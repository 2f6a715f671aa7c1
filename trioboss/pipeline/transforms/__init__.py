"""Questions to history, one function each: DataFrames in, a DataFrame out, nothing computed before somebody looks.

`jobs` has the columns of the table `archive`, `attempts` those of the table `attempt`: see pipeline/columns.py.
Durations are seconds.
"""
