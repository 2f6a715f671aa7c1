-- The backlogs of queue q that a failed job blocks. Jobs in them cannot run.
        SELECT k.owner FROM trioboss.live_job k
        WHERE k.queue = q.name AND q.policy = 'key_strict_fifo' AND
\ir fragments/blocks_key.sql
