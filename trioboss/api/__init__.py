"""The parts of Boss, by subject: base (how verbs are run), queues, sending, jobs."""
