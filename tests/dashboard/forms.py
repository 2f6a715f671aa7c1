"""What a form of a page sends, for tests without a browser."""

import html
import re
from urllib.parse import parse_qsl


def hidden_fields(text: str) -> dict[str, str]:
    """The fields that the first form of a page has packed into one."""
    form = re.search(r'<form[^>]* method="post".*?</form>', text, re.DOTALL)
    assert form is not None
    packed = re.search(r'<input type="hidden" name="fields" value="([^"]*)"', form[0])
    assert packed is not None
    return dict(parse_qsl(html.unescape(packed[1]), keep_blank_values=True))
