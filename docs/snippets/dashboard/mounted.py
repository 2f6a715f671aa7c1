import os
import secrets

from trioboss.dashboard import basic_auth, make_app

# Without a password in the environment it is a random one: nobody can log in.
password = os.environ.get("DASHBOARD_PASSWORD") or secrets.token_urlsafe()
app = make_app(
    os.environ["TRIOBOSS_DSN"],
    act_dsn=None,
    authorize=basic_auth({"ann": password}),
    redact={"password", "token"},
)
