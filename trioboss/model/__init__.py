"""The values of trioboss and the rules between them: frozen, without I/O, and with the time as an argument.

job               a job as it is sent, and as it is read; its lease
answers           the answers to calls about jobs
ids               new ids: UUIDv7
job_context       the job whose handler is running, for log lines
handed_job        a job as a handler gets it
states            the states of a job, its readiness, and the tables of their transitions
statistics        a queue over time, warnings that were kept
batch             the results of the jobs of a batch
queue             a queue: its options, its row, its statistics
policy            the policies
schedule          a schedule; the checks of cron expressions and time zones
cron              the ticks of a cron expression in a time zone
recurrence        the ticks of a recurrence rule (RRULE) in a time zone
ticks             the ticks of any schedule: which are due, and which come next
payload           JSON that Postgres returns unchanged, or that is refused
decoding          the types that workers declare for the data of their jobs
structure         reads and writes JSON by annotations
texts             durations, numbers and foreign texts for people
described_error   errors as they are stored and logged
check             checks of one field, with an error that names it
option_names      names of options: the one that was meant by a name that does not exist
settle_and_claim  requests and answers between a dispatcher and the store
polling           the answers to a poll, and to a round of maintenance
deployment        what an app declares, and what has to change for it
observation       workers, attempts and backlogs as operators see them
explanation       the reason why a job is not running
"""
