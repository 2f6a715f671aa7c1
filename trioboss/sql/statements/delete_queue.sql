-- Remove a queue and its live jobs, and the queue of its completion jobs; the archive keeps the ended ones. Returns the
-- names, or no row. The database refuses it while another queue names it as its dead letter queue.
SELECT trioboss.delete_queue(:queue::text) AS name;
