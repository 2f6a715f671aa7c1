"""trioboss in another harness: an adapter for peerbench, whose results ours have to agree with."""
