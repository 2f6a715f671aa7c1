-- How many workers there are that are not known to be gone, and how many of these are connected, of the first `most`:
-- of all, or of those that take jobs of a queue (`serving`).
WITH held AS MATERIALIZED (
\ir fragments/held_locks.sql
)
SELECT count(*), count(*) FILTER (WHERE
\ir fragments/is_connected.sql
       )
FROM (SELECT * FROM trioboss.worker w WHERE w.gone_since IS NULL
        AND (:serving::text IS NULL OR
\ir fragments/is_served.sql queue=:serving pattern=w.queue
        ) LIMIT :most::bigint) w;
