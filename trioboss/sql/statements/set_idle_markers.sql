-- Set the idle markers of a worker's dispatchers of many queues. Commits before the poll that decides whether they are.
INSERT INTO trioboss.idle_dispatcher (queue, worker)
SELECT q.name, :worker::uuid
FROM unnest(:queues::text[]) AS q (name), (SELECT set_config('synchronous_commit', 'off', true)) commit
ON CONFLICT DO NOTHING;
