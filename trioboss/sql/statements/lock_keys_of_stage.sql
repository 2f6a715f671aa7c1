-- Strict order is the order of commit for each key (see release_staged.sql): wait for all who are sending one of the
-- keys of a stage, and let others wait for us, until the end of the transaction. Returns how many locks that were.
SELECT count(pg_advisory_xact_lock(w.lock)) AS waited
FROM (
    SELECT DISTINCT trioboss.key_lock(:queue::text, s.singleton_key, (SELECT seed FROM trioboss.lock_seed)) AS lock
    FROM trioboss.stage_row s
    WHERE s.problem IS NULL
    ORDER BY 1
) w;
