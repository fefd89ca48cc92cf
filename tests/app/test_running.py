"""A long text is on the screen while its run still goes on, layer by layer, and gives way again where the run does not end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, expect

import core
from app.attention import words
from app.session import words as session_words
from app.shell import words as shell_words
from tests.app.browsing import Another, Screen, bar_hears, digit, once
from tests.app.pages import lend

APP = "tests/app/slow.py"
WORDS = words.COMPONENT
# In the layer with index 2, of six, tests/app/slow.py waits until go_on(), or until somebody cancels.
WHILE = "The old keeper watched the ships for a while in the evening, and he wrote down their names. " * 6
SLOWLY = "Time goes slowly here, and nobody knows how long the old keeper will watch the ships go by. " * 6
# Read in parts of 16 tokens, by tests/app/slow.py, which waits in the second layer of the second part.
IN_PARTS = "Once upon a time the king read a very long letter in parts, and rested after each of them. " * 3
PART = 16
LAYER, HEAD, QUERY = 1, 3, 5


WIDE = pytest.param((1280, 720, "light"), id="wide")
PHONE = pytest.param((390, 844, "dark"), id="phone", marks=pytest.mark.thorough)


@pytest.fixture(params=[WIDE, PHONE])
def screen(request, browser: Browser, address: str) -> Iterator[Screen]:
    width, height, scheme = request.param
    size = {"width": width, "height": height}
    with lend(browser, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        screen = Screen(page, address).open(f"?layer={LAYER}&head={HEAD}&query={QUERY}&pinned=true")
        if screen.root.locator(".fold").is_visible():
            screen.root.locator(".fold summary").click()
            screen.page.mouse.move(0, 0)  # off the words, which are where the summary was once a longer text is there
        yield screen
        screen.leave()


def own(screen: Screen, text: str) -> str:
    """A text that no other screen has run."""
    size = screen.page.viewport_size
    return f"{text}{size['width'] if size else 0}"


def begin(screen: Screen, text: str) -> None:
    """Type a text and wait until the layers that come before the wait are on the screen."""
    before = screen.data()["run"]
    screen.type(text)
    screen.until(f"root.dataset.run !== '{before}' && root.dataset.underway === '3 of 6'")


def go_on(screen: Screen) -> None:
    """Let the run of a text that takes a while go on."""
    urlopen(f"{screen.address}/go-on").close()


def drawn(screen: Screen, layer: int) -> bool:
    """Whether the small pictures of a layer are there: along the middle of a row, outlines of blank ones leave most free."""
    return screen.root.evaluate(
        """(root, layer) => {
            const canvas = root.querySelector(".overview canvas");
            const { width, height } = canvas, ratio = height / canvas.clientHeight;
            const numbers = 1.15 * parseFloat(getComputedStyle(root).fontSize) * ratio;  // above the six layers
            const y = Math.round(numbers + ((height - 2 * ratio - numbers) * (layer + 0.5)) / 6);
            const { data } = canvas.getContext("2d").getImageData(width / 2, y, width / 2, 1);
            return data.filter((value, at) => at % 4 === 3 && value > 0).length > width / 4;
        }""",
        layer,
    )


@pytest.mark.thorough
def test_the_head_on_the_screen_comes_as_soon_as_the_pass_has_left_it_and_the_rest_follows(screen: Screen):
    text, before = own(screen, WHILE), screen.data()["run"]
    run = core.trace(core.load("minilm"), text)
    begin(screen, text)
    data = screen.data()
    assert data["run"] != before and (data["layer"], data["head"]) == (str(LAYER), str(HEAD))
    assert screen.tokens() == list(run.source.labels)
    row = run.attention[LAYER].row(HEAD, int(data["locked"]))
    key = int(row.argmax())
    assert f"{run.source.labels[key]}" in screen.facts() and f"{row[key] * 100:.0f} %" in screen.facts()
    assert data["exact"] == "true" and WORDS["run_goes_on"] in screen.root.locator("footer").inner_text()
    assert [drawn(screen, layer) for layer in range(6)] == [True, True, True, False, False, False]
    why = screen.root.locator(".story .why")
    expect(why).to_have_text(f"3 of 6 layers are there. Shown: layer {LAYER}, head {HEAD}.")
    opacity = "parseFloat(getComputedStyle(document.querySelector('.st-key-explore_stage')).opacity)"
    assert screen.page.evaluate(opacity) == 1  # what is of this run is not dimmed

    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowDown")
    screen.until(f"root.dataset.layer === '{LAYER + 1}'")
    screen.page.keyboard.press("ArrowDown")  # to a layer that is still to come
    screen.root.locator(".unseen").get_by_text(WORDS["to_come"]).wait_for(state="attached")
    assert screen.data()["layer"] == str(LAYER + 1)

    go_on(screen)
    screen.until("root.dataset.underway === ''")
    expect(why).not_to_contain_text("layers are there")
    whole = screen.data()
    assert (whole["run"], whole["layer"], whole["head"]) == (data["run"], str(LAYER + 1), str(HEAD))
    assert all(drawn(screen, layer) for layer in range(6))
    assert re.search(r"[\d,]+ ms", screen.root.locator("footer").inner_text())
    screen.page.wait_for_url(re.compile(f"layer={LAYER + 1}"))
    screen.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")
    screen.until("root.dataset.exact === 'true'")  # of the other head, which could not be fetched before
    assert screen.data()["layer"] == str(LAYER + 1)
    screen.page.keyboard.press("ArrowDown")
    screen.until(f"root.dataset.layer === '{LAYER + 2}'")


@pytest.mark.thorough
@pytest.mark.parametrize("screen", [WIDE], indirect=True)
@pytest.mark.parametrize(
    ("keys", "shown"),
    [("ps", {"projector": "true", "spotlight": "true"}), ("l", {"scale": "log"})],
    ids=["projector", "scale"],
)
def test_what_is_chosen_before_a_run_is_on_the_screen_counts_in_it(screen: Screen, keys: str, shown: dict[str, str]):
    """Layer 4 is opened, so nothing of the run is there before the wait: all is done to the picture before."""
    screen.open("?layer=4&head=5&pinned=true")
    before = screen.data()["run"]
    screen.type(f"{own(screen, WHILE)} {keys}")
    screen.page.get_by_role("button", name=shell_words.CANCEL).wait_for()
    if keys == "l":
        screen.root.get_by_role("button", name=WORDS["options"]).click()
        screen.root.get_by_role("button", name=WORDS["log"], exact=True).click()
    else:
        screen.page.evaluate("document.activeElement.blur()")
        screen.page.keyboard.type(keys)
    assert screen.data()["run"] == before
    go_on(screen)
    screen.until(f"root.dataset.run !== '{before}' && root.dataset.underway === ''")
    screen.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")
    for name, value in shown.items():
        screen.page.wait_for_url(re.compile(f"{name}={value}"))
        screen.wait(**{name: value})
    assert (screen.data()["layer"], screen.data()["head"]) == ("4", "5")


@pytest.mark.thorough
def test_a_run_that_is_cancelled_gives_way_to_the_picture_before(screen: Screen):
    before, tokens, text = screen.data(), screen.tokens(), own(screen, SLOWLY)
    begin(screen, text)
    assert screen.tokens() != tokens
    cancel = screen.page.get_by_role("button", name=shell_words.CANCEL)
    cancel.click()
    screen.until(f"root.dataset.run === '{before['run']}'")
    after = screen.data()
    assert screen.tokens() == tokens
    assert all(after[name] == before[name] for name in ("layer", "head", "locked", "exact")) and not after["underway"]
    screen.page.locator(".st-key-sentences").get_by_text(session_words.STOPPED).wait_for()
    assert screen.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == text
    once(screen.page, "!('underway' in document.documentElement.dataset)")
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowRight")
    screen.until(f"root.dataset.head === '{HEAD + 1}'")  # and it goes on as before
    screen.page.wait_for_url(re.compile(f"head={HEAD + 1}"))
    begin(screen, f"{text}!")
    screen.run_text("Never mind.")  # replaces a text that is still running
    assert screen.tokens()[1:3] == ["Never", "mind"] and not screen.data()["underway"]


@pytest.mark.thorough
@pytest.mark.parametrize("screen", [WIDE], indirect=True)
def test_another_sentence_takes_the_place_of_one_that_is_on_the_screen_half_done(screen: Screen):
    begin(screen, own(screen, SLOWLY) + "!")
    screen.run_text("Never mind.")
    assert screen.tokens()[1:3] == ["Never", "mind"]
    assert screen.data()["layer"] == str(LAYER) and not screen.data()["underway"]
    begin(screen, own(screen, SLOWLY) + "?")
    begin(screen, own(screen, SLOWLY) + "?!")
    assert screen.tokens()[-3:-1] == ["?", "!"]
    screen.page.get_by_role("button", name=shell_words.CANCEL).click()
    screen.until("root.dataset.tokens === '5'")
    assert screen.tokens()[1:3] == ["Never", "mind"]


@pytest.mark.thorough
@pytest.mark.parametrize("screen", [PHONE], indirect=True)
def test_the_page_can_change_its_colours_while_a_run_goes_on(screen: Screen):
    begin(screen, own(screen, SLOWLY) + ":")
    run, was = screen.data()["run"], screen.data()["theme"]
    chosen = "dark" if was == "light" else "light"
    screen.root.get_by_role("button", name=WORDS["options"]).click()
    screen.root.get_by_role("button", name=WORDS[f"theme_{chosen}"]).click()
    screen.until(f"root.dataset.theme === '{chosen}'")
    screen.page.wait_for_timeout(800)  # for Streamlit to draw its page again, and to be told
    assert screen.data()["run"] == run and screen.data()["underway"] == "3 of 6"
    screen.page.keyboard.press("Escape")
    screen.page.get_by_role("button", name=shell_words.CANCEL).click()
    screen.until(f"root.dataset.run !== '{run}'")
    assert screen.data()["theme"] == chosen


@pytest.mark.thorough
def test_who_waits_sees_the_place_in_the_queue_and_gets_the_answer_without_asking_again(another: Another):
    visitors = [another() for _ in range(3)]
    for visitor in visitors:
        visitor.open()
    first, second, third = visitors
    first.type("Wait a while for the first")
    first.page.locator(".hl-working").wait_for()
    second.type("The second visitor")
    second.page.get_by_text(shell_words.ONE_BEFORE).wait_for()
    third.type("The third visitor")
    third.page.get_by_text(shell_words.SOME_BEFORE.format(n=2)).wait_for()
    go_on(first)
    for visitor, word in zip(visitors, ("first", "second", "third"), strict=True):
        visitor.page.locator(".strip [data-axis=query]").get_by_text(word, exact=True).wait_for()
        expect(visitor.page.get_by_text(re.compile("Waiting for a turn"))).to_have_count(0)


# the first picture of a visit


@pytest.fixture(params=[WIDE, PHONE])
def newcomer(request, browser: Browser, address: str) -> Iterator[Screen]:
    width, height, scheme = request.param
    size = {"width": width, "height": height}
    with lend(browser, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        screen = Screen(page, address)
        yield screen
        screen.leave()


def arrive(screen: Screen, text: str, **asked: str) -> None:
    """Follow a link to a text that takes long, until the layers that come before the wait are on the screen."""
    screen.arrive(
        f"?{urlencode({'text': text, 'layer': LAYER, 'head': HEAD, 'query': QUERY, 'pinned': 'true', **asked})}"
    )
    screen.until("root.dataset.underway === '3 of 6'")


def top(screen: Screen) -> float:
    """Where the picture begins on the page, however far that is scrolled."""
    return screen.root.evaluate(
        "root => root.getBoundingClientRect().top + document.querySelector('[data-testid=stMain]').scrollTop"
    )


@pytest.mark.thorough
def test_a_link_to_a_long_text_shows_its_layers_as_they_come(newcomer: Screen):
    text = own(newcomer, WHILE) + " first"
    arrive(newcomer, text)
    data, place = newcomer.data(), top(newcomer)
    assert [data[name] for name in ("layer", "head", "locked", "exact")] == [*map(str, (LAYER, HEAD, QUERY)), "true"]
    if newcomer.root.locator(".fold").is_visible():
        newcomer.root.locator(".fold summary").click()
    newcomer.root.locator(".overview").focus()
    newcomer.page.keyboard.press("ArrowDown")
    newcomer.until(f"root.dataset.layer === '{LAYER + 1}'")
    go_on(newcomer)
    newcomer.until("root.dataset.underway === ''")
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")
    newcomer.page.wait_for_url(re.compile(f"layer={LAYER + 1}"))
    whole = newcomer.data()
    assert (whole["run"], whole["layer"], whole["locked"]) == (data["run"], str(LAYER + 1), str(QUERY))
    assert newcomer.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == text
    newcomer.idle()
    assert newcomer.shapes().is_visible()
    assert top(newcomer) == place  # nothing has moved


@pytest.mark.thorough
@pytest.mark.parametrize("newcomer", [WIDE], indirect=True)
def test_a_text_that_is_read_in_parts_says_which_part_it_is_at(newcomer: Screen):
    text = own(newcomer, IN_PARTS)
    loaded = core.load("storyteller")
    parts = -(-len(core.trace(loaded, text).source) // PART)
    newcomer.page.goto(f"{newcomer.address}/?{urlencode({'model': 'storyteller', 'text': text})}")
    said = {"title": "Storyteller", "part": 2, "parts": parts, "done": 1, "total": loaded.config.n_decoder_layers}
    expect(newcomer.page.get_by_text(shell_words.LAYERS_OF_PART.format(**said), exact=True)).to_be_visible()
    share = (1 + 1 / loaded.config.n_decoder_layers) / parts
    line = newcomer.page.get_by_role("progressbar", name=shell_words.PROGRESS)
    expect(line).to_have_attribute("aria-valuenow", f"{100 * share:.0f}")
    go_on(newcomer)
    newcomer.painted()
    newcomer.until("root.dataset.underway === ''")
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")
    assert newcomer.tokens() == list(core.trace(loaded, text).source.labels)


@pytest.mark.thorough
@pytest.mark.parametrize("newcomer", [WIDE], indirect=True)
def test_what_a_link_asks_in_vain_is_said_while_its_text_runs_and_after(newcomer: Screen):
    arrive(newcomer, own(newcomer, WHILE) + " in vain", view="Nowhere", model="nothing")
    for asked in ("a view called “Nowhere”", "a model called “nothing”"):
        newcomer.page.locator(".st-key-sentences").get_by_text(asked).wait_for()
    once(newcomer.page, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    said, place = newcomer.sentences(), top(newcomer)
    go_on(newcomer)
    newcomer.until("root.dataset.underway === ''")
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")
    newcomer.shapes().wait_for()
    newcomer.idle()
    assert (newcomer.sentences(), top(newcomer)) == (said, place)


@pytest.mark.thorough
def test_a_first_picture_that_is_cancelled_leaves_its_text_and_the_way_on(newcomer: Screen):
    text = own(newcomer, SLOWLY) + " first"
    arrive(newcomer, text)
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).click()
    newcomer.page.get_by_text(shell_words.NOTHING_YET).wait_for()
    newcomer.root.wait_for(state="detached")
    assert newcomer.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == text
    assert session_words.STOPPED in newcomer.sentences()
    newcomer.page.get_by_role("button", name=shell_words.TAKE_EXAMPLE).click()
    newcomer.wait(underway="")
    assert newcomer.page.get_by_role("textbox", name="Sentence", exact=True).input_value() == session_words.EXAMPLE


@pytest.mark.thorough
@pytest.mark.parametrize("newcomer", [WIDE], indirect=True)
def test_another_sentence_takes_the_place_of_a_first_one_that_is_half_done(newcomer: Screen):
    arrive(newcomer, own(newcomer, SLOWLY) + " first;")
    begin(newcomer, own(newcomer, SLOWLY) + " first!")
    assert newcomer.tokens()[-2] == "!"
    newcomer.run_text("Never mind.")
    assert newcomer.tokens()[1:3] == ["Never", "mind"]
    assert newcomer.data()["layer"] == str(LAYER) and not newcomer.data()["underway"]


# nobody waits any longer


def runs_become(address: str, wanted: int) -> bool:
    """Whether, after a while, so many runs are under way or wait for a turn, of all visitors."""
    for _ in range(200):
        with urlopen(f"{address}/metrics") as answer:
            if f"headlight_running_or_waiting {wanted}.0\n" in answer.read().decode():
                return True
        time.sleep(0.1)
    return False


@pytest.mark.thorough
@pytest.mark.parametrize("newcomer", [WIDE], indirect=True)
def test_a_room_that_shows_no_run_cancels_it_and_one_that_does_goes_on(newcomer: Screen, address: str):
    assert runs_become(address, 0)
    arrive(newcomer, own(newcomer, SLOWLY) + " left")
    assert runs_become(address, 1)
    bar_hears(newcomer.page)
    newcomer.page.keyboard.press(digit("train"))
    newcomer.page.locator(".train[data-painted]").wait_for()
    assert runs_become(address, 0)
    newcomer.page.go_back()
    newcomer.page.locator(".st-key-explore_stage .hl[data-underway='3 of 6']").wait_for()
    assert runs_become(address, 1)
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).click()
    assert runs_become(address, 0)


@pytest.mark.thorough
def test_a_tab_that_is_closed_cancels_its_run(browser: Browser, address: str):
    assert runs_become(address, 0)
    leaver = Screen(browser.new_context().new_page(), address)
    arrive(leaver, own(leaver, SLOWLY) + " closed")
    assert runs_become(address, 1)
    leaver.page.context.close()
    assert runs_become(address, 0)


def see_shapes(newcomer: Screen, text: str) -> None:
    newcomer.page.goto(f"{newcomer.address}/?{urlencode({'view': 'shapes', 'text': text})}")
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).wait_for()


@pytest.mark.thorough
@pytest.mark.parametrize("newcomer", [WIDE], indirect=True)
def test_shapes_waits_for_a_run_and_draws_it_when_it_has_ended(newcomer: Screen):
    text = own(newcomer, WHILE) + " in Shapes"
    see_shapes(newcomer, text)
    go_on(newcomer)
    n = len(core.trace(core.load("minilm"), text).source)
    newcomer.page.locator(".hl.shapes h2", has_text=re.compile(rf"^{n} tokens")).wait_for()
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).wait_for(state="detached")
    expect(newcomer.page.locator(".hl.shapes[data-tensor]")).to_have_count(1)


@pytest.mark.thorough
@pytest.mark.parametrize("newcomer", [WIDE], indirect=True)
def test_a_run_that_shapes_waits_for_can_be_cancelled_and_taken_up_again(newcomer: Screen, address: str):
    assert runs_become(address, 0)
    see_shapes(newcomer, own(newcomer, SLOWLY) + " in Shapes")
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).click()
    newcomer.page.get_by_text(session_words.STOPPED).wait_for()
    assert runs_become(address, 0)
    newcomer.page.get_by_role("button", name=shell_words.RUN_AGAIN).click()
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).wait_for()
    assert runs_become(address, 1)
    newcomer.page.get_by_role("button", name=shell_words.CANCEL).click()
