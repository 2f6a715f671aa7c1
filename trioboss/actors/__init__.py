"""The actors: one file for each, and what they share. They use trio, but neither psycopg nor the store.

listener     receives notifications, keeps the presence of the boss, polls now and then
router       passes notifications on to workers, completion waiters and services
worker       one `work` call: slots, dispatchers, and the order in which they stop
worker_settings  the arguments of `work`
dispatcher   one queue: claims jobs and settles their outcomes, as its machine decides
completer    the outcomes of one queue that wait to be settled
slots        runs jobs in a fixed number of long-lived tasks, with a buffer in front of them
running      one attempt: carries out what its machine decides
leased_job   the job that a handler gets, and what the handler can do with its lease
runner       one call of a handler, and the outcome of what it does
middleware   functions around every call of a handler
handlers     handlers of other kinds: plain functions in threads, asyncio functions
wrapped_jobs  the job as handlers of other kinds get it
heartbeat    renews the lease of each running job, and cancels the job in time
checker      asks whether leases are still held
bulk_poller  one poll for the dispatchers of many queues
maintenance  rescues leases and prunes, for all bosses, in the one that leads
scheduler    fires the ticks of schedules
followers    notifies the followers of a job when it is claimed
monitor      counts jobs by state
supervisor   restarts actors that crash
reporter     the stream of events
doorbell     a wake-up that cannot be lost and cannot pile up
clock        the time of the database
ports        what the actors need from the outside
"""
