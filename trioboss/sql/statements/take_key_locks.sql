-- Take the locks of many keys, in the one order in which every session takes them.
SELECT count(pg_advisory_xact_lock(t.lock)) FROM (SELECT lock FROM unnest(:locks::bigint[]) lock ORDER BY lock) t;
