"""The dashboard: see the queues live in a browser, and act on them. Needs the extra `dashboard`.

app         make_app: the routes, and what happens around each request
pages       the pages of queues, jobs and keys: what each reads, and its template
system_pages  the pages of schedules, workers, events, actions and the pipeline
actions     the pages and requests that change something
changes     what the buttons do, each with its row of the audit
live        live pages by server-sent events
queries     what the pages read from the database
values      what queries return
filters     the filter of a list of jobs, as the query of an address
database    connections: a reader with limits, and one that acts
security    who may see it, who may act, and the headers of every response
formatting  values as text and markup
rendering   templates and addresses
serving     serves it by hypercorn on trio
"""

from trioboss.dashboard.app import make_app as make_app
from trioboss.dashboard.security import basic_auth as basic_auth

__all__ = ["basic_auth", "make_app"]
