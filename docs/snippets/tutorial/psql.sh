trioboss create-queue greetings > /dev/null
trioboss send greetings '{"name": "shell"}' > /dev/null
trioboss psql -c 'SELECT name, state, data FROM trioboss.all_jobs'
