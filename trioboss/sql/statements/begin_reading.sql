-- Say that days of history are being read, for so many seconds from now; again and again while it lasts.
INSERT INTO trioboss.reader (id, first_day, last_day, until)
SELECT r.id, coalesce(:first_day::date, '-infinity'), coalesce(:last_day::date, 'infinity'),
       now() + :seconds::float8 * interval '1 s'
FROM (SELECT :id::uuid AS id) r
WHERE r.id IS NOT NULL AND :seconds IS NOT NULL
ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until;
