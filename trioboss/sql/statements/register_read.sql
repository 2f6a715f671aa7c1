-- Register a read of history, or renew its registration, for so many seconds from now. Returns what all tasks of the
-- read see: a snapshot, and the tables of `history` with the numbers of their files (see the function).
SELECT r.snapshot::text, r.files::text
FROM (SELECT :id::uuid AS id) i,
     trioboss.register_read(i.id, :history::text, :first_day::date, :last_day::date, :seconds::float8,
                            :snapshot::pg_snapshot) r
WHERE i.id IS NOT NULL;
