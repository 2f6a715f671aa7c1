-- Set the idle marker of a dispatcher: senders will notify it. Commits before the claim that decides if it is idle.
INSERT INTO trioboss.idle_dispatcher (queue, worker)
SELECT :queue::text, :worker::uuid FROM (SELECT set_config('synchronous_commit', 'off', true)) commit
ON CONFLICT DO NOTHING;
