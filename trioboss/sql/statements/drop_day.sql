-- Drop one day of history.
SELECT trioboss.drop_day(:history::text, :day::date);
