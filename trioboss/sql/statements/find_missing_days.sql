-- Tables of the history that were dropped: of today or a later day, where a day after it has its table. Without one
-- nobody has made tables for that time yet. A day whose rows are in the default table cannot have a table: see
-- add_days.
WITH made AS MATERIALIZED (
    SELECT left(c.relname, -9) AS history, to_date(right(c.relname, 8), 'YYYYMMDD') AS day
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'trioboss' AND c.relkind = 'r' AND c.relname ~ '^(archive|attempt)_[0-9]{8}$'
), missing AS (
    SELECT m.history, d::date AS day, d AT TIME ZONE 'UTC' AS first, (d + interval '1 day') AT TIME ZONE 'UTC' AS last
    FROM (SELECT history, max(day) AS day FROM made GROUP BY history) m
    CROSS JOIN generate_series((now() AT TIME ZONE 'UTC')::date::timestamp, m.day::timestamp, interval '1 day') AS d
    WHERE (m.history, d::date) NOT IN (SELECT history, day FROM made)
)
SELECT m.history || to_char(m.day, '_YYYYMMDD') AS name
FROM missing m
WHERE CASE m.history
          WHEN 'archive' THEN NOT EXISTS (
              SELECT FROM trioboss.archive_default a WHERE a.completed_on >= m.first AND a.completed_on < m.last)
          ELSE NOT EXISTS (
              SELECT FROM trioboss.attempt_default a WHERE a.ended_on >= m.first AND a.ended_on < m.last) END
ORDER BY 1;
