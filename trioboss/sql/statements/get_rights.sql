-- What the role may do for all besides its own jobs: watch over leases, and fire cron's ticks.
SELECT has_table_privilege('trioboss.worker', 'UPDATE') AND has_table_privilege('trioboss.leader', 'UPDATE')
           AS may_supervise,
       has_table_privilege('trioboss.tick', 'INSERT') AS may_schedule;
