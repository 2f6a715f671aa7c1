-- What lakes have of history, and whether retention waits for them.
SELECT lake, history, exported::text::bigint, holds, exported_on FROM trioboss.export ORDER BY lake, history;
