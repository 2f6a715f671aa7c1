"""Forms of a page without a browser: the fields that they send, and the rows of the audit that actions leave."""

import html
import re
from urllib.parse import parse_qsl

import psycopg


def hidden_fields(text: str) -> dict[str, str]:
    """The fields that the first form of a page has packed into one."""
    form = re.search(r'<form[^>]* method="post".*?</form>', text, re.DOTALL)
    assert form is not None
    packed = re.search(r'<input type="hidden" name="fields" value="([^"]*)"', form[0])
    assert packed is not None
    return dict(parse_qsl(html.unescape(packed[1]), keep_blank_values=True))


async def act(client, path, **fields):
    response = await client.post(f"/act/{path}", data=fields)
    assert response.status_code in (200, 303), response.text
    return response


def audit(boss):
    with psycopg.connect(boss.dsn) as connection:
        rows = "select who, action, queue, requested, affected from trioboss.audit order by id"
        return connection.execute(rows).fetchall()
