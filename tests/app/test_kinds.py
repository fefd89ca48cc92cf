"""Every kind of model on the screen: masks with their reasons, shared key heads, cross-attention, long texts, many heads."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

import core
from app.attention import words as attention_words
from app.session import words
from core.read import head_roles
from tests.app import models
from tests.app.browsing import Screen, degrees, eventually, once, stays
from tests.app.plain import Plain

APP = "tests/app/gallery.py"
LONG = " ".join(f"the quick brown fox jumps over a lazy dog and word{i}" for i in range(60))  # 726 tokens


COUNT_PICTURES = """() => {
    const canvas = CanvasRenderingContext2D.prototype, put = canvas.putImageData;
    window.pictures = 0;
    canvas.putImageData = function (...given) { window.pictures += 1; put.apply(this, given); };
    window.asBefore = () => { canvas.putImageData = put; };
}"""


def hover(screen: Screen, query: int, key: int) -> str:
    screen.page.mouse.move(*screen.cell(query, key))
    screen.wait(cell=f"{query},{key}")
    return screen.root.locator(".tip:not(.card)").inner_text()


def test_masked_cells_give_their_reason_and_no_number(plain: Plain):
    plain.open("?model=grouped&layer=3&head=1&query=10")
    assert "masked: in the future" in hover(plain, 4, 9)
    assert "masked: outside the window" in hover(plain, 9, 4)
    assert "rank" in hover(plain, 9, 8)
    plain.page.mouse.move(5, 5)
    plain.wait(cell="")
    assert (
        "11 of 16 keys are masked: 6 outside the window, 5 in the future." in plain.root.locator(".facts").inner_text()
    )
    assert plain.root.locator(".strip .masked").count() == 11
    plain.until("root.querySelector('.proofs').textContent.includes('masked cells are 0')")


def test_heads_that_share_a_key_head_are_named(plain: Plain):
    plain.open("?model=grouped&head=5")
    assert "Shares its keys and values with heads 4, 6–7." in plain.root.locator(".facts").inner_text()
    assert "Each 4 heads" in plain.root.locator(".heads").inner_text()


@pytest.mark.thorough
def test_heads_that_share_keys_and_values_are_silenced_together(plain: Plain):
    text = "The animal did not cross the street."
    plain.open(f"?view=whatif&model=grouped&text={text.replace(' ', '+')}")
    root = plain.page.locator(".hl.whatif")
    settled = ".hl.whatif[data-settled='true']"
    plain.page.locator(f"{settled}[data-rows='32']").wait_for()
    root.get_by_role("button", name="heads that share keys").click()
    plain.page.locator(f"{settled}[data-rows='8'][data-pick='decoder.0.0']").wait_for()
    run = core.trace(models.load("grouped"), text)
    found = core.sweep_heads(run, groups=True)
    assert found.after.distance is not None and found.after.distance.argmax() == 0
    turn = degrees(float(found.after.distance[0]))
    assert float(root.get_attribute("data-change") or "") == pytest.approx(turn, abs=1e-2)
    assert float(root.get_attribute("data-batch") or "") < 1e-4, "the changed run has all four of them silent"
    assert "Silence layer 0 heads 0–3 and" in root.locator(".fact").inner_text()
    root.locator(".grid").focus()
    plain.page.keyboard.press("ArrowDown")
    plain.page.locator(f"{settled}[data-pick='decoder.0.4']").wait_for()
    root.get_by_role("button", name="Keep").click()
    plain.page.wait_for_url(lambda url: "group=on" in url and url.count("ablate_decoder_L0_H") == 4)
    plain.page.locator(f"{settled}[data-pick='']").wait_for()
    assert root.locator(".chips button").count() == 4


def test_three_kinds_of_attention_each_with_its_own_tokens(plain: Plain):
    plain.open("?model=pair&target=das+Tier&site=cross&layer=2&query=2")
    run = core.trace(models.load("pair"), words.EXAMPLE, "das Tier")
    assert run.target is not None
    assert plain.tokens("query") == list(run.target.labels)
    assert plain.tokens("key") == list(run.source.labels)
    cross = [record for record in run.attention if record.site == "cross_attn"][2]
    hover(plain, 1, 7)
    assert float(plain.data()["value"]) == pytest.approx(cross.row(1, 1)[7].item(), abs=1e-5)
    plain.root.get_by_role("button", name="causal").click()
    plain.wait(site="decoder")
    assert plain.tokens("query") == list(run.target.labels) and plain.tokens("key") == []
    assert "masked: in the future" in hover(plain, 1, 3)
    plain.root.get_by_role("button", name="self", exact=True).click()
    plain.wait(site="encoder", layer="1")
    assert plain.tokens() == list(run.source.labels)
    plain.page.wait_for_url(lambda url: "site=encoder" in url)


@pytest.mark.thorough
def test_the_target_is_part_of_the_request(screen: Screen):
    screen.open("?model=pair&site=cross")
    before = screen.data()["run"]
    box = screen.page.get_by_role("textbox", name="Target", exact=True)
    box.fill("ein Haus")
    box.press("Enter")
    screen.until(f"root.dataset.run !== '{before}'")
    assert "".join(screen.tokens("query")).endswith("einHaus")
    screen.page.wait_for_url(re.compile("target=ein"))


@pytest.mark.thorough
def test_a_long_text_is_fetched_piece_by_piece_and_its_numbers_are_core_s(plain: Plain):
    plain.open(f"?model=grouped&layer=2&head=1&query=400&whole=true&text={LONG.replace(' ', '+')}")
    run = core.trace(models.load("grouped"), LONG)
    row = run.attention[2].row(1, 400)
    plain.until("root.dataset.exact === 'false'")
    plain.until("root.querySelectorAll('.proofs .holds').length === 3")
    plain.until("root.querySelector('.big').textContent.includes('gives')")
    assert f"rank 1 of {401}" in plain.facts()
    assert plain.data()["tokens"] == str(len(run.source))
    plain.root.locator(".matrix").focus()
    for _ in range(5):
        plain.page.keyboard.press("+")
    plain.until("root.dataset.exact === 'true' && Number(root.dataset.size) > 8")
    plain.page.keyboard.press("ArrowRight")
    plain.until("root.dataset.cell.startsWith('400,')")
    key = int(plain.data()["cell"].split(",")[1])
    assert row[key] == row.max()
    assert float(plain.data()["value"]) == pytest.approx(row[key].item(), abs=1e-5)
    plain.page.keyboard.press("0")
    plain.until("root.dataset.exact === 'false'")


@pytest.mark.parametrize(
    "query",
    [
        "?metric=maps",  # the groups by what heads do leave no room for more
        "?model=pair&target=The+cat+sat+on+the+mat",
        pytest.param("?model=pair&target=The+cat+sat+on+the+mat&site=decoder", marks=pytest.mark.thorough),
        pytest.param("?model=many", marks=pytest.mark.thorough),
    ],
)
def test_all_is_on_one_page_and_heads_like_this_one_can_be_reached(plain: Plain, query: str):
    plain.open(query)
    plain.root.locator(".alike button").first.wait_for()
    assert plain.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") <= 720
    plain.until("root.querySelectorAll('.proofs .holds').length >= 2")
    tall = "(root) => root.querySelector('footer').getBoundingClientRect().height / parseFloat(getComputedStyle(root).fontSize)"
    assert plain.root.evaluate(tall) < 2  # one line
    plain.root.locator(".alike button").first.click()
    plain.until("Number(root.dataset.head) !== 1 || Number(root.dataset.layer) !== 3")


def test_the_strip_of_a_long_text_moves_along_with_its_reader(plain: Plain):
    plain.open(f"?model=grouped&layer=2&query=400&text={LONG.replace(' ', '+')}")
    labels = core.trace(models.load("grouped"), LONG).source.labels
    strip = plain.root.locator(".strip")

    def shown() -> list[int]:
        return strip.evaluate(
            "(strip) => [...strip.querySelectorAll('[data-i]')].map((token) => Number(token.dataset.i))"
        )

    assert shown() == list(range(250, 550))
    assert strip.locator("[data-i='400']").inner_text() == labels[400]
    strip.evaluate("(strip) => { strip.scrollTop = strip.scrollHeight; }")
    strip.locator(".more").last.click()
    assert shown() == list(range(400, 700))
    plain.page.mouse.move(5, 5)
    strip.locator("[data-i='400']").focus()
    plain.page.keyboard.press("End")
    plain.until(f"root.dataset.query === '{len(labels) - 1}'")
    assert shown() == list(range(len(labels) - 300, len(labels)))
    plain.page.keyboard.press("Home")
    plain.until("root.dataset.query === '0'")
    assert shown() == list(range(300))
    plain.page.keyboard.press("Escape")
    assert plain.errors == []


@pytest.mark.thorough
def test_a_row_that_is_fetched_changes_the_strip_once_and_the_picture_not_at_all(plain: Plain):
    page = plain.page
    page.evaluate(COUNT_PICTURES)
    plain.open(f"?model=grouped&layer=2&head=1&query=400&whole=true&text={LONG.replace(' ', '+')}")
    plain.until("root.dataset.fetching === 'false' && root.querySelector('.big').textContent.includes('gives')")
    plain.until("root.querySelectorAll('.proofs .holds').length === 3")
    stays(page, lambda: page.evaluate("pictures"))  # once all answers are there
    held: list[Route] = []
    page.route("**/headlight/row*", lambda route: held.append(route))
    before = page.evaluate("pictures")
    page.mouse.move(*plain.cell(700, 3))
    plain.until("root.dataset.cell !== '' && root.dataset.value === ''")
    once(page, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    assert [plain.root.locator(f".strip [data-i='{i}']").count() for i in (400, 700)] == [1, 0]

    def is_asked() -> None:
        assert held

    eventually(page, is_asked)
    held[0].continue_()
    plain.until("root.dataset.value !== ''")
    plain.root.locator(".strip [data-i='700']").wait_for()
    shades = "[...root.querySelectorAll('.strip [data-i]')].map((node) => node.style.backgroundColor)"
    assert len(set(plain.root.evaluate(f"root => {shades}"))) > 1
    assert before > 0 and page.evaluate("pictures") == before
    page.evaluate("asBefore()")


def test_who_looks_at_a_key_of_a_long_text_is_core_s(plain: Plain):
    plain.open(f"?model=grouped&layer=2&head=1&key=7&text={LONG.replace(' ', '+')}")
    run = core.trace(models.load("grouped"), LONG)
    column = run.attention[2].pattern(1)[0, :, 7]
    plain.until("root.querySelector('.big').textContent.includes('looked at most by')")
    best = int(column.argmax())
    assert run.source.labels[best] in plain.facts()
    shown = [float(text.removesuffix(" %")) for text in plain.root.locator(".looks .rows u").all_text_contents()]
    assert shown == pytest.approx((100 * column).topk(4).values.tolist(), abs=0.051)
    shades = "[...root.querySelectorAll('.strip [data-i]')].map((node) => node.style.backgroundColor)"
    assert len(set(plain.root.evaluate(f"root => {shades}"))) > 3
    assert plain.root.locator(".strip .masked").count() == 7  # what comes before a key may not look at it


@pytest.mark.thorough
def test_twelve_hundred_heads_stay_usable(plain: Plain):
    plain.open("?model=many&layer=47&head=24")
    assert (plain.data()["layer"], plain.data()["head"]) == ("47", "24")
    plain.root.locator(".overview").focus()
    for _ in range(30):
        plain.page.keyboard.press("ArrowUp")
    plain.wait(layer="17")
    plain.page.keyboard.press("ArrowLeft")
    plain.wait(head="23")
    visible = plain.root.evaluate(
        "root => { const o = root.querySelector('.overview'); return [o.scrollTop, o.clientHeight, o.scrollHeight] }"
    )
    assert visible[2] >= visible[1]


def test_one_head_of_one_layer_is_drawn_too(plain: Plain):
    plain.open("?model=one")
    assert (plain.data()["layer"], plain.data()["head"]) == ("0", "0")
    assert "1 layer × 1 head" in plain.root.locator(".heads").inner_text()


@pytest.mark.thorough
def test_another_model_keeps_the_sentence_and_opens_at_a_head_of_its_own(screen: Screen):
    screen.open("?layer=5&head=11")
    screen.page.get_by_label("Model").click()
    screen.page.get_by_role("option", name="Grouped").click()
    opening = head_roles.opening_edges(core.trace(models.load("grouped"), words.EXAMPLE))[0]
    screen.wait(site="decoder", layer=str(opening.layer), head=str(opening.head), locked=str(opening.query))
    assert len(screen.tokens()) == 16


@pytest.mark.thorough
def test_a_run_that_overflows_says_so_with_the_layer_in_which_that_began(plain: Plain):
    began = core.trace(models.load("overflowing"), "the cat sat on the mat").non_finite
    assert began is not None and (began.layer, began.kind) == (2, "inf")
    plain.open("?model=overflowing&layer=3&text=the+cat+sat+on+the+mat")
    said = plain.sentences()
    assert "From decoder layer 2 on, this run has numbers that are infinite" in said and f"({began.what})" in said
    assert plain.data()["layer"] == "3"  # and what there is of it can be looked at
    expect(plain.page.locator(".model-strip")).to_be_hidden()  # lengths that are infinite are not drawn
    plain.open("?model=overflowing&layer=1&text=the+cat+sat+on+the+mat")
    plain.root.get_by_role("button", name=attention_words.COMPONENT["table"], exact=True).click()
    plain.root.locator("table tbody tr").first.wait_for()
    plain.run_text("a dog")
    assert "decoder layer 2" in plain.sentences()
