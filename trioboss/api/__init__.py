"""The public interface, by subject. `Boss` is put together from the mixins; `SyncBoss` has the same methods.

boss      `open_boss` and `Boss`, for trio programs
connecting  the connection parameters of both
base      how Boss executes an operation: on its pool, or in the caller's transaction
queues    queues, schedules, subscriptions, the schema
sending   everything that creates jobs
jobs      fetching, settling, finding jobs
working   workers, middleware, completions
waiting   waiting for jobs, following one, events
handlers  the types of handlers, middleware and lifespans, and how they are checked
running_job  the job that a handler gets
tasks     the decorated functions of an App
app       `App`: workers and schedules that are declared beside their handlers
deploying  brings queues and schedules to what an app declares
observing  what operators ask, for the command line
new_jobs  the jobs of the sending methods, made from their arguments
sync      `SyncBoss`, for blocking programs
blocking  how SyncBoss executes an operation
"""
