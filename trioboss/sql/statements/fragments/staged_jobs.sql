-- Insert the rows of a stage in `staged`: their queue's `policy`, the time `now`, and the `urgency`, backlog and start
-- of each.
released AS (
    INSERT INTO trioboss.live_job_common (
        id, queue, priority, rank, created_on, start_after, key, backlog, slot, readiness, options, data)
    SELECT id, :queue, urgency, trioboss.backlog_rank(policy, urgency), now, starts, singleton_key, backlog,
           trioboss.queued_slot(policy, singleton_key, 0), trioboss.queued_readiness(starts, now, backlog), options, data
    FROM staged
