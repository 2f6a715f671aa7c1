-- Give one lease, the only one in `ids`, more time before it expires. Fenced as in complete.sql. One row if the lease
-- is held; null if it was extended as often as the job allows, else the length of the lease in seconds.
WITH lease AS MATERIALIZED (
    SELECT coalesce(j.extensions, 0) < coalesce((j.options ->> 'max_lease_extensions')::int, q.max_lease_extensions) AS allowed
    FROM trioboss.live_job_common j JOIN trioboss.queue q ON q.name = j.queue
    WHERE j.queue = :queue::text AND j.id = ANY (:ids::uuid[]) AND j.readiness = 'active' AND
\ir fragments/fence.sql
    FOR UPDATE OF j
), extended AS (
    UPDATE trioboss.live_job_common
    -- Not beyond two hundred years from now: what a handler asks for must not overflow later sums.
    SET expires_on = least(expires_on + :seconds::float8 * interval '1 s', now() + interval '200 years'),
        extensions = coalesce(extensions, 0) + 1, heartbeat_on = coalesce(:now::timestamptz, statement_timestamp())
    WHERE queue = :queue AND id = ANY (:ids) AND (SELECT allowed FROM lease)
    RETURNING extract(epoch FROM expires_on - started_on)::float8 AS expire_in
)
SELECT e.expire_in FROM lease LEFT JOIN extended e ON true;
