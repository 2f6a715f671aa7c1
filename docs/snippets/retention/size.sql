SELECT pg_size_pretty(sum(pg_total_relation_size(c.oid))) AS size
FROM pg_class c
WHERE c.relnamespace = 'trioboss'::regnamespace AND c.relkind = 'r'
