"""The library as a newcomer uses it: `import efhorizon as ef`, scripts and notebooks."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import efhorizon as ef
from efhorizon.bounds.registry import PlainResult

NAME = "MiniGrid-Empty-5x5-v0"
SCRIPT = """
import sys
import efhorizon as ef
assert not {"numba", "torch", "matplotlib", "pandas"} & sys.modules.keys(), "import efhorizon must stay quick"
mdp = ef.build("FrozenLake-v1", arguments={"is_slippery": False}, horizon=12)
print(mdp)
print(ef.build("FrozenLake-v1", arguments={"is_slippery": False}, horizon=12).fingerprint() == mdp.fingerprint())
import efhorizon.build.pipeline, efhorizon.gorp, efhorizon.study
print(callable(ef.build), callable(ef.gorp), callable(ef.study), ef.build.pipeline.__name__)
"""


def test_a_script_needs_no_main_guard_and_import_is_quick(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "TabularMDP(FrozenLake-v1-is_slippery=False-T12: 11 states, 4 actions, horizon 12)",
        "True",
        "True True True efhorizon.build.pipeline",
    ]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mdp() -> ef.TabularMDP:
    table = ef.TabularMDP([[0, state + 1] for state in range(5)] + [[0, -1]], [[0, 0]] * 5 + [[0, 1]], 8)
    return table.with_metadata(id="lock")


def test_build_load_and_the_whole_way(here: Path) -> None:
    pytest.importorskip("minigrid")
    pytest.importorskip("jinja2")
    built = ef.build(NAME)
    assert ef.load(NAME).fingerprint() == built.fingerprint()
    assert ef.load(here / "tables" / NAME).metadata == built.metadata
    training = ef.train(built, algo="gorp", settings="k1")
    assert training.sample_complexity == 100**2 * 3  # T^2 A^k m with m = 1
    assert repr(training) == f"Training({NAME}, gorp: 30,000 timesteps; 1 of 1 runs solved)"
    study = ef.study(NAME, algos=["gorp"], settings="k1", max_k=1)
    assert repr(study) == "Study(study: 1 of 1 environments complete)"
    assert study.failures == {}
    assert "effective horizon, GORP (Lemma 5.3)" in study.correlations("gorp")
    assert ef.report(study) == here / "report" / "index.html"
    assert NAME in (here / "report" / "mdps.html").read_text()


def test_analyze_and_train_feed_a_report(here: Path, mdp: ef.TabularMDP) -> None:
    pytest.importorskip("jinja2")
    ef.train(mdp, algo="gorp", settings="k1")
    with pytest.raises(ef.StoreError, match="runs on lock but no analysis"):
        ef.report("results")
    ef.analyze(mdp, results="results")
    assert "lock" in (ef.report("results").parent / "mdps.html").read_text()
    with pytest.warns(UserWarning, match="not kept in results: reports are about undiscounted returns"):
        assert ef.analyze(mdp, gamma=0.5, results="results").gamma == 0.5


def test_any_gymnasium_environment(here: Path) -> None:
    frozen = ef.build("FrozenLake-v1", arguments={"is_slippery": False}, horizon=20, out="elsewhere")
    assert (frozen.num_states, frozen.horizon) == (11, 20)
    assert frozen.metadata["closed"]
    assert frozen.with_horizon(100).horizon == 100  # nothing was cut off
    assert not ef.build("FrozenLake-v1", arguments={"is_slippery": False}, horizon=2, out="elsewhere").metadata[
        "closed"
    ]
    with pytest.raises(ef.EfhorizonError, match="takes no arguments"):
        ef.build("freeway_10_fs30", arguments={"difficulty": 1})


def test_a_budget_that_is_spent(here: Path) -> None:
    with pytest.raises(ef.EfhorizonError, match=r"stopped by --max-states 3.*continues"):
        ef.build("FrozenLake-v1", arguments={"is_slippery": False}, max_states=3)


def test_progress_is_shown_on_request(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"arguments": {"is_slippery": False}, "horizon": 3}
    ef.build("FrozenLake-v1", **options)
    assert capsys.readouterr().err == ""
    ef.build("FrozenLake-v1", **options, out="again", progress=True)
    assert "FrozenLake-v1-is_slippery=False-T3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [("nothing", "no such table, and none of that name in tables/"), (NAME, f"efhorizon build {NAME} --out tables")],
)
def test_a_table_that_is_not_there(here: Path, name: str, message: str) -> None:
    with pytest.raises(ef.StoreError, match=message):
        ef.load(name)


def test_gorp_with_and_without_m(mdp: ef.TabularMDP) -> None:
    search = ef.gorp(mdp, k=1)
    assert search.m is not None
    assert search.sample_complexity == 8**2 * 2 * search.m
    assert ef.gorp(mdp, k=1, m=4 * search.m, runs=51, seed=1).success_rate > 0.5


def test_a_table_without_a_name_in_a_study(here: Path) -> None:
    with pytest.raises(ef.EfhorizonError, match="with_metadata"):
        ef.study(ef.TabularMDP([[0]], [[0]], 2), algos=["gorp"])


def test_texts_are_short(mdp: ef.TabularMDP) -> None:
    assert repr(mdp) == "TabularMDP(lock: 6 states, 2 actions, horizon 8)"
    assert repr(ef.analyze(mdp)).startswith("Analysis(lock: H = ")
    assert len(repr(ef.analyze(mdp))) < 80
    found = ef.gorp(mdp, k=1, m=50, runs=101, seed=0)
    assert repr(found) == f"Runs({found.num_optimal} of 101 optimal, {8**2 * 2 * 50:,} timesteps each)"
    search = ef.gorp(mdp, k=1)
    assert repr(search) == f"GorpSearch(k = 1: m = {search.m}; {search.results!r})"


def test_html_escapes_and_shows_the_start(mdp: ef.TabularMDP) -> None:
    html = mdp.with_metadata(id="<b>lock</b>")._repr_html_()
    assert "&lt;b&gt;lock" in html
    assert "<img" not in html
    screens = np.zeros((1, 8, 8, 3), np.uint8)
    seen = ef.TabularMDP(mdp.transitions, mdp.rewards, 8, screens=screens, screen_mapping=[0] * 6)
    assert "data:image/png;base64,iVBOR" in seen._repr_html_()
    assert "changed</th>" in seen.with_horizon(4)._repr_html_()
    shown = ef.analyze(mdp)._repr_html_()
    assert "effective horizon H" in shown
    assert "covering length" in shown
    unfinished = ef.TabularMDP([[0, 1], [-1, -1]], np.zeros((2, 2)), 4, unexplored=[False, True])
    assert "1 of them unexplored" in unfinished._repr_html_()
    assert "unfinished table" in ef.analyze(unfinished)._repr_html_()


def test_signatures_are_those_of_the_functions() -> None:
    assert list(inspect.signature(ef.build).parameters)[:2] == ["env", "horizon"]
    assert "steps" in inspect.signature(ef.train).parameters
    assert "algos" in inspect.signature(ef.study).parameters


def test_every_public_name_is_there_and_documented() -> None:
    assert set(ef.__all__) <= set(dir(ef))
    for name in ef.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(ef, name)), name


def huge(found: ef.Analysis) -> ef.Analysis:
    """An analysis with a bound that is larger than any float."""
    return replace(found, bounds={**found.bounds, "worst_case": PlainResult(3000 * 2**2999)})


def test_to_pandas(mdp: ef.TabularMDP, here: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = mdp.to_pandas()
    assert list(frame.columns) == ["state", "action", "name", "reward", "next_state", "ends"]
    assert frame[frame.ends].to_dict("records") == [
        {"state": 5, "action": 1, "name": "1", "reward": 1.0, "next_state": -1, "ends": True}
    ]
    found = ef.analyze(mdp)
    bounds = found.to_pandas()
    assert isinstance(bounds, pandas.DataFrame)
    assert bounds.loc["worst_case", "sample_complexity"] == found.bounds["worst_case"].sample_complexity
    unfinished = ef.TabularMDP([[0, 1], [-1, -1]], np.zeros((2, 2)), 4, unexplored=[False, True])
    assert ef.analyze(unfinished).to_pandas().loc["ucb", "high"] is None
    assert huge(found).to_pandas().loc["worst_case", "sample_complexity"] == 3000 * 2**2999
    runs = ef.train(mdp, algo="gorp", settings="k1").to_pandas()
    assert runs.setting.tolist() == ["k1"]


def test_plots(mdp: ef.TabularMDP) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = mdp.plot()
    states, values = figure.axes
    assert states.get_title() == "States that can be met"
    best, random = values.get_lines()
    assert best.get_ydata()[0] == 1.0
    assert random.get_ydata()[0] == pytest.approx(mdp.q_values(mdp.random_policy())[0, 0].mean())
    (axes,) = ef.analyze(mdp).plot().axes
    assert len(axes.patches) == sum(bound.sample_complexity is not None for bound in ef.analyze(mdp).bounds.values())
    assert "906.3" in str([text.get_text() for text in huge(ef.analyze(mdp)).plot().axes[0].texts])


@pytest.mark.parametrize(("module", "extra"), [("pandas", "pandas"), ("matplotlib", "plot")])
def test_what_is_missing_is_said(mdp: ef.TabularMDP, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, f"{module}.pyplot", None)
    for thing in (mdp, ef.analyze(mdp)):
        with pytest.raises(ef.MissingExtraError, match=rf"pip install 'efhorizon\[{extra}\]'"):
            (thing.to_pandas if module == "pandas" else thing.plot)()


def test_the_table_id_is_registered() -> None:
    assert "efhorizon/Table-v0" in gymnasium.registry
