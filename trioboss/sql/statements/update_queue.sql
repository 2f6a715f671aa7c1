-- Change the options named in `given`. Options are read when they are used: retries when an attempt fails
-- (retry_failed.sql), expire_in and heartbeat at the claim (fragments/lease_terms.sql), retention when jobs are pruned
-- (purge_queued.sql). Returns the name, or no row.
UPDATE trioboss.queue
SET dead_letter = CASE WHEN 'dead_letter' = ANY (:given::text[]) THEN :dead_letter::text ELSE dead_letter END,
    warning_queue_size = CASE WHEN 'warning_queue_size' = ANY (:given) THEN :warning_queue_size::int ELSE warning_queue_size END,
    retry_limit = CASE WHEN 'retry_limit' = ANY (:given) THEN :retry_limit::int ELSE retry_limit END,
    retry_delay = CASE WHEN 'retry_delay' = ANY (:given) THEN :retry_delay::float8 ELSE retry_delay END,
    retry_backoff = CASE WHEN 'retry_backoff' = ANY (:given) THEN :retry_backoff::boolean ELSE retry_backoff END,
    retry_delay_max = CASE WHEN 'retry_delay_max' = ANY (:given) THEN :retry_delay_max::float8 ELSE retry_delay_max END,
    retry_jitter = CASE WHEN 'retry_jitter' = ANY (:given) THEN :retry_jitter::float8 ELSE retry_jitter END,
    retry_multiplier = CASE WHEN 'retry_multiplier' = ANY (:given) THEN :retry_multiplier::float8 ELSE retry_multiplier END,
    retry_window = CASE WHEN 'retry_window' = ANY (:given) THEN :retry_window::float8 ELSE retry_window END,
    expire_in = CASE WHEN 'expire_in' = ANY (:given) THEN :expire_in::float8 ELSE expire_in END,
    heartbeat = CASE WHEN 'heartbeat' = ANY (:given) THEN :heartbeat::float8 ELSE heartbeat END,
    auto_heartbeat = CASE WHEN 'auto_heartbeat' = ANY (:given) THEN :auto_heartbeat::boolean ELSE auto_heartbeat END,
    max_lease_extensions = CASE WHEN 'max_lease_extensions' = ANY (:given) THEN :max_lease_extensions::int ELSE max_lease_extensions END,
    commit_order = CASE WHEN 'commit_order' = ANY (:given) THEN :commit_order::boolean ELSE commit_order END,
    retention = CASE WHEN 'retention' = ANY (:given) THEN :retention::float8 ELSE retention END,
    delete_after = CASE WHEN 'delete_after' = ANY (:given) THEN :delete_after::float8 ELSE delete_after END,
    keep_completed = CASE WHEN 'keep_completed' = ANY (:given) THEN :keep_completed::boolean ELSE keep_completed END,
    updated_on = now()
WHERE name = :queue::text
RETURNING name;
