"""Programs that run beside the harness, as processes of their own, and speak lines of JSON with it."""
