-- Hear what is said on the channel of this schema.
LISTEN "trioboss";
