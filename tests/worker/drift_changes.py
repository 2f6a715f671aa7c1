"""Changes of a schema that are drift: for each the statement, and the finding of the doctor."""

import hashlib
from datetime import UTC, datetime, timedelta

ROLE = "drift_worker"
# A table of the history between the first and the last: tomorrow's, also if the day ends during the tests.
DAY = f"archive_{datetime.now(UTC) + timedelta(days=1):%Y%m%d}"
OWN = f"trioboss.j{hashlib.md5(b'own').hexdigest()}"  # the table of the queue `own`

# In groups that are made, found and repaired together: a comparison takes half a second. A change is in a group in
# which it hides none of the others.
GROUPS: list[dict[str, tuple[str, str]]] = [
    {
        "index": ("drop index trioboss.live_job_ready", "index live_job_ready of live_job is missing"),
        "disabled trigger of the common table": (
            "alter table trioboss.live_job_common disable trigger fill_in_job",
            "trigger fill_in_job of live_job_common was changed: enabled",
        ),
        "column": ("alter table trioboss.tick drop column fired_on", "column fired_on of tick is missing"),
        "default of a type of ours": (
            "alter table trioboss.queue alter retry_limit set default 5",
            "column retry_limit of queue was changed: default",
        ),
        "another's constraint": (
            "alter table trioboss.queue add constraint mine check (retry_limit < 3)",
            "constraint mine of queue is not one of trioboss: it refuses rows",
        ),
        "renamed table": (
            "alter table trioboss.schedule rename to planned",
            "table schedule is missing: it has the name planned",
        ),
        "option of a queue's own table": (
            f"alter table {OWN} reset (fillfactor)",
            f"option fillfactor of {OWN[9:]} is missing",
        ),
        "rights": (
            "grant select on trioboss.live_job to public",
            "everybody has SELECT on table live_job",
        ),
    },
    {
        "changed index": (
            "drop index trioboss.archive_id; create index archive_id on trioboss.archive (queue)",
            "index archive_id of archive was changed: definition",
        ),
        "disabled triggers of a queue's own table": (
            f"alter table {OWN} disable trigger all",
            f"trigger fill_in_job of {OWN[9:]} was changed: enabled",
        ),
        "column of queues": (
            "alter table trioboss.queue drop column warning_queue_size cascade",
            "column warning_queue_size of queue is missing",
        ),
        "default of the common table": (
            "alter table trioboss.live_job_common alter priority set default 5",
            "column priority of live_job_common was changed: default",
        ),
        "another's constraint on a queue's own table": (
            f"alter table {OWN} add constraint mine check (priority < 5)",
            f"constraint mine of {OWN[9:]} is not one of trioboss: it refuses rows",
        ),
        "detached common table": (
            "alter table trioboss.live_job detach partition trioboss.live_job_common",
            "table live_job_common was changed: bound, parent",
        ),
        "another's option": (
            "alter table trioboss.live_job_common set (autovacuum_enabled = false)",
            "option autovacuum_enabled of live_job_common was set",
        ),
        "rights on functions": (
            "grant execute on function trioboss.take_throttle_slot to public",
            "everybody has EXECUTE on function take_throttle_slot(queue text, key text, seconds trioboss.seconds, "
            "next boolean, moment timestamp with time zone, job uuid)",
        ),
    },
    {
        "invalid index": (
            "update pg_index set indisvalid = false where indexrelid = 'trioboss.throttle_until'::regclass",
            "index throttle_until of throttle was changed: valid",
        ),
        "another's trigger": (
            "create trigger mine after insert on trioboss.queue execute function trioboss.notify_queues_changed()",
            "trigger mine of queue is not one of trioboss: it runs in every statement",
        ),
        "column that others are computed from": (
            "alter table trioboss.queue drop column policy cascade",
            "column keyed of queue is missing",
        ),
        "type": (
            "alter table trioboss.load alter staged type int",
            "column staged of load was changed: type",
        ),
        "check of a domain": (
            "alter domain trioboss.seconds drop constraint seconds_check",
            "check seconds_check of seconds is missing",
        ),
        "history without its last resort": (
            "drop table trioboss.archive_default",
            "table archive_default is missing",
        ),
        "row security": (
            "alter table trioboss.queue enable row level security, force row level security",
            "table queue was changed: forced row security, row security",
        ),
    },
    {
        "invalid index of a partition": (
            "update pg_index set indisvalid = false "
            "where indexrelid = 'trioboss.live_job_common_queue_id_idx'::regclass",
            "index live_job_common_queue_id_idx of live_job_common is invalid: no statement uses it",
        ),
        "another's rule": (
            "create rule mine as on insert to trioboss.queue do instead nothing",
            "rule mine of queue is not one of trioboss: it changes statements",
        ),
        "renamed column": (
            "alter table trioboss.queue rename paused to stopped",
            "column paused of queue is missing: it has the name stopped",
        ),
        "type of ours": (
            "alter table trioboss.tick alter fired_on type timestamptz",
            "column fired_on of tick was changed: type",
        ),
        "another's check of a domain": (
            "alter domain trioboss.seconds add constraint mine check (value < 5e8)",
            "check mine of seconds is not one of trioboss: it refuses values",
        ),
        "renamed table of a day": (f"alter table trioboss.{DAY} rename to today", f"table {DAY} is missing"),
        "row that is always there": ("delete from trioboss.lock_seed", "table lock_seed is empty"),
    },
    {
        "another's unique index": (
            "create unique index mine on trioboss.schedule (cron)",
            "index mine of schedule is not one of trioboss: it refuses rows",
        ),
        "function": (
            "create or replace function trioboss.make_id() returns uuid language sql as 'select gen_random_uuid()'",
            "function make_id() was changed: body, parallel",
        ),
        "renamed column of a key": (
            "alter table trioboss.tick rename queue to which",
            "column queue of tick is missing: it has the name which",
        ),
        "collation": (
            "alter table trioboss.deployment alter digest type text",
            "column digest of deployment was changed: type",
        ),
        "changed domain": (
            "alter domain trioboss.seconds set default 5",
            "type seconds was changed: default",
        ),
        "table of a queue": (f"drop table {OWN}", f"table {OWN[9:]} is missing"),
        "sequence": ("drop sequence trioboss.job_seq cascade", "sequence job_seq is missing"),
    },
    {
        "trigger": (
            "drop trigger queues_changed on trioboss.queue",
            "trigger queues_changed of queue is missing",
        ),
        "missing function": (
            "drop function trioboss.notify(text) cascade",
            "function notify(payload text) is missing",
        ),
        "renamed column and another's": (
            "alter table trioboss.queue rename paused to stopped; alter table trioboss.queue add mine text",
            "column paused of queue is missing",
        ),
        "not null": (
            "alter table trioboss.load alter staged drop not null",
            "column staged of load was changed: not null",
        ),
        "table": ("drop table trioboss.subscription", "table subscription is missing"),
        "detached table of a queue": (
            f"alter table trioboss.live_job detach partition {OWN}",
            f"table {OWN[9:]} was changed: bound, parent",
        ),
        "changed sequence": (
            "alter sequence trioboss.job_seq cycle cache 20 increment 2",
            "sequence job_seq was changed: cache, cycle, increment by",
        ),
    },
    {
        "disabled trigger": (
            "alter table trioboss.queue disable trigger renew_revision",
            "trigger renew_revision of queue was changed: enabled",
        ),
        "missing function with a type of ours": (
            "drop function trioboss.take_throttle_slot",
            "function take_throttle_slot(queue text, key text, seconds trioboss.seconds, next boolean, "
            "moment timestamp with time zone, job uuid) is missing",
        ),
        "another's column": (
            "alter table trioboss.subscription add mine int not null",
            "column mine of subscription is not one of trioboss: it must have a value",
        ),
        "constraint": (
            "alter table trioboss.schedule drop constraint schedule_missed_check",
            "constraint schedule_missed_check of schedule is missing",
        ),
        "versions": ("delete from trioboss.version", "table version is empty"),
        "detached table of a queue without an index": (
            f"alter table trioboss.live_job detach partition {OWN}; drop index {OWN}_queue_id_idx",
            f"table {OWN[9:]} was changed: bound, parent",
        ),
        "owner": (f"alter table trioboss.queue owner to {ROLE}", "table queue was changed: owner"),
    },
    {
        "disabled foreign keys": (
            "alter table trioboss.queue disable trigger all",
            "table queue was changed: constraint triggers",
        ),
        "function that acts for its owner": (
            "alter function trioboss.create_queue(text, jsonb) security definer",
            "function create_queue(name text, options jsonb) was changed: security definer",
        ),
        "default": (
            "alter table trioboss.queue alter paused drop default",
            "column paused of queue was changed: default",
        ),
        "foreign key": (
            "alter table trioboss.queue drop constraint queue_dead_letter_fkey",
            "constraint queue_dead_letter_fkey of queue is missing",
        ),
        "unlogged table": (
            "alter table trioboss.subscription set unlogged",
            "table subscription was changed: unlogged",
        ),
        "option": (
            "alter table trioboss.live_job_common set (fillfactor = 100)",
            "option fillfactor of live_job_common was changed: value",
        ),
        "owner of a function": (
            f"alter function trioboss.add_days(date, integer) owner to {ROLE}",
            "function add_days(today date, ahead integer) was changed: owner",
        ),
    },
    {
        "table of queues": ("drop table trioboss.queue cascade", "table queue is missing"),
    },
    {
        "table of jobs": ("drop table trioboss.live_job cascade", "table live_job is missing"),
    },
    {
        "view": ("drop view trioboss.all_jobs cascade", "view all_jobs is missing"),
        "renamed common table": (
            "alter table trioboss.live_job_common rename to jobs",
            "table live_job_common is missing: it has the name jobs",
        ),
    },
    {
        "enumeration": ("drop type trioboss.policy cascade", "type policy is missing"),
        "table of a day": (f"drop table trioboss.{DAY}", f"table {DAY} is missing"),
    },
    {
        "renamed column by which history is divided": (
            "alter table trioboss.archive rename completed_on to ended",
            "column completed_on of archive is missing: it has the name ended",
        ),
        "key that foreign keys need": (
            "alter table trioboss.queue drop constraint queue_pkey cascade",
            "constraint queue_pkey of queue is missing",
        ),
    },
    {
        "table of locks": ("drop table trioboss.lock_seed", "table lock_seed is missing"),
        "table of versions": ("drop table trioboss.version", "table version is missing"),
        "table with columns of later versions": (
            "drop table trioboss.schedule cascade",
            "table schedule is missing",
        ),
        "common table": ("drop table trioboss.live_job_common", "table live_job_common is missing"),
    },
]
