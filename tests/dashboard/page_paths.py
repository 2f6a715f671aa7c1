"""The paths of pages, for a database with the queue `q`."""

PAGES = [
    "/",
    "/queues/q",
    "/queues/q?span=24h",
    "/queues/q/jobs",
    "/schedules",
    "/workers",
    "/events",
    "/events?kind=attempt",
    "/pipeline",
    "/audit",
]
