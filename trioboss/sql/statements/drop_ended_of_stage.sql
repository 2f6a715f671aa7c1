-- The same id twice is one job, also when the first has ended: remove those jobs of a stage, just released, whose
-- namesakes are in the archive (see drop_if_ended.sql). Writes as many rows as it removes.
DELETE FROM trioboss.live_job_common j
USING trioboss.stage_row s, trioboss.archive a
WHERE j.queue = :queue::text AND j.id = s.id AND a.id = s.id AND a.queue = :queue;
