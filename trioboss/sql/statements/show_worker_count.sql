-- How many workers there are that are not known to be gone, and how many of these are connected, of the first `most`.
WITH held AS MATERIALIZED (
\ir fragments/held_locks.sql
)
SELECT count(*), count(*) FILTER (WHERE
\ir fragments/is_connected.sql
       )
FROM (SELECT * FROM trioboss.worker w WHERE w.gone_since IS NULL LIMIT :most::bigint) w;
