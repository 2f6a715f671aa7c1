-- The lakes to which history is exported, and the last bulk loads.
(SELECT 'lake' AS kind, l.address AS name, l.exported_on AS at, l.batch AS batch, l.pending IS NOT NULL AS pending, l.holds AS holds,
        NULL::text AS queue, NULL::text AS state, NULL::bigint AS staged, NULL::bigint AS released, NULL::bigint AS rejected
 FROM trioboss.lake l ORDER BY l.address LIMIT 100)
UNION ALL
(SELECT 'load', l.id, l.ended_on, NULL, NULL, NULL, l.name, l.state, l.staged, l.released, l.rejected
 FROM trioboss.load l ORDER BY l.ended_on DESC LIMIT :limit::bigint);
