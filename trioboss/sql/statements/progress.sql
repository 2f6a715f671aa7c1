-- Record how far a job has come. Fenced as in complete.sql, and a heartbeat, too.
UPDATE trioboss.live_job_common
SET notes = coalesce(notes, '{}') || jsonb_build_object('progress', :progress::jsonb),
    heartbeat_on = coalesce(:now::timestamptz, statement_timestamp())
WHERE queue = :queue::text AND id = ANY (:ids::uuid[]) AND readiness = 'active' AND
\ir fragments/fence.sql
RETURNING id;
