-- Whether the work of a dead letter would be done twice: the job that it is a copy of blocks its key, was retried, or
-- has completed since. False with :force. Notes are stored elsewhere and have the stacks of errors: the statement has
-- read their `source` from them once, as n. A copy is made when its job fails, so tables of days before are not read.
        SELECT :force::boolean IS NOT TRUE AND (
            EXISTS (
                SELECT FROM trioboss.live_job b
                WHERE b.queue = n.source ->> 'queue' AND b.id = (n.source ->> 'id')::uuid)
            OR EXISTS (
                SELECT FROM trioboss.archive a
                WHERE a.queue = n.source ->> 'queue' AND a.id = (n.source ->> 'id')::uuid
                  AND a.outcome = 'completed' AND a.completed_on >= j.created_on)) AS duplicate
