-- Remove a queue and its live jobs, and the queue of its completion jobs; the archive keeps the ended ones. Returns the
-- names, or no row. The database refuses it while another queue names it as its dead letter queue.
WITH gone AS (
    DELETE FROM trioboss.queue WHERE name IN (:queue::text, '__state__completed__' || :queue)
    RETURNING name, partition, table_name
), jobs AS (
    DELETE FROM trioboss.live_job_common j USING gone WHERE j.queue = gone.name AND NOT gone.partition
), checks AS (
    DELETE FROM trioboss.backlog_check c USING gone WHERE c.queue = gone.name
), slots AS (
    DELETE FROM trioboss.throttle t USING gone WHERE t.queue = gone.name
), markers AS (
    DELETE FROM trioboss.idle_dispatcher i USING gone WHERE i.queue = gone.name
)
SELECT name, CASE WHEN partition THEN trioboss.drop_job_table(table_name) END FROM gone;
