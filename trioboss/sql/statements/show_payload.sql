-- The data, output and progress of a job as text, each with its size in bytes: programs read numbers of JSON as binary
-- fractions, which lose digits. Of a text of more than :most bytes only the beginning is returned.
SELECT left(t.data, :most::int), octet_length(t.data), left(t.output, :most), octet_length(t.output), left(t.progress, :most),
       octet_length(t.progress)
FROM (
    SELECT j.data::text AS data, j.output::text AS output, j.progress::text AS progress
    FROM trioboss.all_jobs j WHERE j.name = :queue::text AND j.id = :id::uuid
    OFFSET 0                                         -- each text is made once
) t;
