"""The parts of `python -m benchmarks compare`.

checkout   a checkout of trioboss, and how programs run on it
rows       what is measured: one row of the tables each
measuring  one measurement: a database, a program (`programs/compared.py`), and the meters
reporting  the measurements as tables
"""
