"""The web site: every page is in it, links and equations are right; a slow test builds it all."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"


def script(name: str) -> ModuleType:
    """A script of docs/site, imported from there."""
    sys.path.insert(0, str(SITE))
    try:
        spec = importlib.util.spec_from_file_location(f"site_{name}", SITE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(SITE))


def test_every_page_is_in_the_navigation_once() -> None:
    build = script("build")
    listed = [name for names in build.NAVIGATION.values() for name in names]
    assert len(listed) == len(set(listed))
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in (ROOT / "docs").rglob("*.md")}
    assert set(listed) - {"gallery", "contributing", "changelog"} <= pages
    assert set(build.SHORT) <= pages
    shown = {word.strip("<>") for word in build.contents().split()}  # a page that nobody has placed is under "More"
    assert pages - {"index"} <= shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](bounds.md#ties)", "[a](bounds.md#ties)"),
        ("[a](../CONTRIBUTING.md#add-a-bound)", "[a](contributing.md#add-a-bound)"),
        ("[a](../README.md#install)", "[a](index.md)"),
        ("[evaluation.md](evaluation.md#files)", "[Evaluation](evaluation.md#files)"),
        ("[api.md](api.md)", "[API reference](api.md)"),
        ("[`own_bound.py`](../examples/own_bound.py)", "`own_bound.py`"),
        ("[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("    [a](../README.md)", "    [a](../README.md)"),
        ("```python\n[a](../README.md)\n```", "```python\n[a](../README.md)\n```"),
    ],
)
def test_links_of_pages(text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EFHORIZON_REPOSITORY", raising=False)
    assert script("build").linked(text, ROOT / "docs" / "tables.md") == expected


def test_links_to_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EFHORIZON_REPOSITORY", "https://example.org/blob/main")
    linked = script("build").linked("[a](docs/tables.md) [b](examples/own_mdp.py)", ROOT / "CONTRIBUTING.md")
    assert linked == "[a](tables.md) [b](https://example.org/blob/main/examples/own_mdp.py)"


def test_the_equations_can_be_shown() -> None:
    mathml = pytest.importorskip("docutils.utils.math.latex2mathml")
    text = re.sub(r"`[^`\n]*`", "", (ROOT / "docs" / "theory.md").read_text())
    shown = re.findall(r"\$\$(.*?)\$\$", text, flags=re.DOTALL)
    inline = re.findall(r"(?<!\$)\$([^$]+)\$(?!\$)", text)
    assert len(shown) >= 10
    for equation in (*shown, *inline):
        assert "<math" in mathml.tex2mathml(equation, as_block=True)
    limits = [equation for equation in inline if "munder" in mathml.tex2mathml(equation, as_block=False)]
    assert limits == []  # an index of an accented letter would stand below it


def test_every_bound_is_on_the_page_about_theory() -> None:
    from efhorizon.bounds.registry import registered_bounds

    text = (ROOT / "docs" / "theory.md").read_text()
    assert [bound.name for bound in registered_bounds() if f"`{bound.name}`" not in text] == []


def test_links_are_checked(tmp_path: Path) -> None:
    check = script("check_links")
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#x">1</a><a href="#here">2</a><img src="c.png">')
    (tmp_path / "b.html").write_text('<h1 id="y"></h1><a href="https://example.org/">1</a><a href="a.html">2</a>')
    broken, count = check.broken_links(tmp_path)
    assert count == 4
    assert broken == ["a.html: b.html#x: no such place in it", "a.html: c.png: not there"]


def test_sessions_are_typed_by_a_script(tmp_path: Path) -> None:
    sessions = script("sessions")
    assert ROOT / "docs" / "ten-minutes.md" in sessions.pages()
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- session -->\n```console\n$ echo took 3.2 s at 17 per second\nold\n$ pwd > x; cat x | wc -l\n```\n"
    )
    assert sessions.written(page) == (
        "<!-- session -->\n```console\n$ echo took 3.2 s at 17 per second\ntook ... at ... per second\n\n"
        "$ pwd > x; cat x | wc -l\n1\n```\n"
    )


@pytest.mark.slow
def test_the_sessions_are_up_to_date() -> None:
    """If this fails, run `make sessions`."""
    done = subprocess.run([sys.executable, str(SITE / "sessions.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_or_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("furo")
    command = [sys.executable, str(SITE / "build.py"), str(tmp_path / "site"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout
    theory = (tmp_path / "site" / "theory.html").read_text()
    assert theory.count("<math") > 50
    assert "cdn" not in theory
