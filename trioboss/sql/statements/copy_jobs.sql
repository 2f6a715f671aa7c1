-- Bulk load into a standard queue: complete rows, written by store/copying.py.
COPY trioboss.live_job_common (
    id, data, queue, priority, start_after, key, options, created_on, readiness
) FROM STDIN (FORMAT binary);
