"""The parts that join actors and store for one boss.

opening        opens the server, the schema, the pools and the actors, in this order
lifecycle      the actors of a boss: how they are connected, started and stopped
adapter        the ports of the actors, on the store and on the listening connection
send_batching  sends at the same time share a transaction
"""
