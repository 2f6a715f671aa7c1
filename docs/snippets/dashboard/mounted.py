import os
import secrets

from starlette.applications import Starlette
from starlette.routing import Mount

from trioboss.dashboard import basic_auth, make_app

# Without a password in the environment it is a random one: nobody can log in.
password = os.environ.get("DASHBOARD_PASSWORD") or secrets.token_urlsafe()
dashboard = make_app(
    os.environ["TRIOBOSS_DSN"],
    act_dsn=None,
    authorize=basic_auth({"ann": password}),
    redact={"password", "token"},
)
app = Starlette(routes=[Mount("/ops/jobs", dashboard)])
