-- Whether the boss of the worker w is connected: the session in its row holds its lock, which is among `held`
-- (held_locks.sql). Behind a transaction pooler there are no such sessions: the boss renews `seen_on` every 2 seconds.
           CASE WHEN w.lock IS NULL THEN w.seen_on > clock_timestamp() - interval '15 s'
                ELSE EXISTS (SELECT FROM held h WHERE h.lock = w.lock AND h.pid = coalesce(w.pid, h.pid)) END
