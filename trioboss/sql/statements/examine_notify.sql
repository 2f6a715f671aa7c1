-- Notify the session that runs it, if it listens. Bosses ignore it: their probes have another token.
SELECT trioboss.notify('*probe doctor');
