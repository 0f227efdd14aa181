"""The source of an environment that the user wrote: a digest for each of its files, and versions of installed packages.

Comments, docstrings and layout do not count. Files that a module imports from its own package or folder count too.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from efhorizon.io.behaviour import source_digest
from efhorizon.suites.environment_files import is_installed, short_path, sources


def source_digests(objects: Iterable[Any]) -> dict[str, str]:
    """What each of the user's files does, by its path; what has no file, by its name."""
    found: dict[str, str] = {}
    for thing in objects:
        module = sys.modules.get(getattr(thing, "__module__", None) or "")
        file = getattr(module, "__file__", None)
        if file is not None and module is not None and Path(file).suffix == ".py":
            for path in sources(module):
                found[short_path(path)] = _file_digest(path)
        elif file is None and not _is_builtin(module):
            found[_name(thing)] = _object_digest(thing)
    return dict(sorted(found.items()))


def code_digests(things: Iterable[Any]) -> dict[str, str]:
    """What classes and functions do as they are in memory: for those that were given as objects, not by name."""
    return {_name(thing): _code_digest(thing) for thing in things if _is_users(thing)}


def package_versions(objects: Iterable[Any]) -> dict[str, str]:
    """The versions of the installed packages that classes and functions belong to."""
    modules = {(getattr(thing, "__module__", None) or "").partition(".")[0] for thing in objects}
    distributions = metadata.packages_distributions()
    names = {name for module in modules for name in distributions.get(module, ()) if _is_installed_module(module)}
    return {name.lower(): metadata.version(name) for name in sorted(names)}


def _is_installed_module(name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and is_installed(file) and name != "efhorizon"


def _is_builtin(module: types.ModuleType | None) -> bool:
    return module is not None and module.__name__ in sys.stdlib_module_names and module.__name__ != "__main__"


def _is_users(thing: Any) -> bool:
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return not _is_builtin(module) and (file is None or not is_installed(file))


def _file_digest(path: Path) -> str:
    try:
        text = path.read_text()
        return source_digest(text)
    except (OSError, SyntaxError, ValueError):
        return "unreadable"


def _object_digest(thing: Any) -> str:
    """Of a class or function of a notebook."""
    try:
        return source_digest(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return _code_digest(thing)


def _code_digest(thing: Any) -> str:
    digest = hashlib.sha256()
    for code in _codes(thing):
        _add_code(digest, code)
    return digest.hexdigest()[:16]


def _codes(thing: Any) -> Iterable[types.CodeType]:
    if inspect.isclass(thing):
        for name in sorted(vars(thing)):
            member = inspect.getattr_static(thing, name)
            member = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(member, types.FunctionType):
                yield member.__code__
    elif isinstance(thing, types.FunctionType):
        yield thing.__code__


def _add_code(digest: Any, code: types.CodeType) -> None:
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(digest, constant)
        elif isinstance(constant, frozenset):
            digest.update(repr(sorted(map(repr, constant))).encode())
        else:
            digest.update(repr(constant).encode())


def _name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", type(thing).__qualname__))
