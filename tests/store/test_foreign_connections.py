"""``conn=`` with the connections of Django and SQLAlchemy, and what is said about those that cannot be used."""

import psycopg
import pytest

import trioboss


def url(dsn):
    """The dsn as SQLAlchemy reads it."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    return sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=sqlalchemy.NullPool
    )


@pytest.fixture
def django_connection(dsn):
    """Django's own connection object, as `django.db.connection` is one."""
    pytest.importorskip("django")
    from django.conf import settings

    if not settings.configured:
        settings.configure(USE_TZ=True)
    from django.db.backends.postgresql.base import DatabaseWrapper
    from django.db.utils import ConnectionHandler
    from psycopg.conninfo import conninfo_to_dict

    given = conninfo_to_dict(dsn)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given["dbname"],
        "USER": given.get("user", ""),
        "HOST": given.get("host", ""),
        "PORT": given.get("port", ""),
    }
    connection = ConnectionHandler({"default": database})["default"]
    assert isinstance(connection, DatabaseWrapper)
    yield connection
    connection.close()


async def count(boss):
    return (await boss.get_queue_stats("q")).queued


async def test_a_job_commits_with_the_session_of_sqlalchemy(boss, dsn):
    from sqlalchemy.orm import Session

    await boss.create_queue("q")
    with Session(url(dsn)) as session:
        await boss.send("q", conn=session)
        assert await count(boss) == 0
        session.commit()
        assert await count(boss) == 1
        await boss.send("q", conn=session)
        await boss.insert("q", [{"data": 1}], conn=session)
        session.rollback()
    assert await count(boss) == 1


async def test_a_job_commits_with_the_connection_of_sqlalchemy(boss, dsn):
    await boss.create_queue("q")
    with url(dsn).connect() as connection:
        await boss.send("q", conn=connection)
        assert await count(boss) == 0
        connection.commit()
        await boss.send("q", conn=connection)
        connection.rollback()
    with url(dsn).begin() as connection:
        await boss.send("q", conn=connection)
    assert await count(boss) == 2


def test_a_sync_boss_takes_a_session(sync_boss, dsn):
    from sqlalchemy.orm import Session

    sync_boss.create_queue("q")
    with Session(url(dsn)) as session:
        sync_boss.send("q", conn=session)
        sync_boss.insert("q", [{"data": 1}], conn=session)
        assert sync_boss.get_queue_size("q") == 0
        session.commit()
    assert sync_boss.get_queue_size("q") == 2


def test_a_job_commits_with_a_transaction_of_django(sync_boss, django_connection):
    connection = django_connection
    sync_boss.create_queue("q")
    connection.set_autocommit(False)  # as atomic() does
    sync_boss.send("q", conn=connection)
    assert sync_boss.get_queue_size("q") == 0
    connection.commit()
    sync_boss.send("q", conn=connection)
    connection.rollback()
    connection.set_autocommit(True)
    assert sync_boss.get_queue_size("q") == 1
    sync_boss.send("q", conn=connection)
    assert sync_boss.get_queue_size("q") == 2


async def test_a_boss_takes_a_connection_of_django(boss, django_connection):
    await boss.create_queue("q")
    await boss.send("q", conn=django_connection)
    assert await count(boss) == 1


class Named:
    """Stands for an object of another library, by the names that it is recognised by."""

    @classmethod
    def make(cls, name, module="library", **attributes):
        return type(name, (cls,), {"__module__": module, **attributes})()


@pytest.mark.parametrize(
    ("connection", "problem"),
    [
        (
            Named.make("AsyncSession", connection=print),
            "library.AsyncSession: it belongs to asyncio: pass the conn",
        ),
        (Named.make("Engine"), "library.Engine: pass a connection: `with engine"),
        (Named.make("Cursor", connection=None), r"library.Cursor: pass its connection: cursor\.connection"),
        (Named.make("connection", module="psycopg2.extensions"), "is a connection of psycopg2: .* psycopg 3"),
        (Named.make("Connection", module="asyncpg.connection"), "is a connection of asyncpg: .* psycopg 3"),
        (Named.make("Wrapper", connection=5), "pass its attribute `connection`"),
        (Named.make("Fairy", driver_connection=5, connection=5), "pass its attribute `driver_connection`"),
        (Named.make("ConnectionHandler"), r"pass one of its connections: `connections\['default'\]`"),
        (5, "builtins.int is not a connection: pass one of psycopg 3, of Django or of SQLAlchemy"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_connection_that_cannot_be_used_says_what_to_pass(boss, sync_boss, connection, problem):
    await boss.create_queue("q")
    with pytest.raises(trioboss.UsageError, match=f"^conn: .*{problem}"):
        await boss.send("q", conn=connection)
    with pytest.raises(trioboss.UsageError, match=f"^conn: .*{problem}"):
        sync_boss.send("q", conn=connection)


async def test_a_connection_of_sqlalchemy_for_asyncio_says_what_to_pass(boss, sync_boss, dsn):
    asyncio_of_sqlalchemy = pytest.importorskip("sqlalchemy.ext.asyncio")
    await boss.create_queue("q")
    connection = asyncio_of_sqlalchemy.create_async_engine("postgresql+psycopg://").connect()
    with pytest.raises(trioboss.UsageError, match=r"AsyncConnection: it belongs to asyncio: pass the conn"):
        await boss.send("q", conn=connection)
    with pytest.raises(trioboss.UsageError, match=r"AsyncConnection: it belongs to asyncio: pass the conn"):
        sync_boss.send("q", conn=connection)


async def test_a_connection_of_trio_is_not_for_a_sync_boss(boss, sync_boss):
    await boss.create_queue("q")
    async with boss.transaction() as conn:
        with pytest.raises(trioboss.UsageError, match="pass it to a Boss, not to a SyncBoss"):
            sync_boss.send("q", conn=conn)
