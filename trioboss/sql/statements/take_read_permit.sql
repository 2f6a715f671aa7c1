-- Prepare a transaction that reads a piece of a table: its statements may take `timeout` milliseconds each, run in one
-- process, and are planned for the rows they ask for. Of all readers of this schema at most `concurrency` have a permit
-- at a time: `permit` is null if all are taken. `file` is the number of the table's file, null if there is no such
-- table.
SELECT set_config('statement_timeout', least(coalesce(:timeout::bigint, 0), 2147483647)::text, true) AS timeout,
       set_config('max_parallel_workers_per_gather', '0', true) AS processes,
       set_config('plan_cache_mode', 'force_custom_plan', true) AS plans,
       pg_relation_filenode(to_regclass('"trioboss".' || quote_ident(:relation::text)))::bigint AS file,
       (SELECT s FROM generate_series(1, :concurrency::bigint) s
        WHERE pg_try_advisory_xact_lock(trioboss.lock_number('reader/' || s, (SELECT seed FROM trioboss.lock_seed))) LIMIT 1) AS permit;
