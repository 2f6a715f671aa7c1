-- A lake has all rows of a history table that were written by transactions before `exported`. The mark never goes back.
INSERT INTO trioboss.export (lake, history, exported, holds)
SELECT e.lake, :history::text, :exported::text::xid8, coalesce(:holds::boolean, false)
FROM (SELECT :lake::text AS lake) e
WHERE e.lake IS NOT NULL
ON CONFLICT (lake, history) DO UPDATE
SET exported = greatest(export.exported, EXCLUDED.exported), holds = coalesce(:holds, export.holds), exported_on = now();
