"""The application: its routes, and what happens around each request."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from trioboss.dashboard import actions, confirming, pages, system_pages
from trioboss.dashboard.database import Actor, Reader
from trioboss.dashboard.formatting import describe_result
from trioboss.dashboard.live import EventStream, LivePages
from trioboss.dashboard.pages import Dashboard, LoadPage, Page
from trioboss.dashboard.payloads import Redactor, make_redactor
from trioboss.dashboard.rendering import own_path, render_page, render_parts
from trioboss.dashboard.security import HEADERS, Authorize, check_origin, find_user
from trioboss.errors import TriobossError, UsageError
from trioboss.model.option_names import checks_keywords
from trioboss.postgres.errors import is_database_error, is_lock_not_available

__all__ = ["make_app"]

_INSUFFICIENT_PRIVILEGE = "42501"
_LOCKED = (
    "Another transaction holds these jobs, or their queue, for more than two seconds: nothing was changed. "
    "Try again in a moment, or end that transaction."
)

_PAGES: dict[str, tuple[LoadPage, str]] = {
    "/": (pages.overview, "queues"),
    "/queues/{queue}/jobs/{id}": (pages.job, "queues"),
    "/queues/{queue}/jobs": (pages.jobs, "queues"),
    "/queues/{queue}/keys": (pages.keys, "queues"),
    "/queues/{queue}/key": (pages.key, "queues"),
    "/queues/{queue}/confirm": (confirming.confirm, "queues"),
    "/queues/{queue}/redrive": (actions.redrive, "queues"),
    "/queues/{queue}/send": (actions.send_form, "queues"),
    "/queues/{queue}": (pages.queue, "queues"),
    "/queues/{queue}/schedule": (system_pages.schedule, "schedules"),
    "/schedules": (system_pages.schedules, "schedules"),
    "/workers": (system_pages.workers, "workers"),
    "/events": (system_pages.events, "events"),
    "/pipeline": (system_pages.pipeline, "pipeline"),
    "/audit": (system_pages.audit, "audit"),
}
_ACTIONS: dict[str, actions.Act] = {
    "/act/jobs": actions.act_on_jobs,
    "/act/queue": actions.act_on_queue,
    "/act/schedule": actions.act_on_schedule,
    "/act/redrive": actions.act_redrive,
    "/act/send": actions.act_send,
}


@checks_keywords
def make_app(
    dsn: str | None,
    *,
    act_dsn: str | None = None,
    prefix: str = "",
    authorize: Authorize | None = None,
    redact: Redactor | Collection[str] | None = None,
    schema: str = "trioboss",
) -> ASGIApp:
    """The dashboard as an ASGI application, for trio and asyncio servers, by itself or mounted in another application.

    It reads as the role of ``dsn``, for which the rights of a reader are enough (see ``trioboss grants``). It shows
    buttons only with an ``act_dsn``, whose role does what they say. ``prefix`` is the path below which a server or
    another framework hands requests over without saying so; Starlette's Mount needs none.

    ``authorize`` takes a request and returns the name of the person, or None to refuse; it may be async. Without one
    the dashboard answers only to browsers on the same machine. ``redact`` is a collection of field names to hide in
    data, outputs, errors and progress, or a function of a queue and such a value that returns what may be shown.
    """
    dashboard = Dashboard(Reader(dsn, schema), Actor(act_dsn, schema), make_redactor(redact))
    return _App(dashboard, prefix.rstrip("/"), authorize)


class _App:
    """The routes, without the prefix. The first request opens connections, the end of the server closes them."""

    def __init__(self, dashboard: Dashboard, prefix: str, authorize: Authorize | None) -> None:
        self._prefix = prefix
        self._dashboard = dashboard
        self._authorize = authorize
        self._live = LivePages()
        routes: list[Any] = [
            Mount(
                "/static",
                StaticFiles(packages=[("trioboss.dashboard", "static"), ("trioboss.charts", "static")]),
            )
        ]
        routes += [Route(path, self._page(load, part)) for path, (load, part) in _PAGES.items()]
        routes += [Route(path, self._action(act), methods=["POST"]) for path, act in _ACTIONS.items()]
        handlers: dict[Any, Any] = {HTTPException: self._show_problem}
        self._routes = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = self._enter_prefix(scope)
        await self._routes(scope, receive, _with_headers(send))

    def _enter_prefix(self, scope: Scope) -> Scope:
        root = scope.get("root_path", "")
        inside = scope["path"].removeprefix(root)
        if self._prefix and (inside == self._prefix or inside.startswith(f"{self._prefix}/")):
            root += self._prefix
        path = scope["path"] if scope["path"] != root else f"{root}/"
        # A server or proxy may have taken the prefix off the path: then it is only in the links.
        base = root if root.endswith(self._prefix) else root + self._prefix
        return {**scope, "root_path": root, "path": path, "trioboss_base": base}

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> Any:
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._close)

    def _close(self) -> None:
        self._dashboard.reader.close()
        self._dashboard.actor.close()

    # -- requests

    def _page(self, load: LoadPage, part: str) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            user = await find_user(request, self._authorize)
            if "text/event-stream" in request.headers.get("accept", ""):
                return self._stream(load, request)
            page = await load(self._dashboard, request)
            context = await self._context(page, request, part, user)
            return HTMLResponse(render_page(page.template, context), page.status)

        return self._with_problems(respond)

    def _stream(self, load: LoadPage, request: Request) -> Response:
        address = f"{request.scope['trioboss_base']} {request.url.path}?{request.url.query}"
        if not self._live.has_room_for(address):
            raise HTTPException(503, "Too many pages are open.")

        async def read() -> dict[str, str]:
            page = await load(self._dashboard, request)
            return render_parts(page.template, await self._context(page, request))

        return EventStream(self._live.follow(address, read))

    def _action(self, act: actions.Act) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            user = await find_user(request, self._authorize)
            check_origin(request)
            async with request.form(max_fields=2000, max_files=0) as form:
                answer = await act(self._dashboard, actions.unpack(form), user)
            if isinstance(answer, str):
                location = f"{request.scope['trioboss_base']}{answer}"
                return Response(status_code=303, headers={"Location": location})
            context = await self._context(answer, request, user=user)
            return HTMLResponse(render_page(answer.template, context), answer.status)

        return self._with_problems(respond)

    def _with_problems(
        self, respond: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond_or_show_problem(request: Request) -> Response:
            try:
                return await respond(request)
            except Exception as error:
                if isinstance(error, HTTPException | TriobossError) or is_database_error(error):
                    return await self._show_problem(request, error)
                raise

        return respond_or_show_problem

    async def _context(self, page: Page, request: Request, part: str = "", user: str = "") -> dict[str, Any]:
        rights = await self._dashboard.actor.get_rights(self._dashboard.reader.store)
        shared = {
            "base": request.scope.get("trioboss_base", ""),
            "part": part,
            "user": user,
            "title": page.title,
            "rights": rights,
            "can_act": rights.any,
            "done": describe_result(request.query_params.get("done", "")),
        }
        return shared | page.values

    async def _show_problem(self, request: Request, error: Exception) -> Response:
        headers: Any = None
        if isinstance(error, HTTPException):
            status, text, headers = error.status_code, error.detail, error.headers
        elif isinstance(error, UsageError):
            status, text = 400, str(error)
        elif is_lock_not_available(error):
            status, text = 503, _LOCKED
        elif isinstance(error, TriobossError):
            status, text = 503, str(error)
        else:
            status, text = 503, f"Postgres refused a statement: {(str(error).splitlines() or ['?'])[0]}"
        if getattr(error, "sqlstate", None) == _INSUFFICIENT_PRIVILEGE:
            option = "act_dsn" if request.method == "POST" else "dsn"
            status, text = 403, f"The role of {option} may not do this. {text}"
        is_passing = status == 503 and request.method == "GET"  # the same address may have a page in a moment
        values = {"status": status, "text": text, "back": _referrer(request), "is_passing": is_passing}
        page = Page("problem.html", "Not available", values)
        context = await self._context(page, request)
        return HTMLResponse(render_page(page.template, context), status, headers)


def _referrer(request: Request) -> str:
    """The path of the page that a person came from, if it is one of this dashboard; else that of the overview."""
    parts = urlsplit(request.headers.get("referer", ""))
    base = f"{request.scope.get('trioboss_base', '')}/"
    if parts.netloc != request.headers.get("host") or not parts.path.startswith(base):
        return base
    return own_path(f"{parts.path}{parts.query and '?'}{parts.query}", base)


def _with_headers(send: Send) -> Send:
    """Add the security headers to every response."""

    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            ours = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
            if b"etag" not in given:  # a static file may be kept
                ours[b"cache-control"] = b"no-store"
            message["headers"] = [
                *message["headers"],
                *(pair for pair in ours.items() if pair[0] not in given),
            ]
        await send(message)

    return send_with_headers
