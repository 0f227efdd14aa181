"""What a table's file says reaches neither the terminal nor the file system as anything but harmless text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from efhorizon import EfhorizonError, TabularMDP, examples
from efhorizon.commands import _terminal, main
from efhorizon.commands._tensorboard import Board
from efhorizon.io.tables import save
from efhorizon.render.terminal.layout import literal, printable

HOSTILE = {
    "title of the window": "\x1b]0;owned\x07name",
    "colours": "\x1b[31mred\x1b[2J",
    "markup": "[/bold][red]x[/]",
    "open markup": "[bold",
    "backslash": "x\\",
    "lines": "one\ntwo\r\nthree\u2028four",
    "direction": "a\u202eb\u200fc\u2066d",
    "nothing": "\x00\x7f\x9b31m",
    "half a character": "\ud800",
    "path": "/tmp/x",
    "option": "--json",
}
COMMANDS = (
    ["show", "TABLE"],
    ["analyze", "TABLE", "--max-k", "1"],
    ["analyze", "TABLE", "other", "--max-k", "1"],
    ["verify", "TABLE"],
    ["export", "TABLE", "out.npz"],
    ["gorp", "TABLE", "--m", "1", "--runs", "3"],
    ["train", "TABLE", "--algo", "gorp", "--settings", "k1", "--results", "results"],
)


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest) -> str:
    return HOSTILE[request.param]


def table(name: object) -> TabularMDP:
    mdp = examples.sparse_rewards(3)
    metadata = {"id": name, "suite": name, "game": name, "catalogue_name": name, "efhorizon": name}
    screens = np.zeros((mdp.num_states, 2, 2, 3), np.uint8)
    return TabularMDP(
        mdp.transitions, mdp.rewards, 3, screens=screens, screen_mapping=np.arange(mdp.num_states), metadata=metadata
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()
    save(table("other"), tmp_path / "tables" / "other.npz")
    save(table("harmless"), tmp_path / "tables" / "harmless.npz")
    return tmp_path


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: " ".join(arguments[:3]))
def test_every_command_prints_harmless_text(
    arguments: list[str],
    hostile: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save(table(hostile), folder / "tables" / "hostile.npz")
    codes, lines = [], []
    for name in ("harmless", "hostile"):
        for colour in ("", "1"):
            monkeypatch.setenv("FORCE_COLOR", colour) if colour else monkeypatch.delenv("FORCE_COLOR", raising=False)
            codes.append(main([name if word == "TABLE" else word for word in arguments]))
            captured = capsys.readouterr()
            shown = re.sub(r"\x1b\[[0-9;]*m", "", captured.out + captured.err)  # our own colours
            assert all(sign == "\n" or sign.isprintable() for sign in shown), repr(shown)
            if arguments[0] != "train":  # what is done is not done again
                lines.append(shown.count("\n"))
    assert len(set(codes)) == 1 or (arguments[0] == "train" and hostile == "\ud800")  # no row can hold it
    assert len(set(lines)) <= 1
    if "/" not in hostile and arguments[0] in ("show", "gorp"):
        assert printable(hostile).rstrip("\\") in shown


@pytest.mark.parametrize("verb", ["show", "analyze", "gorp"])
def test_json_is_ascii_and_says_the_name_as_it_is(
    verb: str, hostile: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(table(hostile), folder / "tables" / "hostile.npz")
    assert main([verb, "hostile", "--json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert all(sign == "\n" or sign.isprintable() for sign in out)
    assert json.loads(out)["id"] == hostile


def new_files(folder: Path) -> Iterator[Path]:
    """All files but rows, and notes of analyses, whose names are digests."""
    return (path for path in folder.rglob("*") if not {"results", ".analyses"} & set(path.parts))


def test_a_name_is_never_a_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pictures, rows and exports go where the user says, or into a name that is safe."""
    (folder / "elsewhere").mkdir()
    (folder / "work").mkdir()
    victim = folder / "elsewhere" / "x"
    for name in (str(victim), "../elsewhere/x", "..", "."):
        save(table(name), folder / "work" / "hostile.npz")
        before = set(new_files(folder))
        for arguments in (
            ["show", "--image", "work/a.png"],
            ["analyze", "--image", "work/b.png", "--max-k", "1"],
            ["train", "--algo", "gorp", "--settings", "k1", "--results", "work/results"],
        ):
            verb, *rest = arguments
            assert main([verb, "work/hostile.npz", *rest]) in (0, 1)
        assert {path.name for path in set(new_files(folder)) - before} <= {"a.png", "b.png"}
    assert not list((folder / "elsewhere").iterdir())
    capsys.readouterr()


@pytest.mark.parametrize("name", ["/tmp/x", "../x", "..", "a/b", "", "\x1b"])
def test_curves_for_tensorboard_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    task: Any = SimpleNamespace(id=name)
    with pytest.raises(EfhorizonError, match="cannot be used as the name of a file"):
        Board(tmp_path, [task])
    assert not list(tmp_path.iterdir())


def test_messages_are_one_line(capsys: pytest.CaptureFixture[str], hostile: str) -> None:
    assert _terminal.failed(EfhorizonError(f"{hostile}: not a table"), 1) == 1
    error = capsys.readouterr().err
    assert error == f"efhorizon: {printable(hostile)}: not a table\n"


def test_texts_while_waiting_are_no_markup(monkeypatch: pytest.MonkeyPatch, hostile: str) -> None:
    monkeypatch.setattr(_terminal, "is_live", lambda: True)
    with _terminal.waiting(hostile) as update:
        update(hostile)
    with _terminal.bars(_terminal.LineColumn("{task.description}")) as bars:
        bars.update(bars.add_task(hostile), description=hostile)
        bars.refresh()


def test_printable_and_literal() -> None:
    assert printable("plain \N{MINUS SIGN} 10⁶") == "plain \N{MINUS SIGN} 10⁶"
    assert printable("a\x1b]0;x\x07\n\u202e\ud800") == r"a\x1b]0;x\x07\n\u202e\ud800"
    assert literal("[/bold]") == r"\[/bold]"
