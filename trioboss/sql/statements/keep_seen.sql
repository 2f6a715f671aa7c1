-- Behind a transaction pooler, instead of a session lock: the workers of this boss are alive now.
UPDATE trioboss.worker SET seen_on = now(), gone_since = NULL WHERE boss = :boss::uuid;
