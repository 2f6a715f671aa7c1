-- Notify the worker of a job that is in `elsewhere`, as cancel.sql does, so that it cancels the handler. Jobs that were
-- fetched manually have no worker.
CASE WHEN e.worker IS NOT NULL AND e.id = ANY (:elsewhere::uuid[]) THEN trioboss.notify('*cancel ' || e.id) END
