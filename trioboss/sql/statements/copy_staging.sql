-- Bulk load into staging, from where release_staged.sql takes it.
COPY trioboss.staging (load, position, id, data, priority, start_after, delay, singleton_key, options)
FROM STDIN (FORMAT binary);
