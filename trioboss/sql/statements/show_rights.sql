-- Whether the role that acts may record actions, change jobs, send jobs, pause queues, and change schedules.
SELECT has_table_privilege('trioboss.audit', 'INSERT') AND has_table_privilege('trioboss.audit', 'UPDATE') AS audit,
       has_table_privilege('trioboss.live_job', 'UPDATE') AND has_table_privilege('trioboss.archive', 'DELETE') AS jobs,
       has_table_privilege('trioboss.live_job', 'INSERT') AS send,
       has_table_privilege('trioboss.queue', 'UPDATE') AS queues,
       has_table_privilege('trioboss.schedule', 'UPDATE') AS schedules;
