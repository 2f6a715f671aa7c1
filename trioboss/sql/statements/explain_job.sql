-- What stands between a job and its start: its own state, its queue, the job that holds its key, who could run it.
SELECT j.state::text, j.gate, j.start_after, j.started_on, j.worker, j.singleton_key, q.policy, q.paused,
       (SELECT count(*) FROM trioboss.sleeper s WHERE s.name = j.name),
       (SELECT count(*) FROM trioboss.worker w WHERE w.gone_since IS NULL AND j.name LIKE replace(replace(w.queue, '_', '\_'), '*', '%')),
       (SELECT count(*) FROM trioboss.job_common r WHERE r.name = j.name AND r.gate = 0 AND r.state < 'active'
          AND (r.priority > j.priority OR (r.priority = j.priority AND r.seq < j.seq)) AND j.gate = 0),
       h.id, h.state::text, coalesce(:now::timestamptz, statement_timestamp())
FROM trioboss.job_common j
JOIN trioboss.queue q ON q.name = j.name
LEFT JOIN LATERAL (
    SELECT h.id, h.state FROM trioboss.job_common h
    WHERE h.name = j.name AND coalesce(h.singleton_key, '') = coalesce(j.singleton_key, '') AND h.id <> j.id
      AND h.policy IN ('singleton', 'stately', 'key_strict_fifo')
      AND (h.state = 'active' OR (h.gate = 0 AND h.state < 'active')
           OR (h.policy = 'key_strict_fifo' AND h.state IN ('retry', 'failed')))
    UNION ALL
    SELECT l.id, l.state FROM trioboss.job_common l
    WHERE l.name = j.name AND coalesce(l.singleton_key, '') = coalesce(j.singleton_key, '') AND l.id <> j.id
      AND l.gate IN (1, 2) AND l.state < 'active' AND l.policy IN ('singleton', 'stately', 'key_strict_fifo') AND l.seq < j.seq
    LIMIT 1
) h ON q.keyed
WHERE j.name = :queue::text AND j.id = :id::uuid;
