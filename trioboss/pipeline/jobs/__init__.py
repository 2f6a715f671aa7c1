"""The jobs: each is a function, a `trioboss pipeline` command, and a script that spark-submit takes."""
