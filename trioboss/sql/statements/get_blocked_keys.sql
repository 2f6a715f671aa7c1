-- The keys of a strict FIFO queue that a failed job blocks, in the order of their names.
SELECT key FROM trioboss.live_job_common WHERE queue = :queue::text AND
\ir fragments/blocks_key.sql
ORDER BY owner;
