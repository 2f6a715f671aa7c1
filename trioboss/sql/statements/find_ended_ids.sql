-- Which of these jobs have ended? On a connection of our own, for a sender whose transaction has an older snapshot: a
-- job that it could insert has no live job of the same id beside it, so the end of one is committed and visible here.
SELECT id FROM trioboss.archive WHERE queue = :queue::text AND id = ANY (:ids::uuid[]);
