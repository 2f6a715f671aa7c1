-- How a load ended. No row: it has not.
SELECT id, name, state, staged, released, rejected, ended_on FROM trioboss.load WHERE id = :load::text;
