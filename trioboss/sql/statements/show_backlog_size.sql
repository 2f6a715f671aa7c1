-- How many jobs wait in the backlog of one key, up to `most`.
SELECT count(*) FROM (
    SELECT FROM trioboss.live_job j
    WHERE j.queue = :queue::text AND j.readiness = 'waiting' AND j.backlog = 'key:' || :key::text LIMIT :most::bigint
) j;
