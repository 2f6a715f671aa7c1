-- Whether the job that a dead letter is a copy of is live: it blocks its key, or was retried. False with :force. Notes
-- are stored elsewhere and have the stacks of errors: the statement has read their `source` from them once, as n.
        SELECT :force::boolean IS NOT TRUE AND EXISTS (
            SELECT FROM trioboss.live_job b WHERE b.queue = n.source ->> 'queue' AND b.id = (n.source ->> 'id')::uuid) AS live
