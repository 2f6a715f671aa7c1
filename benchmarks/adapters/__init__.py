"""Job queues that do the same work, each behind the few methods of `base.Adapter`, each in its own process.

catalogue    which queues, with which settings for which work, and what they promise
install      puts peers from PyPI and npm into folders of their own
base         the protocol; pacing and recording are the same for all, so an adapter has only calls of its queue
pacing       when to send
node         the same for queues written for Node
"""
