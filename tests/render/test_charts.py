"""Charts: what they place where, computed by hand."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from markupsafe import Markup

from efhorizon.render.charts.bars import Bar, layer_chart, min_k_chart
from efhorizon.render.charts.concept import concept
from efhorizon.render.charts.histogram import histogram_scale, return_axis, return_histogram
from efhorizon.render.charts.ladder import Rung, ladder
from efhorizon.render.charts.learning import learning_chart
from efhorizon.render.charts.scatter import Point, scatter
from efhorizon.render.learning_curves import Curve

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: Markup) -> ElementTree.Element:
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == ("img" if root.find(f".//{SVG}a") is None else "group")  # links must be reachable
    assert root.get("aria-label") == root.findtext(f"{SVG}title")
    return root


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in root.iter() if name in (each.get("class") or "").split()]


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


def place(mark: ElementTree.Element) -> tuple[float, float]:
    found = re.fullmatch(r"translate\((\S+) (\S+)\)", mark.get("transform") or "")
    assert found is not None
    return float(found[1]), float(found[2])


POINTS = [
    Point("easy", "atari", 4.0, 1e4, "mdps/easy.html", "k1"),
    Point("hard", "minigrid", 7.0, 1e6, "mdps/hard.html", "k2"),
    Point("lost", "procgen", 8.0, math.inf, "mdps/lost.html", "k3"),
    Point("<b>", "unheard-of", math.inf, 1e5),
]


def test_scatter_places_marks_on_logarithmic_axes() -> None:
    root = parsed(scatter(POINTS, bound_title="UCB", algorithm="PPO", width=360, height=320))
    easy, hard, lost, infinite = (place(mark) for mark in of_class(root, "mark"))
    # x from 3.75 to 8.25 on 50 ... 318 pixels, as an infinite bound takes 30; y from 3.75 to 6.25 on 274 ... 44
    assert easy == pytest.approx((50 + 0.25 / 4.5 * 268, 274 - 0.1 * 230), abs=0.06)
    assert hard == pytest.approx((50 + 3.25 / 4.5 * 268, 274 - 0.9 * 230), abs=0.06)
    assert lost[0] == pytest.approx(50 + 4.25 / 4.5 * 268, abs=0.06)
    assert 14 < lost[1] < 44  # in the band above
    assert infinite == pytest.approx((333, 274 - 0.5 * 230), abs=0.06)  # in the band at the right
    assert "not solved by PPO" in texts(root)


def test_scatter_names_and_links_every_mdp() -> None:
    root = parsed(scatter(POINTS, bound_title="UCB", algorithm="PPO"))
    links = list(root.iter(f"{SVG}a"))
    assert [link.get("href") for link in links] == ["mdps/easy.html", "mdps/hard.html", "mdps/lost.html"]
    assert [link.get("data-mdp") for link in links] == ["k1", "k2", "k3"]
    assert links[0].findtext(f"{SVG}title") == "easy\nbound 10,000, needed 10,000"
    assert links[2].findtext(f"{SVG}title") == "lost\nbound 1.0×10⁸, needed not solved"  # noqa: RUF001
    assert [mark.get("class") for mark in of_class(root, "mark")][-1] == "mark suite-other"


def test_the_diagonal_is_where_both_are_equal() -> None:
    root = parsed(scatter(POINTS[:2], bound_title="UCB", algorithm="PPO", width=360, height=320))
    (diagonal,) = of_class(root, "diagonal")
    # x from 3.75 to 7.25 on 50 ... 348 pixels, y from 3.75 to 6.25 on 274 ... 44: both have 3.75 ... 6.25
    ends = [float(diagonal.get(name) or "") for name in ("x1", "y1", "x2", "y2")]
    assert ends == pytest.approx([50, 274, 50 + 2.5 / 3.5 * 298, 44], abs=0.01)


def test_scatter_legend_has_the_suites_that_are_there() -> None:
    root = parsed(scatter(POINTS[:2], bound_title="UCB", algorithm="PPO", with_legend=True))
    assert [name for name in texts(root) if name in ("Atari", "Procgen", "MiniGrid")] == ["Atari", "MiniGrid"]


@pytest.mark.parametrize("points", [[], POINTS[:1], POINTS[2:3], POINTS[3:]])
def test_scatter_of_few_points(points: list[Point]) -> None:
    parsed(scatter(points, bound_title="UCB", algorithm="DQN"))


def curve(algorithm: str, steps: list[float], returns: list[float], spread: float = 1.0) -> Curve:
    middle = np.array(returns, float)
    return Curve(algorithm, "a", 5, np.array(steps, float), middle, middle - spread, middle + spread)


def points_of(drawn: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = re.findall(r"[ML]?(-?[\d.]+) (-?[\d.]+)", drawn.get("d") or "")
    return [(float(x), float(y)) for x, y in pairs]


def test_learning_curves_on_a_logarithmic_axis() -> None:
    root = parsed(
        learning_chart([curve("ppo", [1e4, 1e5, 1e6], [0, 5, 9])], name="mdp", optimal_return=10, width=680, height=360)
    )
    line = next(each for each in of_class(root, "curve") if each.tag == f"{SVG}path")
    # x: 10^4 ... 10^6 on 66 ... 664; y: returns -1 ... 10 with a margin of 6% on 314 ... 40
    scale = 274 / (11 * 1.12)
    expected = [(66, 314 - (0 + 1.66) * scale), (365, 314 - (5 + 1.66) * scale), (664, 314 - (9 + 1.66) * scale)]
    assert points_of(line) == [pytest.approx(point, abs=0.01) for point in expected]
    (shade,) = of_class(root, "range")
    assert len(points_of(shade)) == 6
    assert "optimal 10" in texts(root)


def test_learning_curves_on_a_linear_axis() -> None:
    root = parsed(
        learning_chart([curve("dqn", [0, 5e5, 1e6], [0, 5, 10])], name="mdp", optimal_return=10, steps_axis="linear")
    )
    line = next(each for each in of_class(root, "curve") if each.tag == f"{SVG}path")
    assert [x for x, _ in points_of(line)] == pytest.approx([66, 365, 664])
    assert {"0", "200k", "1M"} <= set(texts(root))


def test_the_idle_beginning_of_gorp_is_left_out() -> None:
    gorp = curve("gorp", [1, 100, 5e3, 6e3, 1e5], [0, 0, 0, 4, 8])
    root = parsed(learning_chart([gorp], name="mdp", optimal_return=10))
    line = next(each for each in of_class(root, "curve") if each.tag == f"{SVG}path")
    # the axis goes from 10^3, the power of ten below the last idle step, to 10^5
    assert [x for x, _ in points_of(line)] == pytest.approx(
        [66, *(66 + (math.log10(step) - 3) / 2 * 598 for step in (5e3, 6e3, 1e5))], abs=0.01
    )
    idle = curve("gorp", [1, 1e6], [0, 0])
    ppo = curve("ppo", [1e4, 1e5], [0, 3])
    both = parsed(learning_chart([ppo, idle], name="mdp", optimal_return=10))
    assert "1k" not in texts(both)
    assert "10k" in texts(both)


def test_equal_returns_need_only_their_ends() -> None:
    flat = curve("ppo", [1e4 * step for step in range(1, 201)], [3.0] * 200, spread=0)
    root = parsed(learning_chart([flat], name="mdp", optimal_return=10))
    line = next(each for each in of_class(root, "curve") if each.tag == f"{SVG}path")
    assert len(points_of(line)) == 2


def test_a_learning_chart_of_one_point_and_of_no_reward() -> None:
    parsed(learning_chart([curve("gorp", [100], [0], spread=0)], name="<mdp>", optimal_return=0))


def test_histogram_bars_are_as_high_as_their_probability() -> None:
    scale = histogram_scale([((0, 1), (0.75, 0.25))])
    assert not scale.is_log
    root = parsed(
        return_histogram((0, 1), (0.75, 0.25), scale=scale, mean=0.25, name="UP", is_optimal=True, width=340, height=58)
    )
    bars = of_class(root, "bar")
    assert [float(bar.get("height") or "") for bar in bars] == pytest.approx([44, 44 / 3], abs=0.01)
    (mean,) = of_class(root, "mean")
    assert float(mean.get("x1") or "") == pytest.approx(16 + 0.25 * (320 - 16))


def test_tiny_probabilities_are_stems_on_a_logarithmic_axis() -> None:
    law = ((0.0, 1.0), (1 - 1e-10, 1e-10))
    scale = histogram_scale([law])
    assert scale.is_log
    root = parsed(return_histogram(*law, scale=scale, mean=1e-10, name="UP", is_optimal=False))
    stems = [each for each in of_class(root, "stem") if each.tag == f"{SVG}circle"]
    heights = [float(each.get("cy") or "") for each in stems]
    # 10^-10.5 ... 10^0 on 52 ... 8 pixels
    assert heights == pytest.approx([8, 52 - 0.5 / 10.5 * 44], abs=0.01)
    parsed(return_axis(scale))


def test_a_certain_return() -> None:
    scale = histogram_scale([((5.0,), (1.0,))])
    parsed(return_histogram((5.0,), (1.0,), scale=scale, mean=5.0, name="UP", is_optimal=True))


def test_min_k_bars_are_stacked() -> None:
    root = parsed(min_k_chart([Bar("1", 6, 2), Bar("2", 0, 2)], width=440, height=300))
    drawn = [each for each in of_class(root, "bar") if each.find(f"{SVG}title") is not None]
    heights = [float(each.get("height") or "") for each in drawn]
    one = (254 - 44) / (8 * 1.08)  # pixels an MDP
    assert heights == pytest.approx([6 * one, 2 * one, 2 * one], abs=0.01)
    assert [each.findtext(f"{SVG}title") for each in drawn] == [
        "k = 1: 6 solved",
        "k = 1: 2 unsolved",
        "k = 2: 2 unsolved",
    ]
    assert "not run" not in texts(root)
    assert "not run" in texts(parsed(min_k_chart([Bar("1", 0, 0, 3)])))


def test_layers_that_differ_much_have_a_logarithmic_axis() -> None:
    assert "10³" in texts(parsed(layer_chart([1, 10, 100, 1000])))
    assert "10³" not in texts(parsed(layer_chart([1, 2, 3])))
    root = parsed(layer_chart(list(range(1, 1001))))
    assert len(of_class(root, "layer")) <= 150
    assert len(of_class(parsed(layer_chart([1, 0, 5])), "layer")) == 2


def test_ladder_shows_bounds_beyond_its_axis_as_arrows() -> None:
    rungs = [
        Rung("effective horizon", 4.0, "horizon"),
        Rung("worst case", 80.0, "bound"),
        Rung("goal", None, "bound"),
        Rung("PPO", 5.0, "practice", (1e5, math.inf, 2e5)),
        Rung("DQN", math.inf, "practice", (math.inf,)),
    ]
    root = parsed(ladder(rungs, name="mdp"))
    shapes = [each.tag.removeprefix(SVG) for each in of_class(root, "rung")]
    assert shapes == ["circle", "path", "circle"]
    assert len(of_class(root, "run")) == 2
    shown = texts(root)
    assert {"does not apply", "not solved", "10,000", "100,000"} <= set(shown)


def test_the_concept_is_always_the_same_picture() -> None:
    assert concept() == concept()
    parsed(concept())
