"""The search for the least m: which m it tries, what it finds, and what it knows in the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from efhorizon.gorp.least_m import Attempt, LeastM, geometric_mean, halfway


class Log:
    """Attempts of which some suffice, and a note of every m tried; points grow with m."""

    def __init__(self, suffices: Callable[[int], bool | None]) -> None:
        self._suffices = suffices
        self.tried: list[int] = []

    def __call__(self, m: int) -> Attempt[str]:
        self.tried.append(m)
        return Attempt(self._suffices(m), f"at {m}", m)


def test_a_scan_tries_every_m_and_so_finds_the_least() -> None:
    log = Log(lambda m: m in (3, 4))
    search = LeastM(log)
    search.scan(10, 100)
    assert log.tried == [1, 2, 3]
    assert (search.m, search.failing, search.num_failing) == (3, 2, 2)
    assert search.is_least
    search.grow(lambda m: 2 * m, 100)
    search.narrow(lambda failing, m: m - failing <= 1)
    search.verify(1000)
    assert log.tried == [1, 2, 3], "nothing is left to do"


def test_a_scan_ends_with_its_points_or_the_largest_m() -> None:
    log = Log(lambda m: False)
    search = LeastM(log)
    search.scan(100, 3)
    assert log.tried == [1, 2, 3]  # 1 + 2 points are not more than 3, 1 + 2 + 3 are
    assert (search.m, search.num_failing) == (None, 3)
    assert search.found is not None
    assert search.found.evidence == "at 3"
    short = LeastM(Log(lambda m: False))
    short.scan(2, 1000)
    short.grow(lambda m: 2 * m, 2)
    assert (short.m, short.failing, short.num_failing) == (None, 2, 2)


def test_growth_stops_at_an_m_that_suffices_at_the_largest_and_at_one_that_takes_long() -> None:
    log = Log(lambda m: m >= 5)
    search = LeastM(log)
    search.grow(lambda m: max(1, 4 * m), 1000)
    assert log.tried == [1, 4, 16]
    assert (search.m, search.failing, search.is_least) == (16, 4, False)
    for options, expected in (((50, None), [1, 4, 16, 50]), ((10**6, 20), [1, 4, 16, 64])):
        hopeless = Log(lambda m: False)
        LeastM(hopeless).grow(lambda m: max(1, 4 * m), options[0], max_points=options[1])
        assert hopeless.tried == expected


@pytest.mark.parametrize("middle", [halfway, geometric_mean])
@pytest.mark.parametrize("least", [1, 2, 3, 50, 63, 64])
def test_bisection_ends_at_the_threshold(least: int, middle: Callable[[int, int], int]) -> None:
    search = LeastM(Log(lambda m: m >= least), m=64)
    search.narrow(lambda failing, m: m - failing <= 1, middle=middle)
    assert (search.m, search.failing) == (least, least - 1)


def test_bisection_counts_what_cannot_be_decided_as_failing() -> None:
    search = LeastM(Log(lambda m: None if m < 40 else m >= 50), m=64)
    search.narrow(lambda failing, m: m - failing <= 1)
    assert search.m == 50


def test_what_was_passed_over_is_verified() -> None:
    """Success that comes, goes and comes again: bisection misses m = 5, verification finds it."""
    log = Log(lambda m: m == 5 or m >= 30)
    search = LeastM(log)
    search.scan(1000, 2)
    search.grow(lambda m: 2 * m, 1000)
    search.narrow(lambda failing, m: m - failing <= 1)
    assert (search.m, search.is_least) == (30, False)
    search.verify(10_000)
    assert (search.m, search.num_failing, search.is_least) == (5, 4, True)
    assert search.found is not None
    assert search.found.evidence == "at 5"


def test_a_smaller_m_found_by_verification_is_a_state_that_can_be_noted() -> None:
    search = LeastM(Log(lambda m: m == 3 or m >= 9))
    search.grow(lambda m: max(1, 2 * m), 100)  # 1, 2, 4, 8 fail, 16 suffices
    search.narrow(lambda failing, m: m - failing <= 1)
    assert (search.m, search.failing) == (9, 8)
    search.verify(None)
    assert (search.m, search.failing, search.num_failing) == (3, 2, 2)
    assert search.is_least


def test_verification_needs_points_and_decisions() -> None:
    search = LeastM(Log(lambda m: m >= 30), m=None)
    search.grow(lambda m: max(1, 2 * m), 1000)
    search.narrow(lambda failing, m: m - failing <= 1)
    search.verify(0)
    assert (search.m, search.num_failing, search.is_least) == (30, 0, False)
    search.verify(10_000)
    assert (search.m, search.num_failing, search.is_least) == (30, 29, True)
    open_question = LeastM(Log(lambda m: None if m == 7 else m >= 30))
    open_question.grow(lambda m: max(1, 2 * m), 1000)
    open_question.verify(10_000)
    assert (open_question.m, open_question.undecided, open_question.num_failing) == (32, 7, 6)


@pytest.mark.parametrize("least", [1, 3, 17, 40])
def test_a_search_that_is_interrupted_before_every_attempt_tries_the_same_m(least: int) -> None:
    """Each attempt is made by a new search that has only the state of the last."""

    class StoppedError(Exception):
        pass

    def steps(search: LeastM[str]) -> None:
        search.run(
            lambda: search.scan(100, 10),
            lambda: search.grow(lambda m: 2 * m, 100),
            lambda: search.narrow(lambda failing, m: m - failing <= 4),
            lambda: search.verify(10**6),
        )

    log, whole_log = Log(lambda m: m >= least), Log(lambda m: m >= least)
    whole = LeastM(whole_log)
    steps(whole)
    state = LeastM(log).state
    for _ in range(100):
        fresh = len(log.tried)

        def before(search: LeastM[str], _: int, fresh: int = fresh) -> None:
            if len(log.tried) > fresh:
                raise StoppedError

        search = LeastM(log, before=before)
        search.resume(state)
        try:
            steps(search)
        except StoppedError:
            state = search.state
            continue
        break
    assert log.tried == whole_log.tried
    assert search.state == whole.state
    assert search.m == least
