-- Receive the notifications of this schema.
LISTEN "trioboss";
