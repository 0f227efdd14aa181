"""What the pages say is true: Python prints what README shows, links lead somewhere, named modules exist."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / ".github").rglob("*.md")])
TIMES = "\u00d7"
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)


def test_the_python_of_the_readme_prints_what_it_shows(tmp_path: Path) -> None:
    (code,) = blocks("README.md", "python")
    (shown,) = blocks("README.md", "text")
    assert len([line for line in code.splitlines() if line.strip()]) <= 8
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    missing = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in headings(file)):
            missing.append(target)
    assert missing == []


def headings(file: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    found = re.findall(r"^#+ (.*)$", file.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "CHANGELOG.md"])
def test_modules_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    places = [ROOT, ROOT / "src" / "efhorizon"]
    files = re.findall(r"`(?:python )?([\w/]+/[\w/]+\.py)\b", text)
    assert [file for file in files if not any((place / file).exists() for place in places)] == []
    assert [dotted for dotted in set(re.findall(r"`(efhorizon(?:\.\w+)+)", text)) if not importable(dotted)] == []


@pytest.mark.parametrize("name", NAMES)
def test_imports_in_code_blocks_work(name: str) -> None:
    for code in blocks(name, "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("efhorizon"):
                assert [each.name for each in node.names if not importable(f"{node.module}.{each.name}")] == []


def importable(dotted: str) -> bool:
    """Whether a name is a module, or something in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[length:])
    return False


def test_every_page_is_listed_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in NAMES if name.startswith("docs/") and f"({name})" not in readme] == []


def test_the_worked_example_of_the_glossary() -> None:
    """The numbers for Freeway are those of its committed analysis."""
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    rows = parquet.read_table(ROOT / "data" / "study" / "mdps.parquet").to_pylist()
    (freeway,) = (json.loads(row["analysis_json"])["analysis"] for row in rows if row["mdp_name"] == "freeway_10_fs30")
    text = (ROOT / "docs" / "glossary.md").read_text()
    for k, entry in freeway["effective_horizon"]["by_k"].items():
        assert f"| k = {k} | {entry['exact_m']} | {3 ** int(k)} {TIMES} {entry['exact_m']} = 54 | 3.63 |" in text
    assert f"{freeway['effective_horizon']['value']:.2f}" == "3.63"
    assert f"**{freeway['sample_complexity']['effective_horizon']:,} timesteps**" in text
    assert f"{freeway['sample_complexity']['worst_case']:,} timesteps (Theorem 2.1)" in text
    assert freeway["goal_mdp"]["is_goal_mdp"]
    for number in ("3.63 of 10", "m = 18", "5,400 timesteps"):
        assert number in (ROOT / "README.md").read_text()
