-- Behind a transaction pooler, instead of a session lock: lead for the next seconds, if nobody else does.
INSERT INTO trioboss.leader (boss, until) VALUES (:boss::uuid, now() + :seconds::float8 * interval '1 s')
ON CONFLICT (one) DO UPDATE SET boss = excluded.boss, until = excluded.until
WHERE leader.boss = excluded.boss OR leader.until < now()
RETURNING boss;
