-- A dispatcher may sleep: senders will wake it. Commits before the look that decides whether it does.
INSERT INTO trioboss.sleeper (name, worker)
SELECT :queue::text, :worker::uuid FROM (SELECT set_config('synchronous_commit', 'off', true)) lazy
ON CONFLICT DO NOTHING;
