-- A worker's dispatchers of many queues may sleep: senders will wake them. Commits before the look that decides it.
INSERT INTO trioboss.sleeper (name, worker)
SELECT q.name, :worker::uuid
FROM unnest(:queues::text[]) AS q (name), (SELECT set_config('synchronous_commit', 'off', true)) lazy
ON CONFLICT DO NOTHING;
