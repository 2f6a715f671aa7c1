-- Notify the worker of a job that is in `handlers_to_cancel`, so that it cancels the handler. Jobs that were fetched
-- manually have no worker. (cancel.sql sends the same notification for every active job, with or without a worker.)
CASE WHEN e.worker IS NOT NULL AND e.id = ANY (:handlers_to_cancel::uuid[]) THEN trioboss.notify('*cancel ' || e.id) END
