-- Make the next `limit` deferred jobs of a queue due now, in the order of their time.
UPDATE trioboss.job_common SET start_after = coalesce(:now::timestamptz, statement_timestamp())
WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM trioboss.job_common
    WHERE name = :queue::text AND gate = 3 AND state < 'active'
      AND start_after > coalesce(:now, statement_timestamp())
      AND priority >= coalesce(:min_priority::int, -2147483648)
      AND priority <= coalesce(:max_priority::int, 2147483647)
    ORDER BY start_after
    LIMIT :limit::bigint
    FOR UPDATE SKIP LOCKED
));
