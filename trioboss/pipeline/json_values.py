"""Values of Arrow as JSON has them."""

import json
import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

__all__ = ["as_came", "to_json_value"]

_LONGEST = 20_000  # characters of a bad row that are kept


def to_json_value(value: Any) -> Any:
    """The value with instants and days as ISO 8601 text, and decimals as numbers. Others that are no JSON stay."""
    if isinstance(value, dict):
        return {name: to_json_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [to_json_value(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def as_came(row: dict[str, Any]) -> str:
    """A bad row as JSON text that any database takes, for people."""
    text = json.dumps(_harmless(to_json_value(row)), default=str)
    return text if len(text) <= _LONGEST else json.dumps({"cut": text[:_LONGEST]})


def _harmless(value: Any) -> Any:
    if isinstance(value, dict):
        return {_harmless(str(name)): _harmless(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return value
