-- Stop or resume handing out jobs of a queue; running jobs go on. Returns the name, or no row.
UPDATE trioboss.queue SET paused = :paused::boolean, updated_on = now() WHERE name = :queue::text
RETURNING name, CASE WHEN NOT paused THEN trioboss.notify(name) END;
