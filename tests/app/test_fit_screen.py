"""Does it fit, in a browser: the sentence, its answer, the orange line, what is offered, predicted and projected."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.rooms.memory import words
from app.sizes import words as sizes_words
from tests.app.browsing import box_of, eventually, idle
from tests.app.planning_screen import Planner, visiting

APP = "app/main.py"
WINDOW = (1280, 720)
LLAMA = {
    "memory_part": "Does it fit",
    "plan_model": "llama-3-8b",
    "plan_phase": "run",
    "plan_dtype": "float16",
    "plan_source": "32768",
    "plan_piece": "2,048 tokens at a time",
    "memory_card": "RTX 4090",
}
TOO_MUCH = LLAMA | {"plan_batch": "4"}


@contextmanager
def asking(
    browser: Browser, address: str, params: Mapping[str, str], size: tuple[int, int] = WINDOW, scheme: str = "light"
) -> Iterator[Planner]:
    with visiting(browser, address, scheme, size) as screen:
        screen.see("memory", False, **params)
        verdict(screen.page).wait_for()
        yield screen


def fit(page: Page) -> Locator:
    return page.locator(".hl.fit")


def verdict(page: Page) -> Locator:
    return fit(page).locator("h2").first


def says(page: Page, said: str) -> bool:
    """Wait until the verdict says this."""
    expect(verdict(page)).to_contain_text(re.compile(said))
    return True


def asked(url: str, names: Collection[str]) -> dict[str, str]:
    said = parse_qs(urlsplit(url).query)
    return {name: said.get(name, [""])[0] for name in names}


def url_says(page: Page, **wanted: str) -> bool:
    """Wait until the address says this."""
    page.wait_for_url(lambda url: asked(url, wanted) == wanted)
    return True


def test_the_first_thing_is_the_answer(browser: Browser, address: str) -> None:
    """A visitor of Memory: their model, as long as it was taught, on this machine, and nothing to scroll."""
    with visiting(browser, address) as screen:
        screen.page.goto(f"{address}/?view=memory&model=SmolLM2-135M")
        says(screen.page, r"^Fits: .* of [\d.]+ GiB\. Up to [\d,]+ tokens, taught 8,192\.$")
        assert url_says(
            screen.page, view="memory", memory_card="machine", plan_source="8192", memory_part="Does it fit"
        )
        foot = box_of(fit(screen.page).get_by_role("button", name="Project"))
        assert foot["y"] + foot["height"] <= 720
        assert screen.page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.thorough
def test_an_offer_makes_it_fit_and_back_undoes_it(browser: Browser, address: str) -> None:
    with asking(browser, address, TOO_MUCH) as screen:
        page = screen.page
        says(page, r"^7\.8 GiB too much: 31\.2 of 23\.3 GiB\.$")
        fit(page).locator(".offers").get_by_role("button", name=re.compile("^4 bit")).click()
        says(page, "^Fits: ")
        assert url_says(page, plan_weights="nf4", plan_dtype="float16")
        page.go_back()
        says(page, "^7.8 GiB too much")
        page.keyboard.press("f")
        says(page, "^Fits: ")
        assert url_says(page, plan_weights="nf4", plan_dtype="float16")
        link = page.url
        with visiting(browser, address) as other:
            other.page.goto(link)
            says(other.page, "^Fits: ")


@pytest.mark.thorough
def test_tokens_are_typed_as_people_type_them(browser: Browser, address: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        field = fit(page).get_by_role("textbox", name="Tokens", exact=True)
        field.fill("4k")
        field.press("Enter")
        assert url_says(page, plan_source="4096")
        expect(field).to_have_value("4,096")
        before = verdict(page).inner_text()
        field.fill("<b>many</b>")
        field.press("Enter")
        note = fit(page).locator(".note")
        expect(note).to_contain_text("is no number of tokens from 1 to 1,048,576")
        expect(field).to_have_value("<b>many</b>")  # it stays, to be corrected
        assert verdict(page).inner_text() == before
        assert not note.locator("b").count()
        field.fill("1M")
        field.press("Enter")
        assert url_says(page, plan_source="1048576")
        expect(note).not_to_contain_text("is no number")
        field.fill("half")
        field.press("Enter")
        expect(note).to_contain_text("is no number of tokens")
        page.get_by_text("Change the model").click()
        screen.slider("layers").press("ArrowLeft")  # the question is another
        expect(note).not_to_contain_text("is no number")
        expect(field).to_have_value("1,048,576")


@pytest.mark.thorough
def test_the_line_moves_with_the_hand_and_stays_where_it_is_let_go(browser: Browser, address: str) -> None:
    """All follows at once; the address when it is let go."""
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        says(page, r"^Fits: 19\.2 of 23\.3 GiB\.")
        box = box_of(fit(page).locator(".figure"))
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.985, box["y"] + box["height"] / 2, steps=4)
        says(page, "too much")
        assert "plan_source=32768" in page.url
        page.mouse.up()
        page.wait_for_url(lambda url: "plan_source=32768" not in url)
        says(page, "too much")
        assert fit(page).locator(".offers .takes").count()
        fit(page).locator(".figure").get_by_role("slider").press("ArrowLeft")
        page.wait_for_timeout(50)
        n = fit(page).get_by_role("textbox", name="Tokens", exact=True).input_value()
        assert url_says(page, plan_source=n.replace(",", ""))


@pytest.mark.thorough
def test_every_part_of_the_sentence_changes_the_answer(browser: Browser, address: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        sentence = fit(page).locator(".sentence")
        sentence.get_by_role("button", name="8", exact=True).click()
        assert url_says(page, plan_weights="int8")
        sentence.get_by_role("button", name=re.compile("more")).click()
        assert url_says(page, plan_batch="2")
        sentence.get_by_role("combobox", name="GGUF type").select_option("Q4_K_M")
        assert url_says(page, plan_weights="Q4_K_M")
        sentence.get_by_role("combobox", name="Card or machine").select_option("T4")
        assert url_says(page, memory_card="T4")
        says(page, r" of 14\.\d GiB")
        sentence.get_by_role("combobox", name="How many cards").select_option("2")
        assert url_says(page, memory_cards="2")
        says(page, "on the fullest of 2 cards")
        sentence.get_by_role("button", name="training", exact=True).click()
        assert url_says(page, plan_phase="train")
        sentence.get_by_role("combobox", name="Model").select_option("gpt2-medium")
        assert url_says(page, plan_model="gpt2-medium")
        says(page, "GiB")


@pytest.mark.thorough
def test_a_press_that_back_overtakes_is_taken_back_with_it(browser: Browser, address: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        sentence = fit(page).locator(".sentence")
        before = asked(page.url, ["plan_weights", "plan_batch"])
        sentence.get_by_role("button", name="8", exact=True).click()
        assert url_says(page, plan_weights="int8")
        idle(page)
        sentence.get_by_role("button", name=re.compile("more")).evaluate("more => { more.click(); history.back(); }")
        assert url_says(page, **before)
        page.wait_for_timeout(500)  # in which a script that was to come would have begun
        idle(page)
        assert url_says(page, **before)
        says(page, r"^Fits: 19\.2 of 23\.3 GiB\.")
        sentence.get_by_role("button", name=re.compile("more")).click()  # the next one counts
        assert url_says(page, plan_batch="2")


@pytest.mark.thorough
def test_presses_that_come_faster_than_answers_all_count(browser: Browser, address: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        more = fit(screen.page).locator(".sentence").get_by_role("button", name=re.compile("more"))
        for _ in range(5):
            more.click(delay=0)
        assert url_says(screen.page, plan_batch="6")
        says(screen.page, "too much")


@pytest.mark.thorough
@pytest.mark.parametrize("tab", list(words.FIT_TABS))
def test_each_tab_opens_and_is_in_the_address(browser: Browser, address: str, tab: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        fit(screen.page).get_by_role("tab", name=words.FIT_TABS[tab], exact=True).click()
        assert url_says(screen.page, memory_tab=tab)
        panel = fit(screen.page).get_by_role("tabpanel")
        expect(panel).not_to_have_text("")
        foot = box_of(panel)
        assert foot["y"] + foot["height"] <= 720


@pytest.mark.thorough
def test_an_assumption_is_switched_off_and_says_what_it_changes(browser: Browser, address: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        fit(page).get_by_role("tabpanel").get_by_role("button", name="eager", exact=True).click()
        assert url_says(page, plan_attention="eager")
        fit(page).get_by_role("tabpanel").get_by_role("button", name="the textbook", exact=True).click()
        assert url_says(page, plan_attention="eager", plan_logits="every position", plan_piece="at once")
        says(page, "too much")


@pytest.mark.thorough
def test_a_prediction_hides_the_answer_until_it_is_seen(browser: Browser, address: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        fit(page).get_by_role("button", name=words.PREDICT, exact=True).click()
        says(page, "^Where does it stop fitting")
        for hidden in ("66,9", "19.2 of"):
            assert hidden not in fit(page).locator(".left").inner_text()
        for _ in range(3):
            page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Space")
        says(page, r"^It stops at 66,\d00 tokens\. You said [\d,]+\.")
        page.wait_for_url(re.compile(r"memory_predict=\d+"))


@pytest.mark.thorough
def test_another_part_and_back_keeps_the_question(browser: Browser, address: str) -> None:
    with asking(browser, address, TOO_MUCH) as screen:
        page = screen.page
        screen.part("Where it goes")
        page.locator(".hl.planner h2", has_text="31.2 GiB").wait_for()
        screen.part("Does it fit")
        assert says(page, "^7.8 GiB too much")


@pytest.mark.thorough
def test_a_size_is_changed_below_and_the_answer_follows(browser: Browser, address: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        page.get_by_text("Change the model").click()
        screen.slider("layers").press("ArrowLeft")
        assert url_says(page, plan_layers="24")
        says(page, r"^Fits: 1[0-8]\.")


@pytest.mark.thorough
def test_on_a_phone_everything_can_be_pressed(browser: Browser, address: str) -> None:
    with asking(browser, address, TOO_MUCH, (390, 844)) as screen:
        page = screen.page
        says(page, "too much")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        small = [
            (one.inner_text(), box)
            for one in fit(page).locator("button:visible, select:visible").all()
            if (box := one.bounding_box()) is not None and box["height"] < 40
        ]
        assert not small
        fit(page).locator(".offers").get_by_role("button", name=re.compile("^4 bit")).click()
        says(page, "^Fits: ")


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_projected_the_answer_fills_the_wall(browser: Browser, address: str, scheme: str) -> None:
    with asking(browser, address, LLAMA | {"projector": "true"}, (1920, 1080), scheme) as screen:
        page = screen.page
        fit(page).and_(page.locator("[data-projector=true]")).wait_for()

        def is_large() -> None:
            assert float(verdict(page).evaluate("node => parseFloat(getComputedStyle(node).fontSize)")) >= 44

        eventually(page, is_large)  # its type grows with the page's, a step later
        screen.part("Where it goes")  # Python has heard how large the type is, and draws for it
        page.locator(".js-plotly-plot .main-svg").first.wait_for()
        scale = float(page.locator(".hl.planner").get_attribute("data-scale") or 0)
        large = page.locator(".js-plotly-plot .xtick text").first.evaluate(
            "node => parseFloat(getComputedStyle(node).fontSize)"
        )
        assert scale > 1.5 and large > 20
        screen.part("Does it fit")
        eventually(page, is_large)
        expect(fit(page).locator(".side")).to_be_hidden()
        page.keyboard.press("t")  # digits are the bar's
        expect(fit(page).locator(".side")).to_be_visible()
        expect(fit(page).get_by_role("tabpanel")).to_contain_text("One fused kernel")
        page.keyboard.press("t")
        expect(fit(page).get_by_role("tabpanel")).to_contain_text("five terms")
        page.keyboard.press("Escape")
        expect(fit(page).locator(".side")).to_be_hidden()


@pytest.mark.thorough
def test_the_picture_has_a_table(browser: Browser, address: str) -> None:
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        fit(page).get_by_role("button", name="The same as a table").click()
        table = fit(page).locator(".same table")
        expect(table).to_contain_text("32,768")
        expect(table).to_contain_text("19.2 GiB")


@pytest.mark.thorough
def test_a_sentence_of_ones_own_is_asked_about(browser: Browser, address: str) -> None:
    """The visitor's text stands below the answer; a chip asks about as many tokens as it has."""
    with visiting(browser, address) as screen:
        page = screen.page
        page.goto(f"{address}/?view=memory&model=SmolLM2-135M&text=One+two+three.")
        says(page, "^Fits: ")
        fit(page).get_by_role("button", name="your sentence").click()
        assert url_says(page, plan_source="4", plan_model="run")
        fit(page).get_by_role("button", name="this model, here").click()
        assert url_says(page, plan_source="8192", plan_model="run")


@pytest.mark.thorough
def test_a_memory_of_ones_own_is_typed(browser: Browser, address: str) -> None:
    """An exercise: GPT-2 medium in 8 GB."""
    params = {"memory_part": "Does it fit", "plan_model": "gpt2-medium", "plan_phase": "train", "plan_source": "1024"}
    with asking(browser, address, params) as screen:
        page = screen.page
        fit(page).get_by_role("combobox", name="Card or machine").select_option("own")
        assert url_says(page, memory_card="own", memory_budget="8")
        says(page, r" of 7\.5 GiB")
        field = fit(page).get_by_role("textbox", name="Your memory, GB")
        field.fill("nothing")
        field.press("Enter")
        expect(fit(page).locator(".note")).to_contain_text("“nothing” is no memory.")
        field.fill("4 GB")
        field.press("Enter")
        assert url_says(page, memory_budget="4")
        says(page, "too much")


@pytest.mark.thorough
def test_a_config_json_is_asked_about(browser: Browser, address: str) -> None:
    """The box to paste it into stands where it is seen; until then the last answer stays."""
    config = {"model_type": "gpt2", "vocab_size": 500, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
    with asking(browser, address, LLAMA) as screen:
        page = screen.page
        fit(page).locator(".sentence").get_by_role("combobox", name="Model").select_option("pasted")
        screen.text("The picture still shows the last sizes that fit together.")
        assert says(page, r"^Fits: 19\.2 of")
        page.get_by_role("button", name="Sizes").click()
        box = page.get_by_role("textbox", name=sizes_words.PASTE)
        box.fill(json.dumps(config))
        box.press("Control+Enter")
        assert says(page, r"All 64 tokens of its table\.$")
        assert url_says(page, plan_model="pasted")
