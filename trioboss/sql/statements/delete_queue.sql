-- Remove a queue and its live jobs, and the queue of its completion jobs; the archive keeps what has ended. Returns the
-- names, or no row.
-- Refused by the database while another queue names it as its dead letter queue.
WITH gone AS (
    DELETE FROM trioboss.queue WHERE name IN (:queue::text, '__state__completed__' || :queue)
    RETURNING name, partition, table_name
), jobs AS (
    DELETE FROM trioboss.job_common j USING gone WHERE j.name = gone.name AND NOT gone.partition
), keys AS (
    DELETE FROM trioboss.freed_key k USING gone WHERE k.name = gone.name
), slots AS (
    DELETE FROM trioboss.throttle t USING gone WHERE t.name = gone.name
), sleepers AS (
    DELETE FROM trioboss.sleeper s USING gone WHERE s.name = gone.name
)
SELECT name, CASE WHEN partition THEN trioboss.drop_job_table(table_name) END FROM gone;
