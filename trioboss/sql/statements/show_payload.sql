-- The data and output of a job as text: programs read numbers of JSON as binary fractions, which lose digits.
SELECT data::text, output::text FROM trioboss.all_jobs WHERE name = :queue::text AND id = :id::uuid;
