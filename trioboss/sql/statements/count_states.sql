-- How many jobs of each queue are in each state, of all that are still known.
SELECT name, state, count(*) FROM trioboss.all_jobs GROUP BY name, state;
