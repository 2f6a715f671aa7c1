"""The parts of `python -m benchmarks pipeline`.

context    the Spark session, the server, and the JDBC driver for comparison
reading    reading history, beside Spark's JDBC source
writing    loading jobs, beside Spark's JDBC writer
beside     a worker's waits while history is exported on the same machine
reporting  reports and audits over a lake
lakes      exports in both formats, and changes of a lake
"""
