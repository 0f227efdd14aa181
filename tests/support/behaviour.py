"""The sources behind each BEHAVIOUR number, and the command that answers whether a change of them matters.

    python tests/support/behaviour.py              which components' sources differ from tests/support/behaviour.lock
    python tests/support/behaviour.py --confirm    record the sources as they are now: `make same-behaviour`

A component is a module that sets BEHAVIOUR. Its source is that module and all of efhorizon that it imports, directly
or not: the list is found, not written down, so nothing can be missing from it.
"""

from __future__ import annotations

import ast
import json
import sys
from functools import cache
from pathlib import Path

from efhorizon.io.behaviour import source_digest

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"
LOCK = HERE / "behaviour.lock"


def components(source: Path = SOURCE) -> dict[str, int]:
    """The modules that set BEHAVIOUR, and their numbers."""
    found = {}
    for name in sorted(modules(source)):
        for node in _tree(source, name).body:
            if isinstance(node, ast.Assign) and any(_is_name(target, "BEHAVIOUR") for target in node.targets):
                found[name] = ast.literal_eval(node.value)
    return found


def closure(source: Path, root: str) -> set[str]:
    """A module and what it imports from efhorizon, directly or not."""
    known = modules(source)
    reached, waiting = {root}, [root]
    while waiting:
        for name in _imports(source, waiting.pop(), known) - reached:
            reached.add(name)
            waiting.append(name)
    return reached


def present(source: Path = SOURCE) -> dict[str, dict[str, object]]:
    """For each component its number and the digests of its modules."""
    numbers = components(source)
    return {
        root: {
            "behaviour": number,
            "modules": {name: _digest(source, name) for name in sorted(closure(source, root))},
        }
        for root, number in numbers.items()
    }


def questions(source: Path = SOURCE, lock: Path = LOCK) -> list[str]:
    """What has to be answered before the sources count: one line for each component whose number is as it was."""
    recorded = json.loads(lock.read_text())
    asked = []
    for root, entry in present(source).items():
        known = recorded.get(root)
        if entry == known:
            continue
        if known is None or known["behaviour"] != entry["behaviour"]:
            asked.append(f"{root}: BEHAVIOUR is {entry['behaviour']} now: record it with `make same-behaviour`")
            continue
        before, now = known["modules"], entry["modules"]
        assert isinstance(now, dict)
        changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        asked.append(
            f"{root}: {', '.join(changed)} changed. Do the same inputs give another result? "
            f"Then raise BEHAVIOUR in {root} (now {entry['behaviour']}), which voids what it made. "
            "If not, confirm that with `make same-behaviour`."
        )
    asked += [f"{root}: no longer there: record it with `make same-behaviour`" for root in recorded.keys() - present()]
    return asked


@cache
def modules(source: Path) -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    found = {}
    for file in source.rglob("*.py"):
        parts = file.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def _imports(source: Path, name: str, known: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(_tree(source, name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    # the package's own __init__ only hands names on; what it imports is no part of a component
    return {module for module in found if module in known and module != "efhorizon"}


@cache
def _tree(source: Path, name: str) -> ast.Module:
    return ast.parse(modules(source)[name].read_text())


@cache
def _digest(source: Path, name: str) -> str:
    return source_digest(modules(source)[name].read_text())


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


if __name__ == "__main__":
    if "--confirm" in sys.argv:
        LOCK.write_text(json.dumps(present(), indent=1) + "\n")
    for question in questions():
        print(question)
