-- Whether a job blocks its key: it has failed, and still owns it. Only a job of key_strict_fifo can. The owner is what
-- the index live_job_owner finds it by.
owner IS NOT NULL AND readiness = 'ended'
