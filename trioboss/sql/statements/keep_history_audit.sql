-- Keep the result of an audit, in the place of the last one of the same history.
INSERT INTO trioboss.history_audit AS a (source, ended_on, since, until, queues, jobs, attempts, violations, possible)
VALUES (:source::text, now(), :since::timestamptz, :until::timestamptz, :queues::text[], :jobs::bigint, :attempts::bigint,
        :violations::jsonb, :possible::jsonb)
ON CONFLICT (source) DO UPDATE
SET ended_on = excluded.ended_on, since = excluded.since, until = excluded.until, queues = excluded.queues, jobs = excluded.jobs,
    attempts = excluded.attempts, violations = excluded.violations, possible = excluded.possible;
