-- The checks that a claim answers: of backlogs whose owner left, and `checks` of those that a job joined, in the order of
-- claims. With `after_rank` and `after_seq` those after that position: a claim that found too little goes on there.
-- A check of an owner that left is always answered: if there are more of them, the next call begins where this one did.
-- `number` counts the checks of a backlog and a priority: only the first of them is worth keeping.
checked AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY backlog, priority ORDER BY seq) AS number FROM (
    (SELECT ctid AS row, backlog, priority, seq FROM trioboss.backlog_check
     WHERE queue = :queue AND -priority::bigint IS NULL AND (SELECT NOT paused FROM terms) LIMIT 1000) UNION ALL
    (SELECT ctid, backlog, priority, seq FROM trioboss.backlog_check
     WHERE queue = :queue AND (-priority::bigint, seq) > (coalesce(:after_rank::bigint, -2147483648), coalesce(:after_seq::bigint, 0))
       AND -priority::bigint <= coalesce(-:min_priority::bigint, 2147483648) AND (SELECT NOT paused FROM terms)
     ORDER BY -priority::bigint, seq LIMIT :checks::bigint)) c
), read AS MATERIALIZED (
    SELECT CASE WHEN gone >= 1000 THEN coalesce(:after_rank || ' ' || :after_seq, '')
                WHEN joined >= :checks THEN -lowest || ' ' || (SELECT max(seq) FROM checked WHERE priority = lowest) END AS more_after
    FROM (SELECT count(*) - count(priority) AS gone, count(priority) AS joined, min(priority)::bigint AS lowest FROM checked) c
)
