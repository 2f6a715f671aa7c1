CREATE ROLE bakery_deploy LOGIN;     -- migrates, and owns the schema of trioboss
CREATE ROLE bakery_jobs LOGIN;       -- the workers
CREATE ROLE bakery_web LOGIN;        -- the producers
CREATE ROLE bakery_dashboard LOGIN;  -- people, and `trioboss doctor`

-- Tables of your own: `trioboss grants` gives no rights for them.
CREATE TABLE public.loaf (kind text NOT NULL);
GRANT INSERT ON public.loaf TO bakery_jobs;
GRANT SELECT ON public.loaf TO bakery_web;
