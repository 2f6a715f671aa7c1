-- begin states
SELECT name, state, count(*) FROM trioboss.all_jobs GROUP BY name, state ORDER BY name, state;
-- end states
