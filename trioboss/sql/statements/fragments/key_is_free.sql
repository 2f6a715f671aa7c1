-- Whether no job owns the key of the backlog <backlog> of queue <queue>. A subquery and not NOT EXISTS, of which the
-- planner could make one search for the owners of all keys.
(SELECT true FROM trioboss.<jobs> WHERE queue = <queue> AND owner = <backlog> LIMIT 1) IS NULL
