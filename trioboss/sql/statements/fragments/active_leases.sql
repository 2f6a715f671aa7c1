-- Of the jobs in `ids`, those whose active attempt passes the fence; and those in `unfenced`, whatever attempt is
-- active. `lock_wait` is how long this transaction waits for each lock of another one; null leaves the lock_timeout of
-- the session. It is set in this condition because the condition is evaluated before the first row is locked.
(SELECT CASE WHEN :lock_wait::text IS NULL THEN true ELSE set_config('lock_timeout', :lock_wait, true) <> '' END)
AND queue = :queue AND id = ANY (:ids::uuid[]) AND readiness = 'active'
AND (
\ir fragments/fence.sql
     OR id = ANY (:unfenced::uuid[]))
