"""What Headlight leans on and Streamlit does not promise: each of these fails when a new Streamlit no longer does so."""

from __future__ import annotations

import asyncio
import gc
import queue
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect
from streamlit import config, runtime
from streamlit.components.lib.local_component_registry import LocalComponentRegistry
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime import Runtime, RuntimeConfig, app_session
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.testing.v1 import AppTest

from app import streamlit_edge
from app.streamlit_edge import collection, components, departures, greeting, page, rerunning, yielding
from app.transport import compress
from tests.app.browsing import PATIENCE, once
from tests.app.pages import lend

APP = "tests/app/edge.py"
ROOT = Path(__file__).resolve().parents[2]
EDGE = Path(streamlit_edge.__file__).parent
STYLE = (EDGE / "page.css").read_text(encoding="utf-8")
TEST_IDS = sorted(set(re.findall(r"data-testid=\"?(\w+)", STYLE)))
WHILE_RUNNING = {"stStatusWidget", "stStatusWidgetRunningIcon"}
WHILE_WRITING = {"InputInstructions"}
WHILE_AWAY = {"stConnectionStatus"}  # test_restart.py
NUMBERS = count()


@pytest.fixture
def visitor(browser: Browser, address: str) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        arrive(page, f"{address}/?who={name()}")
        yield page


def arrive(page: Page, address: str) -> None:
    page.goto(address)
    page.locator(".st-key-below button").wait_for()
    page.locator(".js-plotly-plot").wait_for()


def says(page: Page, what: str) -> None:
    page.get_by_text(re.compile(what)).wait_for()


def name() -> str:
    """Of a visitor whom the server has not seen before."""
    return f"visitor-{next(NUMBERS)}"


def name_of(page: Page) -> str:
    return re.findall(r"who=(visitor-\d+)", page.url)[0]


def as_bytes(message: str | bytes) -> bytes:
    return message.encode() if isinstance(message, str) else message


def test_only_the_edge_names_what_is_inside_streamlits_elements() -> None:
    """A name that stands elsewhere would have no test here."""
    named = re.compile(r"data-testid|\[aria-valuetext|getAttribute\(\"aria-valuetext|js-plotly-plot|main-svg")
    files = [path for kind in ("*.py", "*.js", "*.css") for path in (ROOT / "app").rglob(kind)]
    outside = [path for path in files if EDGE not in path.parents and named.search(path.read_text(encoding="utf-8"))]
    assert files and outside == []


def test_every_name_is_on_the_page(visitor: Page) -> None:
    assert len(TEST_IDS) == 31
    for name in set(TEST_IDS) - WHILE_RUNNING - WHILE_WRITING - WHILE_AWAY:
        visitor.get_by_test_id(name).first.wait_for(
            state="attached"
        )  # some elements draw themselves when their code is there
    visitor.get_by_label("Text").fill("another")
    for name in WHILE_WRITING:
        visitor.get_by_test_id(name).first.wait_for()


def counted(page: Page, what: str) -> int:
    """A number that the page shows behind these words."""
    return int(re.findall(rf"{what}: (\d+)", page.locator("body").inner_text())[0])


def named(page: Page, what: str) -> list[str]:
    """The visitors whom the page names behind these words."""
    return re.findall(rf"{what}: ([^,]*),", page.locator("body").inner_text())[0].split()


def press(page: Page, button: str) -> None:
    """One run of the script, to its end. What is pressed while a script runs breaks it off, with what was pressed before."""
    ended = page.locator('[data-test-script-state="notRunning"]')
    ended.wait_for()
    drawn(page, button)
    ended.wait_for()


def becomes(page: Page, what: str, who: str) -> bool:
    """Whether this visitor is named there at last; the page shows what was so when its script began."""
    for _ in range(100):
        press(page, "Next")
        if who in named(page, what):
            return True
        page.wait_for_timeout(100)
    return False


def drawn(page: Page, button: str) -> None:
    """A button is pressed, and the script that it begins has said which it is.

    A script that was broken off has ended a moment before the next one begins: who looks for an end alone may see that one.
    """
    runs = counted(page, "runs")
    page.get_by_role("button", name=button, exact=True).click()
    page.get_by_text(re.compile(f"^runs: {runs + 1},")).wait_for()


def wait(page: Page) -> None:
    drawn(page, "Wait")
    page.get_by_test_id("stStatusWidget").wait_for(state="attached")


def test_a_script_that_runs_shows_it_and_marks_what_it_has_not_drawn(visitor: Page) -> None:
    wait(visitor)
    for name in WHILE_RUNNING:
        expect(visitor.get_by_test_id(name).first).to_be_attached(timeout=PATIENCE)
    expect(visitor.locator(".st-key-below")).to_have_attribute("data-stale", "true", timeout=PATIENCE)
    visitor.get_by_role("button", name="Next").click()


def test_a_script_that_waits_is_broken_off_for_what_its_visitor_does_next(visitor: Page) -> None:
    who = name_of(visitor)
    assert who not in named(visitor, "broken off")
    wait(visitor)
    drawn(visitor, "Next")
    assert becomes(visitor, "broken off", who)


@pytest.mark.thorough
def test_a_script_that_waits_is_broken_off_when_its_visitor_has_gone(
    visitor: Page, browser: Browser, address: str
) -> None:
    who, leaver = name(), browser.new_context().new_page()
    arrive(leaver, f"{address}/?who={who}")
    wait(leaver)
    leaver.context.close()
    assert becomes(visitor, "broken off", who)


@pytest.mark.thorough
def test_what_was_to_be_done_when_a_visitor_goes_is_done_when_the_tab_is_closed(
    visitor: Page, browser: Browser, address: str
) -> None:
    who, leaver = name(), browser.new_context().new_page()
    arrive(leaver, f"{address}/?who={who}")
    leaver.context.close()
    assert becomes(visitor, "gone", who)


@pytest.mark.thorough
def test_clearing_caches_is_not_to_go(visitor: Page) -> None:
    """Streamlit releases every visitor's own resources then, and anybody's browser can ask for it."""
    who = name_of(visitor)
    press(visitor, "Clear")
    assert becomes(visitor, "cleared", who)
    assert who not in named(visitor, "gone")


def test_enter_sends_a_text_as_one_step_that_back_takes(visitor: Page) -> None:
    box, steps = visitor.get_by_label("Text"), visitor.evaluate("history.length")
    for text in ("two", "three"):
        box.fill(text)
        box.press("Enter")
        visitor.wait_for_url(re.compile(f"box_text_0={text}"))
        says(visitor, f"said: '{text}'")
    visitor.locator('[data-test-script-state="notRunning"]').wait_for()
    assert visitor.evaluate("history.length") == steps + 2
    visitor.go_back()
    says(visitor, "'arrived': '1'")
    expect(box).to_have_value("two")
    visitor.go_back()
    expect(box).to_have_value("one")
    box.press("Shift+Enter")
    assert "\n" in box.input_value()


def test_a_script_reads_the_address_that_the_page_has_and_runs_for_no_change_of_it(visitor: Page) -> None:
    visitor.locator('[data-test-script-state="notRunning"]').wait_for()
    runs = visitor.get_by_text(re.compile("runs: ")).inner_text()
    for head in "123":
        visitor.evaluate("head => headlight.address.write({ head }, 'choice')", head)
    assert visitor.get_by_text(re.compile("runs: ")).inner_text() == runs
    visitor.get_by_role("button", name="Next").click()
    says(visitor, "'head': '3'")


def test_quick_choices_of_one_thing_are_one_step_and_of_two_things_are_two(visitor: Page) -> None:
    choose = "choices => choices.forEach((each) => headlight.address.write(each, 'choice'))"
    for choices, added in (([{"head": "1"}, {"head": "2"}], 1), ([{"head": "3"}, {"norm": "batch"}], 2)):
        visitor.wait_for_timeout(300)  # longer than a held key takes to repeat
        steps = visitor.evaluate("history.length")
        visitor.evaluate(choose, choices)
        assert visitor.evaluate("history.length") == steps + added


def test_a_link_s_theme_wins_over_the_browser_s_and_can_change(visitor: Page, address: str) -> None:
    ground = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"
    light = visitor.evaluate(ground)
    arrive(visitor, f"{address}/?theme=dark")
    dark = visitor.evaluate(ground)
    assert dark != light
    visitor.evaluate("window.headlight.settings.set('theme', 'light')")
    once(visitor, f"{ground} === '{light}'")
    visitor.wait_for_url(re.compile("theme=light"))
    visitor.evaluate("window.headlight.settings.set('theme', null)")
    visitor.wait_for_url(lambda url: "theme" not in url)


@pytest.mark.thorough
def test_what_an_address_says_of_the_page_outlives_what_streamlit_writes(visitor: Page, address: str) -> None:
    arrive(visitor, f"{address}/?projector=true&theme=sepia")
    box = visitor.get_by_label("Text")
    box.fill("two")
    box.press("Enter")
    visitor.wait_for_url(re.compile("box_text_0=two"))
    assert "projector=true" in visitor.url and "sepia" not in visitor.url
    assert visitor.evaluate("document.documentElement.dataset.projector") == "true"


@pytest.mark.thorough
def test_the_menu_of_the_page_goes_with_the_bar(visitor: Page) -> None:
    """It is fixed to the window, and would stand over what comes to be below it."""
    page, menu = visitor.get_by_test_id("stMain"), visitor.get_by_test_id("stMainMenuButton")
    visitor.set_viewport_size({"width": 1280, "height": 400})
    expect(menu).to_have_css("opacity", "1")
    page.evaluate("node => node.scrollTo(0, node.scrollHeight)")
    expect(menu).to_have_css("opacity", "0")
    assert page.evaluate("node => node.scrollTop") > 20
    menu.focus()
    visitor.keyboard.press("Shift+Tab")
    visitor.keyboard.press("Tab")  # with the keys it is reached, and seen
    expect(menu).to_be_focused()
    expect(menu).to_have_css("opacity", "1")
    menu.blur()
    page.evaluate("node => node.scrollTo(0, 0)")
    expect(menu).to_have_css("opacity", "1")


@pytest.mark.thorough
def test_keys_go_on_into_a_menu_also_when_it_opens_again(visitor: Page) -> None:
    inside = "document.activeElement.closest('[role=menu]') !== null"
    button = visitor.locator(".st-key-examples button")
    for _ in range(2):
        button.focus()
        visitor.keyboard.press("Enter")
        assert once(visitor, inside)
        visitor.keyboard.press("ArrowDown")
        visitor.keyboard.press("Enter")
        visitor.locator("[role=menu]").wait_for(state="detached")


def test_our_scripts_come_before_any_of_the_page(address: str) -> None:
    with urlopen(address) as answer:
        text = answer.read().decode()
    first = page.SCRIPTS[0].read_text(encoding="utf-8")
    assert first in text and text.index(first) == text.index("<script") + len("<script>\n")


def test_streamlits_own_files_are_where_we_compress_them(address: str) -> None:
    with urlopen(address) as answer:
        entry = re.findall(r'src="\./static/([^"]+\.js)"', answer.read().decode())
    assert entry and all((compress.STATIC / name).is_file() for name in entry)


def test_a_component_s_script_on_one_line_is_taken_for_a_path() -> None:
    def script(source: str) -> AppTest:
        text = f"from streamlit.components import v2\nv2.component('edge', js={source!r})(key='edge')"
        return AppTest.from_string(text).run(timeout=30)

    assert script('export default (await import("/module.js")).default;').exception
    assert not script(components.loader("folder", "module.js")).exception


@pytest.mark.thorough
def test_garbage_is_not_collected_after_every_run(visitor: Page) -> None:
    """If it is, .streamlit/config.toml no longer says otherwise, and every run of a script holds everybody up."""
    before = counted(visitor, "collected")
    for _ in range(3):
        press(visitor, "Next")
    assert counted(visitor, "collected") < before + 3


class Ring:
    """Garbage that only a collection finds."""

    alive = 0

    def __init__(self) -> None:
        self.itself = self
        Ring.alive += 1

    def __del__(self) -> None:
        Ring.alive -= 1


def test_memory_stays_flat_however_long_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(collection, "time", SimpleNamespace(monotonic=lambda: now))  # its own alone: loops have theirs
    monkeypatch.setattr(collection, "_since", 0.0)
    gc.disable()  # what Python does by itself does not count here
    try:
        most = 0
        for _ in range(400):  # a script ten times a second, without an end: no moment is idle
            collection.ran()
            for _ in range(10):
                Ring()
            now += 0.1
            collection.collect(now)
            most = max(most, Ring.alive)
        assert most <= 10 * 10 * collection.LONGEST + 10
        now += collection.IDLE
        assert collection.collect(now) and Ring.alive == 0  # the first idle moment
        assert not collection.collect(now + 60)  # nothing has run since
    finally:
        gc.enable()


class Edited:
    """As much of a session as an edit of its script needs."""

    def __init__(
        self, runner: object | None, script: str = "a", state: AppSessionState = AppSessionState.APP_NOT_RUNNING
    ):
        self._scriptrunner, self._client_state, self._state = runner, SimpleNamespace(page_script_hash=script), state
        self._call_soon_on_event_loop = asyncio.get_running_loop().call_soon_threadsafe


def test_an_edited_script_runs_again_once_and_after_the_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit would stop that one and begin another with the state of the last that came to its end: another address."""
    began: list[object] = []
    monkeypatch.setattr(AppSession, "_on_source_file_changed", lambda session, _=None: began.append(session))
    monkeypatch.setattr(rerunning, "LOOK", 0)
    rerunning.after_what_runs()

    async def edit() -> None:
        idle, busy, new = Edited(None), Edited(object()), Edited(None, script="")
        gone = Edited(None, state=AppSessionState.SHUTDOWN_REQUESTED)
        for session in (idle, busy, new, gone, busy):
            await asyncio.to_thread(AppSession._on_source_file_changed, cast(AppSession, session), "view.py")
        for _ in range(20):
            await asyncio.sleep(0)
        assert began == [idle]
        busy._scriptrunner = None
        while len(began) < 2:
            await asyncio.sleep(0)
        AppSession._on_source_file_changed(cast(AppSession, busy))
        while len(began) < 3:
            await asyncio.sleep(0)
        assert began == [idle, busy, busy]

    # In a thread of its own: in this one a browser may have left a loop running.
    with ThreadPoolExecutor(1) as own:
        own.submit(asyncio.run, asyncio.wait_for(edit(), 20)).result()


class BrokenOff(BaseException):
    """Another message of the visitor has come."""


def test_a_callback_comes_to_its_end_and_the_script_after_it_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count()

    def breaks_off() -> None:
        if next(looks) == 2:
            raise BrokenOff

    def runs_callbacks(_state: SessionState, *_: object, **__: object) -> None:
        for name in ("edits", "text"):  # by way of the session that a callback sees
            session[name] = name

    monkeypatch.setattr(SessionState, "on_script_will_rerun", runs_callbacks)
    monkeypatch.setattr(SafeSessionState, "on_script_will_rerun", SafeSessionState.on_script_will_rerun)
    session = SafeSessionState(SessionState(), breaks_off)
    with pytest.raises(BrokenOff):  # if no longer, callbacks_are_whole() is not needed
        session.on_script_will_rerun(WidgetStates())
    assert {*session.filtered_state} == {"edits"}
    yielding.callbacks_are_whole()
    looks = count(2)
    session = SafeSessionState(SessionState(), breaks_off)
    session.on_script_will_rerun(WidgetStates())
    assert {*session.filtered_state} == {"edits", "text"}
    with pytest.raises(BrokenOff):
        session["more"] = "of the script"


SAYS = """
import streamlit as st
st.text_area("Text", "one", key="box_text_0")
"""


@pytest.mark.parametrize("fast", [True, False])
def test_a_sentence_that_comes_with_a_click_is_what_the_session_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fast: bool
) -> None:
    """With `fast`, as Streamlit does by itself, the script of the click puts the text before over the new one."""
    (script := tmp_path / "says.py").write_text(SAYS)
    was_begun, may_go_on = threading.Event(), threading.Event()  # the script of the click
    taken: queue.Queue[str] = queue.Queue()  # the texts that scripts have taken from their messages
    takes = SessionState.on_script_will_rerun

    def take(state: SessionState, states: WidgetStates | None, **given: Any) -> None:
        said = states.widgets[0].string_value if states and states.widgets else ""
        if said == "one":
            was_begun.set()
            assert may_go_on.wait(PATIENCE / 1000)
        takes(state, states, **given)
        taken.put(said)

    def visit() -> str:
        async def visited() -> str:
            session = AppSession(ScriptData(str(script)), MemoryUploadedFileManager("/upload"), ScriptCache(), None, {})
            session.request_rerun(ClientState())
            await ended(session)
            (box,) = session.session_state.get_widget_states()

            def ask(text: str) -> None:
                states = WidgetStates()
                states.widgets.add(id=box.id, string_value=text)
                session.request_rerun(ClientState(widget_states=states))

            assert taken.get(timeout=PATIENCE / 1000) == ""
            ask("one")  # a click: the box says what it said
            assert was_begun.wait(PATIENCE / 1000)
            ask("two")
            if fast:
                assert taken.get(timeout=PATIENCE / 1000) == "two"
            may_go_on.set()
            assert taken.get(timeout=PATIENCE / 1000) == "one"
            await ended(session)
            return str(session.session_state["box_text_0"])

        return asyncio.run(asyncio.wait_for(visited(), PATIENCE / 1000))

    async def ended(session: AppSession) -> None:
        while session._scriptrunner is not None:
            await asyncio.sleep(0)

    monkeypatch.setattr(SessionState, "on_script_will_rerun", take)
    served(monkeypatch)
    said_of, name = config.get_option, "runner.fastReruns"
    assert not said_of(name)  # .streamlit/config.toml
    monkeypatch.setattr(config, "get_option", lambda key: fast if key == name else said_of(key))
    with ThreadPoolExecutor(1) as own:
        assert own.submit(visit).result() == ("one" if fast else "two")


def served(monkeypatch: pytest.MonkeyPatch, **kept: Any) -> Runtime:
    """A server of Streamlit without a page."""
    monkeypatch.setattr(Runtime, "_instance", None)
    return Runtime(
        RuntimeConfig(
            script_path="",
            component_registry=LocalComponentRegistry(),
            media_file_storage=MemoryMediaFileStorage("/media"),
            uploaded_file_manager=MemoryUploadedFileManager("/upload"),
            **kept,
        )
    )


def test_who_stays_away_is_forgotten_without_another_who_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a server keeps its sessions: what a new Streamlit keeps elsewhere would be kept for ever."""
    kept = MemorySessionStorage(ttl_seconds=0)
    now = served(monkeypatch, session_storage=kept)
    assert runtime.get_instance() is now and departures.forget() == 0
    kept.save(SessionInfo(None, cast(AppSession, SimpleNamespace(id="gone"))))
    assert (departures.forget(), departures.forget()) == (1, 0)


@pytest.mark.thorough
def test_a_slider_says_where_it_is_while_it_moves(visitor: Page) -> None:
    thumb = visitor.locator(".st-key-planning .st-key-plan_batch [aria-valuetext]")
    expect(thumb).to_have_attribute("aria-valuetext", "3")
    thumb.focus()
    visitor.keyboard.press("ArrowRight")
    expect(thumb).to_have_attribute("aria-valuetext", "4")


@pytest.mark.thorough
def test_a_part_knows_whether_it_is_chosen(visitor: Page) -> None:
    chosen = "[...document.querySelectorAll('.st-key-part button')].map((b) => b.getAttribute('aria-checked'))"
    assert once(visitor, f"String({chosen}) === 'true,false,false'")
    visitor.locator(".st-key-part button").nth(1).click()
    once(visitor, f"({chosen})[1] === 'true'")


def test_plotly_draws_in_layers_of_svg(visitor: Page) -> None:
    chart = visitor.locator(".st-key-chart .js-plotly-plot")
    for layer in (chart.locator(".svg-container > svg.main-svg").nth(1), chart.locator(".draglayer").first):
        expect(layer).to_be_attached()
    expect(chart.locator(".modebar-container").first).to_be_attached()


def test_the_theme_that_is_put_together_once_is_streamlits_own(monkeypatch: pytest.MonkeyPatch):
    plain = app_session._populate_theme_msg
    asked: list[str] = []

    def counted(message: CustomThemeConfig, section: str = "theme") -> None:
        asked.append(section)
        plain(message, section)

    monkeypatch.setattr(app_session, "_populate_theme_msg", counted)
    greeting.put_together_once()
    for section in ("theme", "theme.light", "theme.dark", "theme.dark.sidebar"):
        theirs, first, second = CustomThemeConfig(), CustomThemeConfig(), CustomThemeConfig()
        plain(theirs.light, section)
        for ours in (first, second):
            app_session._populate_theme_msg(ours.light, section)
        assert first == second == theirs and first.HasField("light") == theirs.HasField("light")
    assert asked == ["theme", "theme.light", "theme.dark", "theme.dark.sidebar"]
