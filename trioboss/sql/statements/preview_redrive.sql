-- The effect of redrive.sql, before it is run: the jobs for each source, destination (null: none) and kind of error,
-- whether they are duplicates, and how large their notes are. Notes have the stacks of errors: they are read once, and
-- no more of them after so many `bytes`.
SELECT source, CASE WHEN NOT duplicate THEN destination END AS destination, error, count(*), duplicate, sum(size)::bigint AS size
FROM (
    SELECT n.source ->> 'queue' AS source, n.error ->> 'name' AS error, s.duplicate, j.size,
           CASE WHEN q.policy <> 'key_strict_fifo' OR j.key IS NOT NULL THEN q.name END AS destination
    FROM (
        SELECT j.id, j.key, j.created_on, j.notes, coalesce(pg_column_size(j.notes), 0) AS size,
               coalesce(sum(pg_column_size(j.notes)) OVER (ORDER BY j.id ROWS BETWEEN UNBOUNDED PRECEDING
                                                               AND 1 PRECEDING),
                        0) AS before
        FROM (
            SELECT j.id, j.key, j.created_on, j.notes FROM trioboss.live_job_common j
            WHERE j.queue = :queue::text AND j.readiness < 'active' AND
\ir fragments/was_committed.sql
            ORDER BY j.id LIMIT CASE WHEN :source::text IS NULL THEN :limit::bigint END
        ) j
    ) j
    CROSS JOIN LATERAL jsonb_to_record(j.notes) AS n (source jsonb, error jsonb)
    LEFT JOIN trioboss.queue q ON q.name = coalesce(:to::text, n.source ->> 'queue')
    CROSS JOIN LATERAL (
\ir fragments/is_duplicate.sql
    ) s
    WHERE (:source IS NULL OR n.source ->> 'queue' = :source) AND (:bytes::bigint IS NULL OR j.before < :bytes)
    ORDER BY j.id
    LIMIT :limit
) picked
GROUP BY 1, 2, 3, 5 ORDER BY 1, 2, 3, 5;
