import os

from trioboss.dashboard import basic_auth, make_app

authorize = basic_auth({"ann": os.environ["DASHBOARD_PASSWORD"]})
app = make_app(os.environ["TRIOBOSS_DSN"], act_dsn=None, authorize=authorize, redact={"password", "token"})
