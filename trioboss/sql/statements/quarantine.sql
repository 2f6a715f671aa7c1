-- End attempts whose jobs no other statement can settle: they fail for good, with the reason, without the options and
-- notes that may be what is wrong with them, and without a dead letter. A job of strict FIFO stays, and blocks its key.
-- Fenced and locked as in retry_failed.sql. Returns the ids.
WITH terms AS MATERIALIZED (
    SELECT policy, coalesce(:now::timestamptz, statement_timestamp()) AS now FROM trioboss.queue WHERE name = :queue::text
), lease AS MATERIALIZED (
    SELECT * FROM trioboss.live_job_common
    WHERE
\ir fragments/active_leases.sql
    FOR UPDATE
),
\ir fragments/quarantine_leases.sql
SELECT id FROM lease;
