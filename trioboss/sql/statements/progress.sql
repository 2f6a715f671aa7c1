-- Note how far a job has come. Fenced as in complete.sql, and a heartbeat, too.
UPDATE trioboss.job_common
SET progress = :progress::jsonb, heartbeat_on = coalesce(:now::timestamptz, statement_timestamp())
WHERE name = :queue::text AND id = :id::uuid AND state = 'active'
  AND attempt = :attempt::int AND started_on = :started_on::timestamptz
RETURNING id;
