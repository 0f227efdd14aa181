"""How the code is kept: counts over one or more source trees, side by side.

    python benchmarks/house.py BEFORE/src/efhorizon src/efhorizon

Readers of an analysis are modules that decode the JSON of an analysis file; shapes of a run are the record classes that
describe one; a module asks for a suite's name where one of the built-in names is compared, used as a key or listed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SUITES = {"atari", "procgen", "minigrid", "gymnasium"}
MANY_PARAMETERS = 8


def main(trees: list[Path]) -> None:
    columns = [measured(tree) for tree in trees]
    width = max(len(name) for name in columns[0])
    for name in columns[0]:
        print(f"{name:{width}}  " + "  ".join(f"{column[name]:>7,}" for column in columns))


def measured(tree: Path) -> dict[str, int]:
    modules = {path: ast.parse(path.read_text()) for path in sorted(tree.rglob("*.py"))}
    texts = {path: path.read_text() for path in modules}
    classes = Counter(
        node.name for module in modules.values() for node in ast.walk(module) if isinstance(node, ast.ClassDef)
    )
    outside = {path: module for path, module in modules.items() if not {"suites", "envs"} & set(path.parts)}
    return {
        "modules beside the folders": sum(path.parent == tree for path in modules),
        "modules that ask for a suite's name, outside suites": sum(map(asks_for_a_suite, outside.values())),
        "class names that exist twice": sum(count > 1 for count in classes.values()),
        "type: ignore": sum(text.count("# type: ignore") for text in texts.values()),
        f"functions with more than {MANY_PARAMETERS} parameters": sum(
            num_parameters(node) > MANY_PARAMETERS for module in modules.values() for node in functions(module)
        ),
        "dict[str, Any]": sum(text.count("dict[str, Any]") for text in texts.values()),
        "private modules used from another folder": len(foreign_private_imports(tree, modules)),
        "5,000,000 written out": sum(len(re.findall(r"5_000_000\b|5,000,000\b", text)) for text in texts.values()),
        "lines": sum(len(text.splitlines()) for text in texts.values()),
        "modules": len(modules),
    }


def functions(module: ast.Module) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))


def num_parameters(function: ast.FunctionDef) -> int:
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def asks_for_a_suite(module: ast.Module) -> bool:
    """Whether a suite's name is compared, or is the key of a dictionary or an item of a list, anywhere in it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Compare):
            used = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            used = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            used = node.elts
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Spec"):
            used = node.args
        else:
            continue
        if any(isinstance(each, ast.Constant) and each.value in SUITES for each in used):
            return True
    return False


def foreign_private_imports(tree: Path, modules: dict[Path, ast.Module]) -> set[tuple[str, str]]:
    """(module, private module of another folder) pairs."""
    found = set()
    for path, module in modules.items():
        here = ".".join(("efhorizon", *path.relative_to(tree).parent.parts))
        for node in ast.walk(module):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("efhorizon"):
                continue
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                file = tree.joinpath(*full.split(".")[1:]).with_suffix(".py")
                target = full if file.exists() else str(node.module)
                folder, _, name = target.rpartition(".")
                if name.startswith("_") and name != "_version" and folder != here:
                    found.add((str(path.relative_to(tree)), target))
    return found


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]] or [Path("src/efhorizon")])
