import os
import secrets

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.urls import path

from trioboss.dashboard import make_app

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY=secrets.token_hex())
urlpatterns = [path("", lambda request: HttpResponse("a Django page"))]

# -- asgi.py

site = get_asgi_application()
dashboard = make_app(os.environ["TRIOBOSS_DSN"], prefix="/jobs")


async def application(scope, receive, send):
    is_dashboard = scope["type"] == "http" and f"{scope['path']}/".startswith("/jobs/")
    await (dashboard if is_dashboard else site)(scope, receive, send)
