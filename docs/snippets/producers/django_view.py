import os

import django
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

import trioboss

given = conninfo_to_dict(os.environ["TRIOBOSS_DSN"])
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": given["dbname"],
            "USER": given.get("user", ""),
            "PASSWORD": given.get("password", ""),
            "HOST": given.get("host", ""),
            "PORT": given.get("port", ""),
        }
    },
)
django.setup()

# -- views.py

from django.db import connection, transaction  # noqa: E402

boss = trioboss.SyncBoss(os.environ["TRIOBOSS_DSN"])


@transaction.atomic
def place_order(number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_order VALUES (%s)", [number])
    boss.send("django-orders", {"number": number}, conn=connection)
    if number == 2:
        raise ValueError("this order is rolled back, and so is its job")


# -- end

boss.create_queue("django-orders")
with connection.cursor() as cursor:
    cursor.execute("CREATE TEMP TABLE django_order (number int)")
for number in (1, 2):
    try:
        place_order(number)
    except ValueError as error:
        print(error)
print([job.data for job in boss.find_jobs("django-orders")])
boss.close()
