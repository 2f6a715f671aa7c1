-- One job by id, live or ended.
SELECT * FROM trioboss.all_jobs WHERE name = :queue::text AND id = :id::uuid;
