-- Lease as many of the first jobs in `picked` as fit into four megabytes of answer, at least one. The reason: a worker
-- has to hold an answer whole, and the server keeps its locks until the worker has read it. A job that overrides an
-- option has it in `options`, which is null for nearly all jobs. The number of an attempt cannot overflow, whatever
-- plain SQL has written there: after 2^30 it begins anew.
claimed AS (
    UPDATE trioboss.live_job_common
    SET readiness = 'active', attempt = (attempt & 1073741823) + 1, worker = :worker::uuid, started_on = (SELECT now FROM terms),
        expires_on = coalesce((SELECT now FROM terms) + (options ->> 'expire_in')::float8 * interval '1 s',
                              (SELECT expires_on FROM terms)),
        heartbeat = coalesce((options ->> 'heartbeat')::float8, (SELECT heartbeat FROM terms)),
        heartbeat_on = NULL, extensions = NULL,
        slot = CASE WHEN starts_with(slot, 'any:') THEN slot END, owner = backlog
    WHERE ctid = ANY ((SELECT CASE WHEN size > 4194304 THEN trioboss.first_fitting(jobs, sizes, 4194304) ELSE jobs END
                       FROM picked)::tid[])
    RETURNING id, attempt, retry_count, priority, seq, created_on, start_after, key, options, data, notes, backlog
)
