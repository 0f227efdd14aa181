"""Numbers for people."""

from __future__ import annotations

import math

import pytest

from efhorizon.render import numbers
from efhorizon.render.numbers import MINUS, MISSING, TIMES


@pytest.mark.parametrize(
    ("log10", "shown"),
    [
        (math.log10(5400), "5,400"),
        (math.log10(999_999), "999,999"),
        (6.0, f"1.0{TIMES}10⁶"),
        (math.log10(9.96e6), f"1.0{TIMES}10⁷"),  # rounds up into the next power
        (80.5, f"3.2{TIMES}10⁸⁰"),
        (math.inf, "∞"),
        (None, MISSING),
        (math.nan, MISSING),
    ],
)
def test_from_log10(log10: float | None, shown: str) -> None:
    assert numbers.from_log10(log10) == shown


def test_steps_takes_integers_that_no_float_can_hold() -> None:
    assert numbers.steps(3 * 10**400) == f"3.0{TIMES}10⁴⁰⁰"
    assert numbers.steps(math.inf) == "∞"
    assert numbers.steps(0) == "0"
    assert numbers.steps(12_345) == "12,345"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0.0182390, "0.0182"),
        (1.7014e-11, f"1.7{TIMES}10⁻¹¹"),
        (8213.4, "8,213"),
        (-0.5, f"{MINUS}0.5"),
        (2.5e7, f"2.5{TIMES}10⁷"),
        (0.0, "0"),
        (-math.inf, f"{MINUS}∞"),
        (None, MISSING),
    ],
)
def test_significant(number: float | None, shown: str) -> None:
    assert numbers.significant(number) == shown


def test_ratio_is_written_as_in_the_paper() -> None:
    shown = [numbers.ratio(math.log10(value)) for value in (2.3, 7.3, 31, 121, 8.0e4, 7.2e10)]
    assert shown == ["2.3", "7.3", "31", "121", f"8.0{TIMES}10⁴", f"7.2{TIMES}10¹⁰"]
    assert numbers.ratio(math.inf) == "∞"
    assert numbers.ratio(400.0) == f"1.0{TIMES}10⁴⁰⁰"  # beyond floats


def test_percent_never_rounds_to_nothing_or_all() -> None:
    assert [numbers.percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)] == ["0%", "<1%", "50%", ">99%", "100%"]


def test_short_steps_and_seconds() -> None:
    assert [numbers.short_steps(steps) for steps in (500, 10_000, 5_000_000, 2e9)] == ["500", "10k", "5M", "2G"]
    assert [numbers.seconds(duration) for duration in (0.84, 12.5, 90, 7200, None)] == [
        "0.84 s",
        "12 s",
        "1.5 min",
        "2.0 h",
        MISSING,
    ]


def test_durations_and_sizes_with_their_units() -> None:
    assert numbers.seconds_span(20, 240) == "20 s to 4 min"
    assert numbers.seconds_span(120, 240) == "2 to 4 min"
    assert numbers.seconds_span(3 * 86_400, None) == "at least 3 days"
    assert numbers.size_span(0.7e9, 1.5e9) == "0.7 to 1.5 GB"
    assert numbers.size_span(2e6, 2e6) == numbers.size(2e6) == "2 MB"
    assert numbers.size_span(3e9, None) == "at least 3 GB"
    assert [numbers.size(amount) for amount in (0, 500, 1.5e3, 2.5e12)] == ["0 kB", "0.5 kB", "1.5 kB", "2.5 TB"]


def test_counted_things() -> None:
    assert numbers.counted(1, "table") == "1 table"
    assert numbers.counted(1200, "table") == "1,200 tables"
    assert numbers.counted(0, "analysis", "analyses") == "0 analyses"


def test_steps_needed() -> None:
    assert [numbers.steps_needed(steps) for steps in (None, 12345.0, math.inf)] == [MISSING, "12,345", "not solved"]


def test_plain_numbers_can_be_copied() -> None:
    shown = [numbers.plain_from_log10(log10) for log10 in (0.0, 1.49, 3.2, 10.857, 999.9999, math.inf)]
    assert shown == ["1", "31", "1585", "7.2e10", "1.0e1000", "infinite"]
    assert [numbers.plain_number(number) for number in (3, 0.126, math.inf)] == ["3", "0.13", "infinite"]


def test_decimal_has_a_true_minus_sign() -> None:
    assert numbers.decimal(-0.361) == f"{MINUS}0.36"
    assert numbers.decimal(math.nan) == MISSING
    assert numbers.count(1234567) == "1,234,567"
