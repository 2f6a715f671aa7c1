"""The command line: parse, call, print. No logic lives here.

main      the commands, and what a mistake looks like
output    tables and JSON
worker    `trioboss worker`: signals, processes, logs
health    probes and metrics over HTTP
demo      `trioboss demo`
doctor    `trioboss doctor`
admin     everything that is one call
grants    `trioboss grants`
"""

from trioboss.cli.main import main as main

__all__ = ["main"]
