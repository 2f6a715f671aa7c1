"""The undocumented internals of psycopg that trioboss relies on."""

import psycopg
import pytest
from psycopg import AsyncConnection, AsyncCursor

from trioboss.postgres import check_contract


def test_the_installed_psycopg_fulfils_the_contract():
    check_contract()


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(psycopg, "__version__", "3.4.0")

    with pytest.raises(ImportError, match=r"3\.4\.0.*version"):
        check_contract()


def test_asyncio_in_code_that_we_reuse_is_refused(monkeypatch):
    async def executemany(self):
        asyncio = self
        return globals()["asyncio"] or asyncio.get_running_loop()

    monkeypatch.setattr(AsyncCursor, "executemany", executemany)

    with pytest.raises(ImportError, match=r"AsyncCursor\.executemany uses get_running_loop"):
        check_contract()


def test_another_signature_is_refused(monkeypatch):
    async def _try_cancel(self):
        pass

    monkeypatch.setattr(AsyncConnection, "_try_cancel", _try_cancel)
    monkeypatch.setattr(
        "trioboss.postgres.contract._SIGNATURES", ((AsyncConnection._try_cancel, ("self", "timeout")),)
    )

    with pytest.raises(ImportError, match="_try_cancel takes"):
        check_contract()


def test_a_missing_internal_is_named(monkeypatch):
    def _start_query(self):
        yield from ()

    monkeypatch.setattr(AsyncConnection, "_start_query", _start_query)

    with pytest.raises(ImportError, match="does not use _get_tx_start_command"):
        check_contract()
