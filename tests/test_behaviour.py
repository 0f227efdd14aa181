"""Behaviour versions: refactoring voids nothing stored, and a change of the source asks its question."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import behaviour
import pytest

from efhorizon.io.behaviour import is_version, source_digest, version_name


def test_every_change_of_a_component_was_answered() -> None:
    """If this fails, it asks you something: read it, then raise a number or run `make same-behaviour`."""
    assert behaviour.questions() == []


@pytest.mark.parametrize(
    ("module", "asked"),
    [
        ("agents/deep/ppo_flat.py", "efhorizon.agents.deep.ppo_flat"),  # a learner
        ("planning/_kernels.py", "efhorizon.bounds.analysis"),  # a kernel
        ("build/expand.py", "efhorizon.build.explore"),  # the explorer
    ],
)
def test_renaming_a_local_variable_asks_the_question(module: str, asked: str, tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(behaviour.SOURCE / "efhorizon", source / "efhorizon", ignore=shutil.ignore_patterns("__pycache__"))
    file = source / "efhorizon" / module
    text, count = re.subn(r"\baction\b", "renamed", file.read_text())
    assert count
    file.write_text(text)
    questions = behaviour.questions(source)
    assert [question for question in questions if question.startswith(f"{asked}: ")]
    assert all("raise BEHAVIOUR" in question and "make same-behaviour" in question for question in questions)


def test_comments_and_docstrings_ask_nothing(tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(behaviour.SOURCE / "efhorizon", source / "efhorizon", ignore=shutil.ignore_patterns("__pycache__"))
    file = source / "efhorizon/build/explore.py"
    file.write_text(re.sub(r'""".*?"""', '"""Other words."""', file.read_text(), flags=re.DOTALL) + "# a comment\n")
    assert behaviour.questions(source) == []


def test_the_number_voids_what_was_made_before() -> None:
    assert version_name("gorp", 1) != version_name("gorp", 2)
    assert version_name("table", 1, 2) != version_name("table", 2, 1)
    assert is_version(version_name("analysis", 1), "analysis", 1)
    assert not is_version(version_name("analysis", 1), "analysis", 2)
    assert is_version("b992dc0fe3d7c38c", "analysis", 1)  # one that data/study holds
    assert not is_version("b992dc0fe3d7c38c", "analysis", 2)
    assert not is_version("b992dc0fe3d7c38c", "gorp", 1)


def test_the_digest_looks_at_what_source_does() -> None:
    assert source_digest("x = 1") == source_digest('"""Docs."""\nx = (1)  # why\n')
    assert source_digest("x = 1") != source_digest("y = 1")
