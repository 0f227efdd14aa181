"""The small picture that explains the effective horizon: GORP tries all beginnings and samples the rest."""

from __future__ import annotations

import math

from markupsafe import Markup

from efhorizon.render.charts.svg import chart, element, joined, line, path, text

_K, _NUM_LEAVES, _ROLLOUTS, _STEPS = 2, 4, 3, 9
_LEFT, _TREE, _END = 26, 190, 430  # where the tree begins, where it ends, where episodes end
_MIDDLE, _SPREAD = 112, 88


def concept() -> Markup:
    """A tree of all action sequences of length k, and from each of its leaves m random episodes to the horizon."""
    return chart(
        470,
        250,
        "GORP: from the current state try every sequence of k actions, continue each with m random episodes, keep the "
        "sequence with the best mean return, take its first action",
        _tree(),
        joined(_rollouts(leaf) for leaf in range(_NUM_LEAVES)),
        element("circle", cx=_LEFT, cy=_MIDDLE, r=6, class_="concept-root"),
        _bracket(_LEFT, _TREE, "all Aᵏ action sequences"),
        _bracket(_TREE + 8, _END, "m random episodes after each"),
        text(_END + 10, _leaf_height(_BEST) + 4, "best", "concept-best-label"),
    )


_BEST = 1  # the leaf whose episodes have the best mean


def _leaf_height(leaf: int) -> float:
    return _MIDDLE + _SPREAD * (2 * leaf / (_NUM_LEAVES - 1) - 1)


def _height(depth: int, number: int) -> float:
    """Of a node: halfway between its children."""
    if depth == _K:
        return _leaf_height(number)
    return (_height(depth + 1, 2 * number) + _height(depth + 1, 2 * number + 1)) / 2


def _tree() -> Markup:
    width = (_TREE - _LEFT) / _K
    parts = []
    for depth in range(_K):
        for number in range(2**depth):
            for child in (2 * number, 2 * number + 1):
                is_best = child == _BEST >> (_K - depth - 1)
                x = _LEFT + depth * width
                edge = line(
                    x,
                    _height(depth, number),
                    x + width,
                    _height(depth + 1, child),
                    "concept-best" if is_best else "concept-edge",
                )
                parts.append(edge)
    dots = [
        element("circle", cx=_LEFT + depth * width, cy=_height(depth, number), r=3.5, class_="concept-node")
        for depth in range(1, _K + 1)
        for number in range(2**depth)
    ]
    return joined(parts + dots)


def _rollouts(leaf: int) -> Markup:
    """Random walks by a fixed rule, so that the picture is always the same."""
    parts = []
    for rollout in range(_ROLLOUTS):
        y = _leaf_height(leaf)
        points = [(float(_TREE), y)]
        for step in range(1, _STEPS + 1):
            target = _leaf_height(leaf) + (rollout - 1) * 15 * min(1.0, step / 3)
            wobble = 5 * math.sin(1.7 * step + 2.3 * rollout + 1.1 * leaf)
            points.append((_TREE + step * (_END - _TREE) / _STEPS, target + wobble))
        parts.append(
            element("path", d=path(points), class_="concept-rollout best" if leaf == _BEST else "concept-rollout")
        )
    return joined(parts)


def _bracket(left: float, right: float, content: str) -> Markup:
    y = _MIDDLE + _SPREAD + 26
    corner = path([(left, y - 6), (left, y), (right, y), (right, y - 6)])
    return element("path", d=corner, class_="concept-bracket") + text(
        (left + right) / 2, y + 17, content, "label middle"
    )
