-- Take the locks of many keys, in the one order in which everybody takes them.
SELECT count(pg_advisory_xact_lock(t.lock)) FROM (SELECT lock FROM unnest(:turns::bigint[]) lock ORDER BY lock) t;
