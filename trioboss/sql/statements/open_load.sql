-- Take the right to end a load, in the transaction that ends it: another session that tries the same waits for us, and
-- finds it ended. One row: the load is ours. No row: it was released before. A load that was refused, or only checked,
-- starts anew; the rows that it had rejected are gone.
WITH mine AS (
    INSERT INTO trioboss.load (id, name, state, staged, released, rejected)
    SELECT l.id, :queue::text, 'refused', 0, 0, 0 FROM (SELECT :load::text AS id) l WHERE l.id IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, ended_on = now() WHERE load.state <> 'released'
    RETURNING id
), removed AS (
    DELETE FROM trioboss.rejected WHERE load = (SELECT id FROM mine)
)
SELECT id FROM mine;
