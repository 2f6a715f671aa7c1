-- Write down which app declares a queue. Returns its name, or no row.
UPDATE trioboss.queue SET label = :label::text WHERE name = :queue::text RETURNING name;
