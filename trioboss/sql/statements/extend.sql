-- Give one lease more time before it expires. Fenced as in complete.sql. One row if the lease is held;
-- `expire_in` is null if it has been extended as often as the job allows.
WITH lease AS MATERIALIZED (
    SELECT lease_extensions < max_lease_extensions AS allowed FROM trioboss.job_common
    WHERE name = :queue::text AND id = :id::uuid AND state = 'active'
      AND attempt = :attempt::int AND started_on = :started_on::timestamptz
    FOR UPDATE
), extended AS (
    UPDATE trioboss.job_common
    SET expire_in = expire_in + :seconds::float8 * interval '1 s', lease_extensions = lease_extensions + 1,
        heartbeat_on = coalesce(:now::timestamptz, statement_timestamp())
    WHERE name = :queue AND id = :id AND (SELECT allowed FROM lease)
    RETURNING extract(epoch FROM expire_in)::float8 AS expire_in
)
SELECT e.expire_in FROM lease LEFT JOIN extended e ON true;
