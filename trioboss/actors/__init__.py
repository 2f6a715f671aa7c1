"""The actors: one file for each, and what they share. They use trio, but neither psycopg nor the store.

The way of a job: a send (runtime/send_batching.py, store/sending.py) commits the job, and notifies. The *listener*
receives the notification, the *router* rings the doorbell of the *dispatcher* of that queue, and the dispatcher claims
(store/settle_and_claim.py), as machines/dispatch.py decides. *slots* has the claimed job in its buffer, and hands it to
a free slot; *runner* calls the handler. The outcome waits in the *completer*, and goes to the database with the next
claim.

A cancellation: cancel.sql notifies, the *router* passes that to the *worker*, the *lease_checker* asks the database
whether the lease is gone, machines/attempt.py decides, and *attempts* cancels the scope of the handler.

listener     receives notifications, keeps the presence of the boss, polls now and then
router       passes notifications on to workers, completion waiters and services
worker       one `work` call: slots, dispatchers, and the order in which they stop
worker_settings  the arguments of `work`
worker_statistics  what a worker does and has done, in numbers
dispatcher   one queue: claims jobs and settles their outcomes, as its machine decides
completer    the outcomes of one queue that wait to be settled
slots        runs jobs in a fixed number of long-lived tasks, with a buffer in front of them
attempts     the leased attempts: each carries out what its machine decides, and keeps its lease by a heartbeat
leased_job   the job that a handler gets, and what the handler can do with its lease
runner       one call of a handler, and the outcome of what it does
middleware   functions around every call of a handler
handlers     handlers of other kinds: plain functions in threads, asyncio functions
wrapped_jobs  the job as handlers of other kinds get it
lease_checker  asks whether leases are still held
bulk_poller  one poll for the dispatchers of many queues
maintenance  rescues leases and prunes, for all bosses, in the one that leads
scheduler    fires the ticks of schedules
followers    notifies the followers of a job when it is claimed
monitor      counts jobs by state
lag_monitor  keeps how late the event loop was, because handlers blocked it
reporter     the stream of events
actor        what every actor is built on: the doorbell that wakes it, the supervisor that restarts it
clock        the time of the database
ports        what the actors need from the outside
"""
