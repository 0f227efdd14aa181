"""Counts, sizes, times and shares as people write them."""

from __future__ import annotations

import argparse

import pytest

from efhorizon.commands import _types


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("100000", 100_000),
        ("100,000", 100_000),
        ("100_000", 100_000),
        ("1e5", 100_000),
        ("2.5E3", 2_500),
        ("200k", 200_000),
        ("5M", 5_000_000),
        ("1.5m", 1_500_000),
        ("2G", 2_000_000_000),
        (" 7 ", 7),
        ("1e20", 10**20),  # exactly
        ("123456789012345678901", 123456789012345678901),
    ],
)
def test_counts(text: str, number: int) -> None:
    found = _types.count()(text)
    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize(
    "text", ["", "abc", "1.5", "1e-3", "5X", "k", "nan", "inf", "1e999999999", "1,00", "5 000", "0x10"]
)
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        _types.count()(text)
    assert str(caught.value) == f"{text!r} is not a whole number; write it as 100000, 1e5, 200k or 5M"


def test_counts_have_a_least_value() -> None:
    assert _types.count(least=0)("0") == 0
    with pytest.raises(argparse.ArgumentTypeError, match="must be at least 1, such as 5; got 0"):
        _types.count()("0")
    with pytest.raises(argparse.ArgumentTypeError, match="must be at least 0, such as 4; got -2k"):
        _types.count(least=0)("-2k")


def test_counts_may_have_a_largest_value() -> None:
    assert _types.count(most=1000)("1k") == 1000
    with pytest.raises(argparse.ArgumentTypeError, match="must be at most 1,000; got 1001"):
        _types.count(most=1000)("1001")


ABSURD = (
    *("nan", "-nan", "sNaN", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e99999999999999999999", "-5", "0", "0x10"),
    *(
        "1e-400",
        "9" * 5000,
        "1" + "e" * 99,
        "٣",
        "½",
        "",
        " ",
        "\x00",
        "\n",
        "1\x1b",
        "--5",
        "1..5",
        "1e",
        "e5",
        "+",
        "_",
    ),
)


@pytest.mark.parametrize("ending", ["", "G", "GB", "k", "h", "h30m"])
@pytest.mark.parametrize("text", ABSURD, ids=lambda text: repr(text)[:12])
def test_absurd_numbers_are_refused_or_finite(text: str, ending: str) -> None:
    """None is a traceback, as `--max-memory infG` was."""
    counts = (_types.count(), _types.count(least=0, most=100))
    for parsed in (*counts, _types.size, _types.minutes, _types.fraction, _types.number, _types.port):
        try:
            found = parsed(text + ending)
        except argparse.ArgumentTypeError as error:
            message = str(error)
            assert message
        else:
            assert abs(found) < 1e300


def test_sizes() -> None:
    sizes = {"1000": 1000, "500M": 500 * 2**20, "8G": 2**33, "8GB": 2**33, "8 GiB": 2**33, "0.5t": 2**39, "2k": 2048}
    assert {text: _types.size(text) for text in sizes} == sizes
    for text in ("lots", "8X", "", "G"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is not a size; write it as 500M or 8G"):
            _types.size(text)
    with pytest.raises(argparse.ArgumentTypeError, match="must be at least one byte"):
        _types.size("0")


def test_times_are_minutes() -> None:
    times = {"90": 90, "1.5": 1.5, "1h30m": 90, "45s": 0.75, "2h": 120, "10min": 10, "1H5M30S": 65.5, "1e2": 100}
    assert {text: _types.minutes(text) for text in times} == times
    for text in ("", "soon", "30m1h", "1d", "nan"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a time; write it as 90"):
            _types.minutes(text)
    for text in ("0", "-5", "0s"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"must be above 0, .*; got {text}"):
            _types.minutes(text)


def test_fractions_numbers_and_ports() -> None:
    assert [_types.fraction(text) for text in ("0", "0.99", "1")] == [0, 0.99, 1]
    assert _types.number("-2.5") == -2.5
    assert [_types.port(text) for text in ("0", "8000", "65535")] == [0, 8000, 65535]
    with pytest.raises(argparse.ArgumentTypeError, match=r"between 0 and 1, such as 0\.99; got 1\.5"):
        _types.fraction("1.5")
    for refused in (_types.fraction, _types.number):
        for text in ("nan", "inf", "x"):
            with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is not a number; write it as"):
                refused(text)
    for text in ("65536", "-1", "http", "٣"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"between 0 and 65535, such as 8000; got {text}"):
            _types.port(text)
