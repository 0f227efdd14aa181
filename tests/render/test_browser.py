"""The site in a real browser, opened from disk: it works, looks right, and asks nothing of the network."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from synthetic_study import HOSTILE, Shape, write_study

from efhorizon.render.html.names import page_link
from efhorizon.render.html.site import WrittenReport, write_report

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("no chromium on this machine", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 375, "height": 720}
DESK = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


def has_failed(request: Any) -> bool:
    """Whether something is missing; a page that is left or closed may cut off its own requests, the icon's mostly."""
    return bool(request.failure != "net::ERR_ABORTED")


@contextmanager
def watched(browser: Any, **options: Any) -> Iterator[Any]:
    """A page; when it is closed, nothing must have gone wrong on it and no request have left the disk."""
    context = browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("requestfailed", lambda request: trouble.append(f"failed {request.url}") if has_failed(request) else None)
    page.on("request", lambda request: trouble.append(request.url) if not request.url.startswith("file:") else None)
    yield page
    context.close()
    assert trouble == []


def opened(page: Any, report: WrittenReport, name: str) -> None:
    page.goto((report.path / name).as_uri())


def test_front_page(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, "index.html")
        assert page.get_by_role("heading", level=1).inner_text() == "How hard is this environment for deep RL, and why?"
        assert page.locator("table.bounds").first.locator("tbody tr").count() == 11  # nine bounds and two baselines
        points = page.locator(".scatters:visible figure.large .point")
        assert points.count() == 15


def test_hover_names_the_mdp_and_a_click_opens_it(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, "index.html")
        tip = page.locator(".tip")
        assert tip.is_hidden()
        point = page.locator(".scatters:visible figure.large .point").first
        name = point.get_attribute("aria-label").split("\n")[0]
        point.scroll_into_view_if_needed()
        point.hover(force=True)
        assert tip.inner_text().startswith(name)
        assert "needed" in tip.inner_text()
        key = point.get_attribute("data-mdp")
        lit = page.locator(".scatters:visible .point.lit")
        assert {each.get_attribute("data-mdp") for each in lit.all()} == {key}
        assert lit.count() > 1  # the same MDP in the other charts
        point.click(force=True)
        page.wait_for_url("**/mdps/*.html")
        assert page.get_by_role("heading", level=1).inner_text() == name


def test_charts_can_be_walked_with_the_keyboard(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, "index.html")
        points = page.locator(".scatters:visible figure.large .point")
        points.first.focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.dataset.mdp") == points.nth(1).get_attribute("data-mdp")
        assert page.locator(".tip").is_visible()
        stops = page.locator(".scatters:visible figure.large .point[tabindex='0']")
        assert stops.count() == 1


def test_the_switch_shows_the_other_algorithm(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, "index.html")
        ppo, dqn = page.locator("[data-shown-for='ppo']"), page.locator("[data-shown-for='dqn']")
        assert ppo.is_visible()
        assert dqn.is_hidden()
        page.get_by_role("button", name="DQN").click()
        assert ppo.is_hidden()
        assert dqn.is_visible()


def column(page: Any, title: str) -> list[str]:
    heads = [text.strip() for text in page.locator("table.mdps thead th").all_inner_texts()]
    number = heads.index(title) + 1
    cells = page.locator(f"table.mdps tbody tr:visible > :nth-child({number})")
    return [cell.get_attribute("data-value") or cell.inner_text() for cell in cells.all()]


def test_sorting(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, "mdps.html")
        button = page.locator("table.mdps thead").get_by_role("button", name="states")
        button.focus()
        page.keyboard.press("Enter")
        values = [float(value) for value in column(page, "states")]
        assert values == sorted(values)
        assert len(set(values)) > 5
        head = page.locator("table.mdps thead th").filter(has_text="states")
        assert head.get_attribute("aria-sort") == "ascending"
        button.click()
        assert [float(value) for value in column(page, "states")] == sorted(values, reverse=True)
        assert head.get_attribute("aria-sort") == "descending"


def test_missing_values_are_last_and_unsolved_mdps_after_solved_ones(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, "mdps.html")
        for presses in (1, 2):
            page.locator("table.mdps thead th").nth(7).get_by_role("button").click()
            values = column(page, "k")
            missing = [value == "–" for value in values]  # noqa: RUF001
            assert missing == sorted(missing), presses
        page.get_by_role("button", name="PPO").click()
        values = [float(value.replace("Infinity", "inf")) for value in column(page, "PPO")]
        assert values == sorted(values)


def test_filtering(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, "mdps.html")
        shown = page.locator(".filters output")
        assert shown.inner_text() == "15 of 15 MDPs"
        page.get_by_label("Search").fill("room")
        assert shown.inner_text() == "5 of 15 MDPs"
        page.get_by_label("Suite").select_option("atari")
        assert shown.inner_text() == "0 of 15 MDPs"
        page.get_by_label("Search").fill("")
        assert shown.inner_text() == "5 of 15 MDPs"
        assert set(column(page, "suite")) == {"Atari"}


def test_a_page_of_an_mdp(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, page_link("maze_easy_l1_30_fs1"))
        assert page.locator("[data-part='why']").inner_text().startswith("The effective horizon is")
        start = page.locator("img.screen").first
        assert start.evaluate("image => image.complete && image.naturalWidth") == 64
        assert page.locator("table.returns .chart").count() >= 2
        assert page.locator("svg.chart .curve.algorithm-ppo").count() == 2  # in the legend and in the chart


def test_the_player(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, page_link("maze_easy_l1_30_fs1"))
        part = {name: page.locator(f".player [data-part='{name}']") for name in ("time", "action", "return", "slider")}
        page.locator(".player").scroll_into_view_if_needed()
        page.wait_for_timeout(500)
        assert part["time"].inner_text() == "0 of 8"  # the reader prefers no motion: it stands still
        page.get_by_role("button", name="One step forward").click()
        assert part["time"].inner_text() == "1 of 8"
        assert part["action"].inner_text() == "RIGHT"
        part["slider"].fill("8")
        assert part["time"].inner_text() == "8 of 8"
        assert part["action"].inner_text() == "the episode has ended"
        assert part["return"].inner_text() == "10"
        page.get_by_role("button", name="One step back").click()
        assert part["time"].inner_text() == "7 of 8"


def test_the_player_plays(browser: Any, report: WrittenReport) -> None:
    with watched(browser, reduced_motion="no-preference") as page:
        opened(page, report, page_link("maze_easy_l1_30_fs1"))
        page.locator(".player").scroll_into_view_if_needed()
        playwright.expect(page.locator(".player [data-part='time']")).not_to_have_text("0 of 8")  # it moves by itself
        page.get_by_role("button", name="Pause").click()
        stopped = page.locator(".player [data-part='time']").inner_text()
        page.wait_for_timeout(800)
        assert page.locator(".player [data-part='time']").inner_text() == stopped


def ground(page: Any) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def test_dark_and_light(browser: Any, report: WrittenReport) -> None:
    with watched(browser, color_scheme="dark") as page:
        opened(page, report, "index.html")
        assert ground(page) == "rgb(19, 21, 24)"
        page.get_by_role("button", name="Switch between light and dark").click()
        assert ground(page) == "rgb(253, 252, 249)"
        opened(page, report, "mdps.html")
        assert ground(page) == "rgb(253, 252, 249)"  # the choice is kept
    with watched(browser, color_scheme="light") as page:
        opened(page, report, "index.html")
        assert ground(page) == "rgb(253, 252, 249)"


@pytest.mark.parametrize("name", ["index.html", "mdps.html", "data.html", "reproduce.html", "mdp", "hostile"])
def test_a_phone_needs_no_sideways_scrolling(browser: Any, report: WrittenReport, name: str) -> None:
    name = {"mdp": page_link("maze_easy_l1_30_fs1"), "hostile": page_link(HOSTILE)}.get(name, name)
    with watched(browser, viewport=PHONE) as page:
        opened(page, report, name)
        for details in page.locator("details").all():
            details.evaluate("each => { each.open = true; }")
        assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_wide_tables_scroll_in_their_own_box(browser: Any, report: WrittenReport) -> None:
    with watched(browser, viewport=PHONE) as page:
        opened(page, report, "mdps.html")
        box = page.locator(".scroll")
        assert box.evaluate("each => each.scrollWidth > each.clientWidth")
        box.evaluate("each => { each.scrollLeft = 200; }")
        assert box.evaluate("each => each.scrollLeft") == 200


def test_a_hostile_name_stays_a_name(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        opened(page, report, page_link(HOSTILE))
        assert page.get_by_role("heading", level=1).inner_text() == HOSTILE
        opened(page, report, "mdps.html")
        page.get_by_role("link", name=HOSTILE).click()
        page.wait_for_url("**/mdps/*.html")
        assert page.get_by_role("heading", level=1).inner_text() == HOSTILE


def test_the_policy_forbids_inline_code_and_other_hosts(browser: Any, report: WrittenReport) -> None:
    context = browser.new_context()
    page = context.new_page()
    answered: list[str] = []
    page.on("response", lambda response: answered.append(response.url))
    opened(page, report, "index.html")
    violated = page.evaluate(
        """async () => {
            const seen = [];
            document.addEventListener("securitypolicyviolation", (event) => seen.push(event.effectiveDirective));
            const script = document.createElement("script");
            script.textContent = "window.executed = true";
            document.head.append(script);
            document.body.insertAdjacentHTML("beforeend", "<p style='color: red'>styled</p>");
            new Image().src = "http://127.0.0.1:9/picture.png";
            try { await fetch("http://127.0.0.1:9/"); } catch { seen.push("fetch"); }
            await new Promise((done) => setTimeout(done, 200));
            return [window.executed === undefined, seen.sort()];
        }"""
    )
    context.close()
    assert violated == [True, ["connect-src", "fetch", "img-src", "script-src-elem", "style-src-attr"]]
    assert all(url.startswith("file:") for url in answered)


def test_without_scripts_all_is_there(browser: Any, report: WrittenReport) -> None:
    with watched(browser, java_script_enabled=False) as page:
        opened(page, report, "index.html")
        assert page.locator(".scatters").count() == 2
        assert all(each.is_visible() for each in page.locator(".scatters").all())
        assert page.locator(".theme").is_hidden()
        opened(page, report, "mdps.html")
        assert page.locator("table.mdps tbody tr").count() == 15
        opened(page, report, page_link("maze_easy_l1_30_fs1"))
        assert page.locator("img.sheet").is_visible()


def test_a_study_without_anything_but_analyses(browser: Any, tmp_path: Path) -> None:
    shape = Shape(num_mdps=2, algorithms=(), with_pictures=False)
    bare = write_report(write_study(tmp_path / "study", shape), tmp_path / "report", num_resamples=20)
    with watched(browser) as page:
        for path in sorted(bare.path.rglob("*.html")):
            opened(page, bare, str(path.relative_to(bare.path)))
            assert page.get_by_role("heading", level=1).is_visible()


def test_figures_open_on_their_own(browser: Any, report: WrittenReport) -> None:
    with watched(browser) as page:
        for path in sorted((report.path / "figures").glob("*.svg"))[:3]:
            page.goto(path.as_uri())
            colour = page.evaluate("getComputedStyle(document.querySelector('text')).fontFamily")
            assert re.search("system-ui", colour)
