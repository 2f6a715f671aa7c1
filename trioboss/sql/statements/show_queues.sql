-- The queues of one page of the overview, by name: those whose name contains `text`, after the name `after`. Each kind
-- of live job is counted up to `most`; the age is that of the oldest of the first thousand jobs that could run.
SELECT q.name, q.policy, q.paused, q.dead_letter, q.keep_completed, d.n AS deferred, w.n AS waiting, r.n AS ready,
       a.n AS active, b.n AS blocked, coalesce(extract(epoch FROM c.now - o.since), 0)::float8 AS oldest_age,
       :queue IS NOT NULL AND EXISTS (SELECT FROM trioboss.queue d WHERE d.dead_letter = q.name) AS is_dead_letter
FROM (SELECT statement_timestamp() AS now) c
CROSS JOIN (
    SELECT * FROM trioboss.queue q
    WHERE (:text::text IS NULL OR strpos(lower(q.name), lower(:text)) > 0) AND q.name > coalesce(:after::text, '')
      AND (:queue::text IS NULL OR q.name = :queue) AND (:names::text[] IS NULL OR q.name = ANY (:names))
    ORDER BY q.name LIMIT :limit::bigint
) q
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'deferred' LIMIT :most::bigint) j) d
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'waiting' LIMIT :most) j) w
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'ready' LIMIT :most) j) r
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'active' LIMIT :most) j) a
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    SELECT FROM trioboss.live_job j
    WHERE j.queue = q.name AND q.policy = 'key_strict_fifo' AND
\ir fragments/blocks_key.sql
    LIMIT 101) j) b
CROSS JOIN LATERAL (SELECT min(j.start_after) AS since FROM (
    SELECT j.start_after FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'ready'
    ORDER BY j.priority DESC, j.seq LIMIT 1000) j) o
ORDER BY q.name;
