-- A completion job for each of the jobs in `<ended>`, with that outcome, if the queue has a queue for them.
copied AS (
    INSERT INTO trioboss.live_job (queue, data, created_on, start_after)
    SELECT q.name, trioboss.completion_of(e.id, e.queue, e.data, <outcome>, e.output, e.created_on, e.started_on,
                                          e.ended_on, e.retry_count), e.ended_on, e.ended_on
    FROM <ended> e, trioboss.queue q
    WHERE q.name = '__state__completed__' || :queue
    ORDER BY e.seq
)
