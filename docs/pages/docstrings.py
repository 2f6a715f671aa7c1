"""Texts below attributes and names, and annotations as they are written: only the source has them."""

import ast
import functools
import inspect
import itertools
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType

__all__ = ["attribute_texts", "attribute_types", "module_texts"]


def _texts(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, below in itertools.pairwise(body):
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)):
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, inspect.cleandoc(str(below.value.value))


@functools.cache
def _parse(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def module_texts(module: ModuleType) -> dict[str, str]:
    """The texts below the names of a module."""
    return dict(_texts(_parse(module).body))


def attribute_texts(owner: type) -> dict[str, str]:
    """The texts below the attributes of a class and of its bases, by name."""
    texts: dict[str, str] = {}
    # A TypedDict has no bases at run time, except for this record of them.
    for base in (*getattr(owner, "__orig_bases__", ()), *owner.__mro__[1:]):
        if isinstance(base, type) and base.__module__.startswith("trioboss."):
            texts |= attribute_texts(base)
    for node in _parse(import_module(owner.__module__)).body:
        if isinstance(node, ast.ClassDef) and node.name == owner.__name__:
            texts |= dict(_texts(node.body))
    return texts


def attribute_types(owner: type) -> dict[str, str]:
    """The annotations of the attributes of a class, as they are written."""
    for node in _parse(import_module(owner.__module__)).body:
        if isinstance(node, ast.ClassDef) and node.name == owner.__name__:
            return {
                each.target.id: ast.unparse(each.annotation)
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
    raise LookupError(owner)
