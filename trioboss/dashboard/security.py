"""The rights to see the dashboard and to act, and the headers that keep a page from doing anything else."""

import base64
import binascii
import hmac
import inspect
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

__all__ = ["HEADERS", "Authorize", "basic_auth", "check_origin", "find_user"]

Authorize = Callable[[Request], "str | Awaitable[str | None] | None"]
"""Takes a request and returns the name of the person, or None to refuse. It may be async."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_CLOSED = "This dashboard has no `authorize`: it answers only to browsers on this machine, at localhost or 127.0.0.1."


def basic_auth(users: Mapping[str, str]) -> Authorize:
    """An ``authorize`` for HTTP Basic: passwords by name. They are compared in constant time; use it over TLS."""
    known = {name.encode(): password.encode() for name, password in users.items()}
    if not known or not all(known.values()):
        raise ValueError("users: at least one is needed, and each with a password")

    def authorize(request: Request) -> str | None:
        scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).partition(b":")
        except binascii.Error:
            return None
        found = None
        for user, expected in known.items():
            # Both comparisons for every user, whatever the first one gives.
            if hmac.compare_digest(name, user) & hmac.compare_digest(password, expected) and colon:
                found = user
        return None if found is None else found.decode()

    authorize.challenge = 'Basic realm="trioboss", charset="UTF-8"'  # type: ignore[attr-defined]
    return authorize


async def find_user(request: Request, authorize: Authorize | None) -> str:
    """The name of the person who asks. Raises HTTPException if they may not."""
    if authorize is None:
        if not _is_local(request):
            raise HTTPException(403, _CLOSED)
        return "local"
    user: Any = authorize(request)
    if inspect.isawaitable(user):
        user = await user
    if not user:
        challenge = getattr(authorize, "challenge", None)
        if challenge is not None:
            raise HTTPException(401, "Sign in to see this dashboard.", {"WWW-Authenticate": challenge})
        raise HTTPException(403, "You may not see this dashboard.")
    return str(user)


def _is_local(request: Request) -> bool:
    # The Host header, too: a page elsewhere whose name leads to this machine (DNS rebinding) is not local. A proxy on
    # this machine acts for others. nginx sends its own Host and no header that says so, but HTTP/1.0, unless it is told
    # otherwise; no browser does.
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    if request.scope.get("http_version") == "1.0":
        return False
    host = (request.url.hostname or "").strip("[]")
    return _is_loopback(request.client.host) and (host == "localhost" or _is_loopback(host))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_origin(request: Request) -> None:
    """Refuse a change that does not come from a page of this dashboard.

    No page can set Sec-Fetch-Site: the browser compares the origins itself, also behind a proxy that changes Host.
    Origin and Host are compared only for browsers that do not send it: those before 2023, and all without TLS.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is None:
        is_same = origin is not None and origin.partition("://")[2] == request.headers.get("host")
    else:
        is_same = site == "same-origin"
    if not is_same:
        raise HTTPException(403, "This change does not come from a page of this dashboard.")
