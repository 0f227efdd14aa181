"""Mutation testing itself: which mutants there are, that they keep their ids, and that tests kill them."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest
from mutants.explained import EXPLAINED, explanations
from mutants.operators import mutants
from mutants.parts import PARTS
from mutants.tree import Copy

ROOT = Path(__file__).parents[1]
SOURCE = '''"""Docs with 1 + 1 < 3."""

LIMIT = 3


def inside(x: int, limits: tuple[int, int] | None = None) -> bool:
    assert x < 9, "left alone"
    if x < 0 or not limits:
        raise ValueError(f"{x + 1} is bad")
    for i in range(len(limits)):
        check(i, x)
    return max(x, -1) == 0.5
'''


def changes(source: str) -> set[str]:
    return {mutant.difference(source).split("\n+")[-1].strip() for mutant in mutants("m.py", source)}


def test_every_kind_of_change() -> None:
    assert changes(SOURCE) == {
        "LIMIT = 4",
        "LIMIT = 2",
        "if x <= 0 or not limits:",
        "if x < 1 or not limits:",
        "if x < -1 or not limits:",
        "if x < 0 and not limits:",
        "if x < 0 or (limits):",
        "pass",
        "for i in range((len(limits)) - 1):",
        "check(x, i)",
        "return None",
        "return min(x, -1) == 0.5",
        "return max(x, (1)) == 0.5",
        "return max(x, -2) == 0.5",
        "return max(x, -0) == 0.5",
        "return max(x, -1) != 0.5",
        "return max(x, -1) == 1.0",
    }


def test_a_mutant_keeps_its_id_while_other_lines_change() -> None:
    before = {mutant.id: mutant for mutant in mutants("m.py", SOURCE)}
    after = {
        mutant.id: mutant for mutant in mutants("m.py", "import os\n\n" + SOURCE.replace("LIMIT = 3", "LIMIT = 5"))
    }
    assert len(before) == len(mutants("m.py", SOURCE))  # no two have the same
    lost = before.keys() - after.keys()
    assert {before[id].function for id in lost} == {""}
    assert len(lost) == 2
    assert all(after[id].line == before[id].line + 2 for id in before.keys() & after.keys())


@pytest.mark.parametrize("module", ["planning/rewards.py", "gorp/winning.py"])
def test_every_mutant_of_a_module_is_a_program_of_its_own(module: str) -> None:
    source = (ROOT / "src" / "efhorizon" / module).read_text()
    found = mutants(module, source)
    assert len(found) > 50
    programs = {ast.dump(ast.parse(mutant.applied(source))) for mutant in found}
    assert len(programs) > 0.95 * len(found)
    assert ast.dump(ast.parse(source)) not in programs


def test_every_module_has_tests_and_its_own_come_first() -> None:
    for part in PARTS:
        assert part.module_names(ROOT)
        assert part.test_files(ROOT, "x.py")
    io = next(part for part in PARTS if part.name == "io")
    assert io.test_files(ROOT, "io/store.py")[0] == "tests/io/test_store.py"


def test_explanations_are_rows_of_a_table() -> None:
    page = "| id | change | why |\n|---|---|---|\n| `0123abcd` | `a | b` | no input shows it |\n| text | `x` | no |\n"
    assert explanations(page) == {"0123abcd": "no input shows it"}
    assert EXPLAINED.exists()


@pytest.fixture
def small_tree(tmp_path: Path) -> Path:
    """A package with one function and a kernel, and a test of both."""
    root = tmp_path / "root"
    package = root / "src" / "efhorizon"
    package.mkdir(parents=True)
    real = ROOT / "src" / "efhorizon"
    for name in ("_kernel_cache.py", "compiled.py"):
        shutil.copy(real / name, package / name)
    (package / "__init__.py").touch()
    (package / "toy.py").write_text(
        "from efhorizon.compiled import compiled\n\n\n"
        "@compiled\ndef twice(x):\n    return 2 * x\n\n\n"
        "def clipped(x):\n    while x > 5:\n        x -= 1\n    return max(x, 0)\n"
    )
    (root / "tests").mkdir()
    (root / "tests" / "test_toy.py").write_text(
        "from efhorizon.toy import clipped, twice\n\n\n"
        "def test_twice():\n    assert twice(3) == 6\n\n\n"
        "def test_clipped():\n    assert clipped(7) == 5\n"
    )
    (root / "pyproject.toml").touch()
    return root


@pytest.mark.slow
def test_mutants_are_tried_in_a_copy(small_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (small_tree / "src" / "efhorizon" / "toy.py").read_text()
    monkeypatch.setattr("mutants.tree._GRACE", 5.0)
    copy = Copy(small_tree, tmp_path / "copy")
    tests = ["tests/test_toy.py"]
    seconds = copy.clean_seconds(tests)
    found = {mutant.difference(source).split("\n+")[-1].strip(): mutant for mutant in mutants("toy.py", source)}
    tried = {
        change: copy.trial(found[change], tests, seconds) for change in ("return 3 * x", "return max(x, 1)", "pass")
    }
    assert tried["return 3 * x"].outcome == "killed"  # the kernel is compiled anew
    assert tried["return 3 * x"].by == "tests/test_toy.py::test_twice"
    assert tried["return max(x, 1)"].outcome == "survived"  # no test looks at 0
    assert tried["pass"].outcome == "killed by time"  # x stays above 5 for ever
    assert (small_tree / "src" / "efhorizon" / "toy.py").read_text() == source
    assert (tmp_path / "copy" / "src" / "efhorizon" / "toy.py").read_text() == source
