trioboss create-queue greetings
trioboss send greetings '{"name": "shell"}'
trioboss send greetings '{"name": "later"}' --option start_after=3600
trioboss queues
trioboss jobs greetings --data
