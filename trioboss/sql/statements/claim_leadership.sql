-- Lead for the next seconds, if nobody else does: then there is a row.
-- In a `session` of its own a leader holds a lock as well, so that another one can follow the moment it dies. A leader
-- that fell silent (frozen, or cut off without the server being told) keeps that lock, for ever maybe: its time runs out.
-- Who has the lock goes before who has only the time. Two may lead for a moment: what they do is fenced.
WITH locked AS MATERIALIZED (
    SELECT :session::boolean AND pg_try_advisory_lock(hashtextextended('trioboss' || '/leader', 0)) AS mine
)
INSERT INTO trioboss.leader (boss, until)
SELECT :boss::uuid, now() + :seconds::float8 * interval '1 s'
FROM locked
-- Who only asks writes nothing.
WHERE mine OR NOT EXISTS (SELECT FROM trioboss.leader WHERE boss <> :boss AND until >= now())
ON CONFLICT (one) DO UPDATE SET boss = excluded.boss, until = excluded.until
WHERE leader.boss = excluded.boss OR leader.until < now() OR (SELECT mine FROM locked)
RETURNING boss;
