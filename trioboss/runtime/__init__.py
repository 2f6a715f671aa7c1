"""What joins actors and store for one boss.

opening        opens the server, the schema, the pools and the actors, in this order
lifecycle      the actors of a boss: how they are connected, started and stopped
adapter        the ports of the actors, on the store
listening      the listening connections of the listener
refusals       what a refused statement means to an actor
send_batching  sends at the same time share a transaction
"""
