"""docs/api.md, made from the docstrings of the public names.

python tests/support/api_reference.py            the page, on stdout
python tests/support/api_reference.py --write    write it: `make api`
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from dataclasses import is_dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import efhorizon
from efhorizon import library

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
GROUPS = {
    "Tables": ("build", "load", "save", "TabularMDP", "examples"),
    "Analysis": ("analyze", "Analysis", "diagnose", "forecast", "what_if", "sample_complexity_bound"),
    "Environments": ("TableEnv", "TableVectorEnv", "BridgeEnv", "register_environments"),
    "Algorithms": ("gorp", "train", "Training"),
    "Studies": ("study", "Study", "report"),
    "The catalogue": ("entries", "entry", "Entry"),
    "Simulators": ("Simulator", "Transition"),
    "Errors": ("EfhorizonError", "InvalidTableError", "StoreError", "UnknownNameError", "SimulatorError",
               "MissingExtraError"),
}  # fmt: skip
HEAD = """\
# API reference

Every public name of `import efhorizon as ef`, made from the docstrings by `make api`.
[library.md](library.md) shows them at work. What is not listed here may change.

Legend of the shapes: S states, A actions, T the horizon, N distinct screens.
"""


def page() -> str:
    """The whole page."""
    listed = [name for names in GROUPS.values() for name in names]
    missing = set(efhorizon.__all__) - {"__version__"} ^ set(listed)
    if missing or len(set(listed)) < len(listed):
        raise SystemExit(f"GROUPS and efhorizon.__all__ differ in {sorted(missing)}")
    parts = [HEAD]
    for title, names in GROUPS.items():
        parts.append(f"\n## {title}\n")
        parts += [_entry(name, getattr(efhorizon, name)) for name in names]
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).rstrip() + "\n"


def _entry(name: str, thing: Any) -> str:
    if isinstance(thing, ModuleType) and callable(thing):  # a folder that can be called: see callable_module.py
        thing = getattr(library, name)
    if isinstance(thing, ModuleType):
        functions = [value for value in vars(thing).values() if isinstance(value, FunctionType)]
        public = [each for each in functions if not each.__name__.startswith("_") and each.__module__ == thing.__name__]
        return _text(f"ef.{name}", thing) + "".join(_method(f"ef.{name}", each.__name__, each) for each in public)
    if isinstance(thing, type):
        return _class(name, thing)
    return _text(f"ef.{name}{_signature(thing)}", thing)


def _class(name: str, kind: type) -> str:
    has_init = "__init__" in vars(kind) and not is_dataclass(kind) and not getattr(kind, "_is_protocol", False)
    takes = _signature(kind.__init__, skip_first=True) if has_init else ""
    text = _text(f"ef.{name}{takes}", kind)
    if issubclass(kind, Exception):
        return text
    fields = [f"`{field}`" for field in inspect.get_annotations(kind) if not field.startswith("_")]
    text += f"Fields: {', '.join(fields)}.\n\n" if fields else ""
    owners = [each for each in kind.__mro__ if each.__module__.startswith("efhorizon")]
    members = {member: value for owner in reversed(owners) for member, value in vars(owner).items()}
    return text + "".join(_method(name, member, value) for member, value in sorted(members.items()))


def _method(owner: str, name: str, value: Any) -> str:
    """A line for a method or property that has a description."""
    if name.startswith("_"):
        return ""
    if isinstance(value, property) or type(value).__name__ == "cached_property":
        described, takes = value, ""
    elif isinstance(value, FunctionType | classmethod | staticmethod):
        described = getattr(value, "__func__", value)
        takes = _signature(described, skip_first="." not in owner and not isinstance(value, staticmethod))
    else:
        return ""
    return f"- **`{name}{takes}`** {_joined(described.__doc__ or '')}".rstrip() + "\n"


def _text(head: str, thing: Any) -> str:
    paragraphs = re.split(r"\n\s*\n", _without_examples(inspect.getdoc(thing) or ""))
    body = "\n\n".join(_joined(paragraph) for paragraph in paragraphs if paragraph.strip())
    name, bracket, _ = head.partition("(")
    shown = textwrap.fill(head, 84, subsequent_indent="    ", break_on_hyphens=False) if bracket else ""
    return f"\n### `{name}`\n\n" + (f"```text\n{shown}\n```\n\n" if shown else "") + f"{body}\n\n"


def _without_examples(text: str) -> str:
    return re.split(r"^>>> ", text, flags=re.MULTILINE)[0]


def _joined(text: str) -> str:
    """Markdown in one line, with stars that are no emphasis."""
    return " ".join(_without_examples(text).split()).replace("*", r"\*")


def _signature(function: Any, *, skip_first: bool = False) -> str:
    """The arguments and their defaults; types are left to `help` and to editors."""
    given = list(inspect.signature(function).parameters.values())[1 if skip_first else 0 :]
    parts, was_keyword = [], False
    for each in given:
        if each.kind is each.KEYWORD_ONLY and not was_keyword:
            was_keyword = True
            parts.append("*")
        mark = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={each.default!r}"
        parts.append(f"{mark}{each.name}{default}")
    return f"({', '.join(parts)})"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page())
