"""The parts of `python -m benchmarks pipeline`.

context    the Spark session, the server, and the JDBC driver for comparison
reading    reading history, beside Spark's JDBC source
decoding   COPY and our decoding, beside ADBC
writing    loading jobs, beside Spark's JDBC writer
beside     a worker's waits while history is exported on the same machine
reporting  reports and audits over a lake, and reports of another checkout
lakes      exports in both formats, and changes of a lake
kills      kills in every phase of the commands that change a lake or a queue
phases     the phases, and the points at which a command is killed
killing    runs a command, and kills it at a point
checking   compares a lake with the history of its database
"""
