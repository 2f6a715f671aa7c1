-- `checked`: the backlog checks that a claim answers. There are two kinds. Checks without a priority are of backlogs
-- whose owner left: up to 1000 of them, with `after_left` those after that number. Checks with a priority are of
-- backlogs that a job joined: the next `checks` of them, in the order of claims, after the position (`after_rank`,
-- `after_seq`), which is null at first. `number` counts the checks of one backlog and priority: the second and later
-- ones need not be kept.
-- `read`: the position at which another call goes on, null if there are no more checks. If there were 1000 checks of
-- owners that left, there may be more of those, and the next call begins at the same position as this one; `left_seq`
-- is the last of them that was read.
-- -priority::bigint is the expression of the index backlog_check_order: conditions on priority would not use it.
checked AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY backlog, priority ORDER BY seq) AS number FROM ((
     SELECT ctid AS row, backlog, priority, seq FROM trioboss.backlog_check
     WHERE queue = :queue AND -priority::bigint IS NULL AND seq > coalesce(:after_left::bigint, 0) AND (SELECT NOT paused FROM terms)
     ORDER BY -priority::bigint, seq LIMIT 1000) UNION ALL
    (SELECT ctid, backlog, priority, seq FROM trioboss.backlog_check
     WHERE queue = :queue AND (-priority::bigint, seq) > (coalesce(:after_rank::bigint, -2147483648), coalesce(:after_seq::bigint, 0))
       AND -priority::bigint <= coalesce(-:min_priority::bigint, 2147483648) AND (SELECT NOT paused FROM terms)
     ORDER BY -priority::bigint, seq LIMIT :checks::bigint)) c
), read AS MATERIALIZED (
    SELECT left_seq, CASE WHEN gone >= 1000 THEN coalesce(:after_rank || ' ' || :after_seq, '')
                WHEN joined >= :checks THEN -lowest || ' ' || (SELECT max(seq) FROM checked WHERE priority = lowest) END AS more_after
    FROM (SELECT count(*) - count(priority) AS gone, count(priority) AS joined, min(priority)::bigint AS lowest,
                 max(seq) FILTER (WHERE priority IS NULL) AS left_seq FROM checked) c
)
