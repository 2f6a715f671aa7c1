-- The end of a query for the first job in the backlog <backlog> of queue <queue>, in the order of its key; no row if
-- the key has an owner.
FROM trioboss.<jobs> WHERE queue = <queue> AND backlog = <backlog> AND readiness = 'waiting' AND
\ir fragments/key_is_free.sql jobs=<jobs> queue=<queue> backlog=<backlog>
ORDER BY rank, seq LIMIT 1
