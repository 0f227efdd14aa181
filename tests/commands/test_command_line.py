"""What holds for every command: help, options, output through a pipe, completion, interruption."""

from __future__ import annotations

import argparse
import errno
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation_data import published_file

from efhorizon import TabularMDP, commands, examples
from efhorizon.agents.tabular.gorp_search import BUDGET, RUNS
from efhorizon.commands import _arguments, _groups, main
from efhorizon.commands._parser import command, parser, verbs
from efhorizon.io.tables import save
from efhorizon.mdp import MAX_HORIZON
from efhorizon.planning.problem import DEFAULT_MAX_K

SOURCE = Path(commands.__file__).parents[1]
GRIDWORLD = "MiniGrid-Empty-5x5-v0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables: a gridworld, one with a long name, an unfinished one, an npz."""
    pytest.importorskip("minigrid")
    path = tmp_path_factory.mktemp("pipes")
    assert main(["build", GRIDWORLD, "--out", str(path / "tables"), "--workers", "1", "--episodes", "1"]) == 0
    part = TabularMDP([[0, 1], [-1, -1]], np.zeros((2, 2)), 3, unexplored=[False, True])
    save(part, path / "tables" / "part")
    save(examples.sparse_rewards(4), path / "tables" / f"sparse-{'x' * 60}")
    save(examples.sparse_rewards(4), path / "tables" / "flat.npz")
    np.save(path / "uniform.npy", np.full((32, 3), 1 / 3))
    published_file(path / "summary.csv")
    return path


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


# Help


@pytest.mark.parametrize("verb", [None, *verbs()])
def test_help_fits_80_columns_and_says_what_to_type(
    verb: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*([verb] if verb else []), "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert max(map(len, text.splitlines())) <= 80
    assert "efhorizon build freeway_10_fs30" in text if verb is None else "\nexample:\n  " in text


@pytest.mark.parametrize(
    ("group", "verb"),
    [(group, verb) for group in ("policy", "dataset") for verb in _groups.verbs(f"efhorizon.commands.{group}")],
)
def test_help_of_commands_in_a_group(
    group: str, verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([group, verb, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert max(map(len, text.splitlines())) <= 80
    assert "--json" in text
    name, *arguments = shlex.split(_groups.command(f"efhorizon.commands.{group}", verb).EXAMPLE.splitlines()[0])
    assert name == "efhorizon"
    assert getattr(parser().parse_args(arguments), f"{group}_verb") == verb


@pytest.mark.parametrize("verb", verbs())
def test_examples_can_be_typed(verb: str) -> None:
    for line in command(verb).EXAMPLE.splitlines():
        for part in line.removeprefix('eval "$(').removesuffix(')"').split("&&"):
            name, *arguments = shlex.split(part)
            assert name == "efhorizon"
            assert parser().parse_args(arguments).verb in verbs()


def test_every_command_is_listed_once_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2  # nothing was asked for: help, and the exit code of wrong usage
    listed = re.findall(r"^  ([\w-]+) +\S", capsys.readouterr().out.split("commands:")[1].split("options:")[0], re.M)
    assert listed == verbs()
    assert listed.index("list") < listed.index("build") < listed.index("analyze") < listed.index("report")


def test_help_and_completion_load_nothing_heavy() -> None:
    heavy = {"numba", "torch", "pandas", "scipy", "zarr", "rich", "jinja2", "pyarrow", "argcomplete", "http.server"}
    program = "import sys; from efhorizon.commands._parser import parser; parser(); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not heavy.intersection(found.stdout.split())


def test_a_command_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "greet.py").write_text(
        'HELP, DESCRIPTION, EXAMPLE = "greet someone", "Greets.", "efhorizon greet Ada"\n'
        "def add_arguments(parser): parser.add_argument('who')\n"
        "def run(options): print('hello', options.who); return 0\n"
    )
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    assert verbs()[-1] == "greet"
    assert main(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"
    sys.modules.pop("efhorizon.commands.greet")


def test_python_m_efhorizon() -> None:
    found = subprocess.run([sys.executable, "-m", "efhorizon", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("efhorizon ")


# Options


def test_defaults_are_those_of_the_library() -> None:
    assert _arguments.MAX_K == DEFAULT_MAX_K
    assert _arguments.MAX_HORIZON == MAX_HORIZON
    text = _parser_of("gorp").format_help()
    assert f"default: {RUNS};" in text
    assert f"{BUDGET:,}" in text


def test_the_paper_s_budget_is_written_down_once() -> None:
    written = re.compile(r"\b5_000_000\b|\b5,000,000\b|\b5e6\b")
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if written.search(path.read_text())}
    assert found == {"agents/deep/protocol.py", "gorp/exact_success.py"}  # the latter: lattice points


def test_every_number_has_a_shared_type() -> None:
    """No option takes a bare int or float, so that 1e5 and 200k are understood everywhere."""
    for verb in verbs():
        for action in _parser_of(verb)._actions:
            assert action.type not in (int, float), (verb, action.dest)


def _parser_of(verb: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    command(verb).add_arguments(made)
    return made


@pytest.mark.parametrize("verb", ["verify", "show", "export", "analyze", "gorp", "train"])
def test_a_table_is_a_name_or_a_path(verb: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = {
        "verify": ["--episodes", "1"],
        "export": [str(here / "again.npz")],
        "analyze": ["--max-k", "1"],
        "gorp": ["--runs", "5"],
        "train": ["--algo", "gorp", "--settings", "k1", "--results", str(here / "results")],
    }.get(verb, [])
    assert main(["export", GRIDWORLD, "exported.npz"]) == 0
    (here / "elsewhere").mkdir(exist_ok=True)
    (here / "exported.npz").rename(here / "elsewhere" / f"{GRIDWORLD}.npz")
    for given in (
        [GRIDWORLD],
        [f"tables/{GRIDWORLD}"],
        [f"elsewhere/{GRIDWORLD}.npz"],
        [GRIDWORLD, "--tables", "elsewhere"],
    ):
        assert main([verb, given[0], *more, *given[1:]]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main([verb, "nothing", *more]) == 1
    assert "nothing: no such table, and none of that name in tables/" in capsys.readouterr().err


# Output through a pipe

OUTPUTS: dict[str, list[list[str]]] = {
    "list": [["list"]],
    "build": [["build", GRIDWORLD, "--workers", "1", "--episodes", "1"]],
    "verify": [["verify", GRIDWORLD, "--episodes", "1"]],
    "show": [["show", f"sparse-{'x' * 60}"], ["show", GRIDWORLD, "--image", f"{'y' * 90}.png"]],
    "export": [["export", GRIDWORLD, f"{'y' * 90}.npz"]],
    "analyze": [
        ["analyze", GRIDWORLD, "--max-k", "1"],
        ["analyze", "part"],
        ["analyze", GRIDWORLD, "flat", f"sparse-{'x' * 60}", "part", "--max-k", "1"],
    ],
    "what-if": [["what-if", GRIDWORLD, "--kind", "horizon", "discount"]],
    "diagnose": [["diagnose", GRIDWORLD, "--max-steps", "30k", "--max-k", "1", "--workers", "1"]],
    "gorp": [["gorp", GRIDWORLD]],
    "sqirl": [["sqirl", GRIDWORLD, "--m", "1", "--runs", "2"]],
    "train": [["train", GRIDWORLD, "--algo", "gorp", "--settings", "k1"]],
    "policy": [["policy", "show", GRIDWORLD, "--policy", "uniform.npy"]],
    "study": [
        ["study", GRIDWORLD, "pong_50_fs30", "MiniGrid-DoorKey-5x5-OpenDoorsPickupShaped-v0", "--forecast"],
        ["study", GRIDWORLD, "--algos", "none", "--max-k", "1"],
    ],
    "sticky": [["sticky", GRIDWORLD, "--algos", "none", "--workers", "1"]],
    "evaluate": [["evaluate", "summary.csv", "--resamples", "50"]],
    "report": [["report", "summary.csv", "--out", "site"]],
    "dataset": [
        ["dataset", "publish", "summary.csv", "published", "--tables", "tables"],
        ["dataset", "list", "--remote", "published"],
        ["dataset", "show", GRIDWORLD, "--remote", "published"],
        ["dataset", "verify", "published"],
        ["dataset", "import", ".", "--out", "authors"],
    ],
    "completion": [["completion", "bash"]],
}
NOT_RUN = {"demo", "serve"}  # takes minutes, and prints what `study` does; runs until Ctrl-C, and prints an address


def test_all_commands_are_piped() -> None:
    assert {*OUTPUTS, *NOT_RUN} == set(verbs())


@pytest.mark.parametrize("arguments", [arguments for each in OUTPUTS.values() for arguments in each], ids=" ".join)
def test_piped_output_is_never_cut_off_or_wrapped(
    arguments: list[str], here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if arguments[0] in ("study", "report"):
        pytest.importorskip("jinja2")
    shown = []
    for settings in ({}, {"COLUMNS": "40"}, {"COLUMNS": "40", "FORCE_COLOR": "1"}):
        for name in ("COLUMNS", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code, captured = main(arguments), capsys.readouterr()
        assert code == 0, captured.err
        shown.append([_without_changes(captured.out), _without_changes(captured.err)])
    assert "…" not in str(shown)
    assert shown[1][0] == shown[0][0]
    assert shown[2][0] == shown[0][0]
    assert shown[2][1] == shown[1][1]  # the first run may have had more to do


def _without_changes(text: str) -> list[str]:
    """Lines without colours, blanks and what differs from run to run: durations and rates."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return [
        re.sub(r"[\d.,]+ (ms|s|min|per second|kB|MB|GB)\b", "#", " ".join(line.split())) for line in plain.splitlines()
    ]


def test_list_names_everything(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for name in _arguments.environment_names():
        assert re.search(rf"\s{re.escape(re.sub(r'_[0-9]+_fs', '_T_fs', name))}\s", out)
    assert out.endswith("environments; build one with: efhorizon build NAME\n")


@pytest.mark.parametrize("more", ["", " --json"])
def test_a_reader_may_stop_early(more: str) -> None:
    script = f"set -o pipefail; {shlex.quote(sys.executable)} -m efhorizon list{more} | head -1"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1


def test_other_encodings_lose_no_more_than_a_sign(here: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command_line = [sys.executable, "-m", "efhorizon", "analyze", "flat"]
    result = subprocess.run(command_line, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "kept in results (for a web page: efhorizon report results)\n")
    assert "Effective horizon = " in result.stdout


# Completion


def completions(line: str, folder: Path) -> list[str]:
    """What the shell is offered after a line, asked for as argcomplete's script for bash does."""
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    script = f"{shlex.quote(sys.executable)} -m efhorizon 8>&1 9>/dev/null >/dev/null"
    result = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=False
    )
    return [word.strip() for word in result.stdout.split("\n") if word.strip()]


@pytest.mark.parametrize(
    ("line", "some", "not_there"),
    [
        ("efhorizon ", ["build", "analyze", "completion"], "freeway_10_fs30"),
        ("efhorizon an", ["analyze"], "build"),
        ("efhorizon build freew", ["freeway_10_fs30", "freeway_200_fs30"], "pong_10_fs30"),
        ("efhorizon build --max-", ["--max-states", "--max-minutes", "--max-memory"], "--merge"),
        ("efhorizon analyze ", [GRIDWORLD, "flat"], "searches"),
        ("efhorizon show fl", ["flat"], GRIDWORLD),
        ("efhorizon train --tables elsewhere ", ["other"], "flat"),
        ("efhorizon list --suite ", ["atari", "minigrid", "procgen"], "gymnasium"),
        ("efhorizon study mini", ["minigrid"], "atari"),
        ("efhorizon train x --algo ", ["dqn", "gorp", "ppo"], "paper"),
    ],
)
def test_completion(line: str, some: list[str], not_there: str, folder: Path) -> None:
    save(examples.sparse_rewards(3), folder / "elsewhere" / "other.npz")
    found = completions(line, folder)
    assert set(some) <= set(found)
    assert not_there not in found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "efhorizon" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        registered = subprocess.run(
            ["bash", "-c", f"{script}\ncomplete -p efhorizon"], capture_output=True, text=True, check=True
        )
        assert registered.stdout.strip().endswith("efhorizon")


# Memory


def out_of_memory() -> list[BaseException]:
    """What NumPy, Numba, the system and torch raise."""
    with pytest.raises(MemoryError) as caught:
        np.empty(2**62, np.uint8)
    return [
        caught.value,
        MemoryError("Allocation failed (probably too large)."),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes."),
    ]


@pytest.mark.parametrize("error", out_of_memory(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    ("arguments", "where", "kept"),
    [
        (["analyze", "flat"], "efhorizon.library.analyzing.analyze", ": nothing is kept"),
        (["show", "flat"], "efhorizon.io.tables.load", ": nothing is kept"),
        (
            ["build", GRIDWORLD],
            "efhorizon.build.pipeline.build",
            ": the states found so far are kept; run the same command to continue",
        ),
    ],
)
def test_out_of_memory_is_said_in_one_line(
    arguments: list[str],
    where: str,
    kept: str,
    error: BaseException,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(where, failing)
    assert main(arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"efhorizon: out of memory{kept}"


def test_other_errors_of_the_program_are_not_hidden(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("efhorizon.io.tables.load", failing)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["show", "flat"])


# Interruption


NOTHING = "nothing is kept"
GO_ON = "run the same command to continue"


@pytest.mark.parametrize(
    ("arguments", "where", "message"),
    [
        ("list", "efhorizon.catalog.entries", NOTHING),
        ("show flat", "efhorizon.io.tables.load", NOTHING),
        ("verify flat", "efhorizon.io.tables.load", NOTHING),
        ("export flat flat-again.npz", "efhorizon.build.published.published_table", NOTHING),
        ("analyze flat", "efhorizon.library.analyzing.analyze", NOTHING),
        ("what-if flat", "efhorizon.what_if.trials.what_if", NOTHING),
        ("gorp flat --json", "efhorizon.commands._gorp.learning_curve", NOTHING),
        ("sqirl flat", "efhorizon.stochastic.sqirl.least_m", NOTHING),
        (f"gorp {GRIDWORLD} --live --m 1", "efhorizon.commands._gorp.live_gorp", NOTHING),
        (f"gorp {GRIDWORLD} --live --m 1 --checkpoints none", "efhorizon.commands._gorp.live_gorp", NOTHING),
        (
            f"gorp {GRIDWORLD} --live --m 1 --checkpoints some",
            "efhorizon.commands._gorp.live_gorp",
            f"checkpoints are kept; {GO_ON}",
        ),
        (f"build {GRIDWORLD} --out none", "efhorizon.build.pipeline.build", NOTHING),
        (f"build {GRIDWORLD}", "efhorizon.build.pipeline.build", f"the states found so far are kept; {GO_ON}"),
        (f"train {GRIDWORLD} --algo gorp --results none", "efhorizon.study.tasks.tasks", NOTHING),
        (
            f"train {GRIDWORLD} --algo gorp --results some",
            "efhorizon.study.tasks.tasks",
            f"finished runs are kept; {GO_ON}",
        ),
        (f"study {GRIDWORLD} --out some --forecast", "efhorizon.study.forecast.forecast", NOTHING),
        (f"study {GRIDWORLD} --out none", "efhorizon.commands._study.study", NOTHING),
        (f"study {GRIDWORLD} --out some", "efhorizon.commands._study.study", f"what is done is kept; {GO_ON}"),
        (f"sticky {GRIDWORLD} --out none", "efhorizon.study.sticky_study.run", NOTHING),
        (f"sticky {GRIDWORLD} --out some", "efhorizon.study.sticky_study.run", f"what is done is kept; {GO_ON}"),
        (f"diagnose {GRIDWORLD} --results none", "efhorizon.diagnose.diagnosing.diagnosed", NOTHING),
        ("demo --out none", "efhorizon.commands._study.run_plan", NOTHING),
        ("demo --out some", "efhorizon.commands._study.run_plan", f"what is done is kept; {GO_ON}"),
        ("evaluate summary.csv", "efhorizon.evaluation.source.study_data", NOTHING),
        (
            "evaluate summary.csv --export a --publish b",
            "efhorizon.evaluation.source.study_data",
            "each file in a and b is complete, but some may be of before; run the same command again",
        ),
        ("report summary.csv --out some", "efhorizon.render.html.write_report", NOTHING),
        ("serve some", "efhorizon.render.html.server.report_server", NOTHING),
        ("completion bash", "efhorizon.commands.completion.run", NOTHING),
        ("policy record freeway_10_fs30 --optimal", "efhorizon.commands.policy.record.run", NOTHING),
        ("policy clone freeway_10_fs30 some --out c.npz", "efhorizon.commands.policy.clone.run", NOTHING),
        ("policy show flat --policy uniform.npy", "efhorizon.io.tables.load_table", NOTHING),
        ("policy tabulate flat --policy c.npz --out t.npy", "efhorizon.commands.policy.tabulate.run", NOTHING),
        ("policy pretrain maze --out none", "efhorizon.commands.policy.pretrain.run", NOTHING),
        ("dataset publish none out", "efhorizon.dataset.publish.publish", NOTHING),
        ("dataset list --remote some", "efhorizon.dataset.cache.asked", NOTHING),
        ("dataset show maze --remote some", "efhorizon.dataset.cache.asked", NOTHING),
        (
            "dataset download maze --remote some",
            "efhorizon.dataset.cache.asked",
            "what has come is kept; the same command continues",
        ),
        ("dataset verify some", "efhorizon.dataset.checking.check_folder", NOTHING),
        ("dataset import some", "efhorizon.evaluation.original.original", NOTHING),
        (
            "policy pretrain maze --out some",
            "efhorizon.commands.policy.pretrain.run",
            f"the run is kept; {GO_ON}",
        ),
    ],
)
def test_an_interrupted_command_says_what_is_kept(
    arguments: str,
    where: str,
    message: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`none` is not there, and in `some` are things of before."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    (here / "some").mkdir(exist_ok=True)
    (here / "some" / "maze.checkpoint.npz").touch()
    monkeypatch.setattr(where, interrupted)
    assert main(shlex.split(arguments)) == 130
    assert capsys.readouterr().err.splitlines()[-1] == f"efhorizon: interrupted: {message}"


def test_every_command_is_in_the_list_of_interruptions() -> None:
    (mark,) = test_an_interrupted_command_says_what_is_kept.pytestmark  # type: ignore[attr-defined]
    typed = [shlex.split(arguments) for arguments, *_ in mark.args[1]]
    assert {words[0] for words in typed} == set(verbs())
    for group in ("policy", "dataset"):
        assert {words[1] for words in typed if words[0] == group} == set(_groups.verbs(f"efhorizon.commands.{group}"))


def test_an_error_is_never_longer_than_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "x" * 5_000]) != 0
    error = capsys.readouterr().err
    assert len(error) < 600
    assert error.endswith(" ...\n")
