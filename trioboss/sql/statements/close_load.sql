-- Write down how a load ended: 'released', 'refused' because of bad rows, or only 'checked'.
UPDATE trioboss.load
SET state = :state::text, staged = :staged::bigint, released = :released::bigint, rejected = :rejected::bigint, ended_on = now()
WHERE id = :load::text;
