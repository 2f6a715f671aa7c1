"""Large tables for the statements of the pages, and the limits of the pages in proportion to them."""

import os

from trioboss.dashboard import queries

SCALE = int(os.environ.get("TRIOBOSS_PAGE_ROWS", "40000"))


def scaled(limit):
    """A limit of the pages, in proportion to the tables."""
    return max(round(limit * min(1, SCALE / 1_000_000)), 1)


BUDGET, COUNT, OVERVIEW = scaled(queries.BUDGET), scaled(10_000) + 1, scaled(1_000) + 1
NOTES, ERRORS = scaled(4_000_000), scaled(100_000_000)
WORKERS, SCHEDULES = 150 + SCALE // 1000, 60 + SCALE // 1000
AGES = 100 * min(SCALE // 100, 1_000)  # the overview reads the ages of a thousand jobs of each queue
# Rows of the tables of jobs that a statement may read beside the limits: of queues, workers and days.
SOME = 200

# Ids of one second after the other, as senders make them; every hundredth archived job has failed. Errors have stacks
# of 4 to 10 KB, as those of programs do: those of jobs that failed, that wait for their retry or that block their key,
# and of dead letters.
LOAD = """
    CREATE FUNCTION pg_temp.error(n bigint) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
        SELECT jsonb_build_object('name', 'E' || n % 700, 'message', 'broken', 'stack', string_agg(
            '  File "/srv/app/lib/' || md5(n::text || line) || '.py", line 1, in run' || chr(10)
            || '    return await self.call(*args)' || chr(10), ''))
        FROM generate_series(1, 40 + n % 60) line $$;
    CREATE FUNCTION pg_temp.id_at(seconds float8) RETURNS uuid LANGUAGE sql VOLATILE AS $$
        SELECT (lpad(to_hex(((extract(epoch FROM now()) - seconds) * 1000)::bigint), 12, '0') || '7'
                || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid $$;
    INSERT INTO trioboss.queue (name, policy) VALUES
        ('ready', 'standard'), ('later', 'standard'), ('keys', 'key_strict_fifo'), ('dead', 'standard'),
        ('ended', 'standard'), ('retry', 'standard');
    UPDATE trioboss.queue SET dead_letter = 'dead' WHERE name = 'ended';
    INSERT INTO trioboss.live_job (queue, readiness, priority, id)
    SELECT 'ready', 'ready', n % 3, pg_temp.id_at(n) FROM generate_series(1, {rows} / 2) n;
    INSERT INTO trioboss.live_job (queue, readiness, start_after, id)
    SELECT 'later', 'deferred', now() + n * interval '1 s', pg_temp.id_at(n) FROM generate_series(1, {rows} / 10) n;
    INSERT INTO trioboss.live_job (queue, readiness, attempt, key, backlog, owner, notes)
    SELECT 'keys', 'ended', 1, 'k' || n, 'key:k' || n, 'key:k' || n,
           jsonb_build_object('error', pg_temp.error(n), 'failed_on', now())
    FROM generate_series(1, 200) n;
    INSERT INTO trioboss.live_job (queue, readiness, attempt, start_after, id, notes)
    SELECT 'retry', 'deferred', 1, now() + interval '1 h', pg_temp.id_at(n),
           jsonb_build_object('error', pg_temp.error(n), 'failed_on', now(), 'failures', 1)
    FROM generate_series(1, {rows} / 20) n;
    INSERT INTO trioboss.live_job (queue, readiness, key, backlog, id)
    SELECT 'keys', 'waiting', 'k' || n % 1000, 'key:k' || n % 1000, pg_temp.id_at(n)
    FROM generate_series(1, {rows} * 3 / 10) n;
    INSERT INTO trioboss.live_job (queue, readiness, notes, id)
    SELECT 'dead', 'ready', jsonb_build_object('error', pg_temp.error(n), 'source', jsonb_build_object(
               'queue', 'ended', 'id', md5(n::text)::uuid, 'created_on', now(), 'retry_count', 0)), pg_temp.id_at(n)
    FROM generate_series(1, {rows} / 20) n;
    INSERT INTO trioboss.live_job (queue, readiness, attempt, started_on, expires_on, worker, id)
    SELECT 'ready', 'active', 1, now(), now() + interval '1 hour', md5((n % 50)::text)::uuid, pg_temp.id_at(n)
    FROM generate_series(1, 500) n;
    INSERT INTO trioboss.worker (id, boss, name, queue, lock)
    SELECT md5(n::text)::uuid, gen_random_uuid(), 'w' || n, 'ready', n FROM generate_series(1, 150 + {rows} / 1000) n;
    INSERT INTO trioboss.schedule (queue, key, cron, updated_on)
    SELECT 'ready', 'k' || n, n % 60 || ' * * * *', now() - interval '10 d'
    FROM generate_series(1, 60 + {rows} / 1000) n;
    INSERT INTO trioboss.tick (queue, key, due)
    SELECT queue, key, date_trunc('hour', now()) - n * interval '1 h'
    FROM trioboss.schedule, generate_series(1, 168) n;
    INSERT INTO trioboss.lake (id, address, token, batch, exported)
    SELECT gen_random_uuid(), 's3://' || n, 1, 1, '3' FROM generate_series(1, 5) n;
    DO $$ BEGIN PERFORM trioboss.add_days((now() AT TIME ZONE 'UTC')::date - 13, 20); END $$;
    INSERT INTO trioboss.archive (
        seq, created_on, start_after, started_on, completed_on, id, priority, attempt, retry_count, outcome, queue, key,
        output)
    SELECT n, d, d, d, d + interval '1 s', pg_temp.id_at(extract(epoch FROM now() - d)), 0, 1, 0,
           (CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'completed' END)::trioboss.outcome, 'ended', 'k' || n % 5000,
           CASE WHEN n % 100 = 0 THEN pg_temp.error(n) END
    FROM generate_series(1, {rows} * 5) n, LATERAL (SELECT now() - n * interval '13 days' / ({rows} * 5) AS d) t;
    INSERT INTO trioboss.attempt (job_id, queue, attempt, started_on, ended_on, outcome, error)
    SELECT id, queue, 1, started_on, completed_on, 'failed', output FROM trioboss.archive WHERE outcome = 'failed';
    INSERT INTO trioboss.queue_sample (queue, minute, deferred, waiting, ready, active, arrived, completed, failed)
    SELECT q.name, date_trunc('minute', now()) - n * interval '1 min', 1, 1, 1, 1, n, n, 1
    FROM trioboss.queue q, generate_series(0, 1439) n;
    INSERT INTO trioboss.queue (name) SELECT 'many/' || n FROM generate_series(1, 100) n;
    INSERT INTO trioboss.live_job (queue, readiness, id)
    SELECT 'many/' || n % 100 + 1, 'ready', pg_temp.id_at(n) FROM generate_series(1, {rows}) n;
    INSERT INTO trioboss.audit (who, action) SELECT 'ann', 'retry' FROM generate_series(1, 5000);
    INSERT INTO trioboss.warning (queue, kind, message, first_on, last_on)
    SELECT 'ready', 'queue_size', 'long', now(), now() FROM generate_series(1, 5000);
"""
