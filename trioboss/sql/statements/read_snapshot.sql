-- Which transactions have committed by now.
SELECT pg_current_snapshot()::text AS snapshot;
