-- The queues that have a table of their own: name, table.
SELECT name, table_name FROM trioboss.queue WHERE partition ORDER BY name;
