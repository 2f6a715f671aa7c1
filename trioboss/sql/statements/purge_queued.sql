-- Delete queued jobs that waited for longer than their retention. A failed job that blocks its key stays, and so does
-- every job that waits for the owner of its key: workers are there, and to delete it would break the order of the key
-- without a trace. A job that somebody is just changing is left for the next time. Reads the pages from `first` up to
-- `after`, so that it never holds back vacuum for long. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.live_job_common WHERE ctid = ANY (ARRAY (
        SELECT j.ctid FROM trioboss.live_job_common j JOIN trioboss.queue q ON q.name = j.queue
        WHERE j.ctid >= :first::tid AND j.ctid < :after::tid AND j.readiness < 'active'
          AND greatest(j.start_after, j.created_on) + coalesce((j.options ->> 'retention')::float8, q.retention) * interval '1 s'
              < coalesce(:now::timestamptz, now())
          AND (j.readiness <> 'waiting' OR
\ir fragments/key_is_free.sql jobs=live_job_common queue=j.queue backlog=j.backlog
          )
        FOR UPDATE OF j SKIP LOCKED))
    RETURNING id
)
SELECT count(*) FROM gone;
