-- Whether the job that the dead letter j is a copy of is live: it blocks its key, or was retried. False with :force.
        SELECT :force::boolean IS NOT TRUE AND EXISTS (
            SELECT FROM trioboss.live_job b
            WHERE b.queue = j.notes #>> '{source,queue}' AND b.id = (j.notes #>> '{source,id}')::uuid) AS live
