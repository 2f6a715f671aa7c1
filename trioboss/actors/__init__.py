"""Who acts: one file for each actor, and what they share. trio, but no psycopg, and no store.

listener     hears the channel, keeps presence, looks now and then
notification router  what was heard → who wants to know
dispatcher   one queue: asks for jobs when there may be some, settles what has ended
slots        runs jobs: a fixed number of long-lived tasks, and the buffer in front of them
runner       one job: whatever a handler does becomes one outcome
heartbeat    one active job: keeps its lease, stops it in time
worker       one `work` call: slots, dispatchers, and the order in which they stop
maintenance       for all bosses, by one of them: expiry, dead workers, retention, warnings
scheduler    cron
supervisor   restarts what crashes, or gives up
reporter     the stream of events
ports        what the actors need of the world
"""
