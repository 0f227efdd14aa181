"""What docs/library.md shows is true, and docs/api.md is what the docstrings say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import api_reference
import pytest

import efhorizon as ef

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 7
    test = doctest.DocTestParser().get_doctest("".join(blocks), {}, "library.md", None, 0)
    said: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert results.failed == 0, "".join(said)


def test_the_reference_is_up_to_date() -> None:
    """If this fails, run `make api`."""
    assert api_reference.PAGE.read_text() == api_reference.page()


def test_the_page_lists_every_public_name() -> None:
    named = set(re.findall(r"`ef\.(\w+)`", PAGE.read_text()))
    assert named == set(ef.__all__)


def test_every_method_of_the_page_exists() -> None:
    for owner, name in re.findall(r"`(mdp|analysis)\.(\w+)", PAGE.read_text()):
        assert hasattr(ef.TabularMDP if owner == "mdp" else ef.Analysis, name) or name == "metadata", name
