"""The dashboard: see the queues live in a browser, and act on them. Needs the extra `dashboard`.

app           make_app: the routes, authorization and errors of each request
pages         the pages of queues, jobs and keys: their values, and their templates
system_pages  the pages of schedules, workers, events, actions and the pipeline
confirming    the page that counts jobs and asks before an action on them
actions       the requests of the buttons, and the forms to redrive and to send
changes       the transactions of the buttons, each with its row of the audit
live          live pages by server-sent events
queries       the statements of the pages, as operations
ledger        schedules with their ticks: fired, missed and to come
values        the rows that queries return
history       the charts of a queue
filters       the filter of a list of jobs, as the query of an address
database      connections: a reader with limits, and an actor
security      authorization, the origin of requests, and the headers of responses
formatting    texts, times and numbers as markup
payloads      values of jobs: bounded, redacted, as text
rendering     templates and addresses
serving       the server: hypercorn on trio
"""

from trioboss.dashboard.app import make_app as make_app
from trioboss.dashboard.security import basic_auth as basic_auth

__all__ = ["basic_auth", "make_app"]
