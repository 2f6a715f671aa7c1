-- Whether the role may do maintenance, and whether it may fire the ticks of cron.
SELECT has_table_privilege('trioboss.worker', 'UPDATE') AND has_table_privilege('trioboss.leader', 'UPDATE')
           AS may_supervise,
       has_table_privilege('trioboss.tick', 'INSERT') AS may_schedule;
