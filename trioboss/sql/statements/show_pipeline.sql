-- The lakes to which history is exported, and the last bulk loads. Of a lake: the transaction before which it has all
-- rows (its watermark), and when the oldest job ended that it does not have; null if it has all.
(SELECT 'lake' AS kind, l.address AS name, l.exported_on::timestamptz AS at, l.batch AS batch, l.pending IS NOT NULL AS pending,
        l.holds AS holds, l.exported::text AS watermark, n.completed_on AS behind,
        NULL::text AS queue, NULL::text AS state, NULL::bigint AS staged, NULL::bigint AS released, NULL::bigint AS rejected
 FROM (SELECT * FROM trioboss.lake l ORDER BY l.address LIMIT 100) l
 LEFT JOIN LATERAL (SELECT a.completed_on::timestamptz FROM trioboss.archive a WHERE a.xid >= l.exported ORDER BY a.xid LIMIT 1) n ON true
 ORDER BY l.address)
UNION ALL
(SELECT 'load', l.id, l.ended_on, NULL, NULL, NULL, NULL, NULL, l.name, l.state, l.staged, l.released, l.rejected
 FROM trioboss.load l ORDER BY l.ended_on DESC LIMIT :limit::bigint);
