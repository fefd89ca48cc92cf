"""The overview: numbers of heads by core.measures, the ranked list, blocks, groups, and a selection of heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Browser, expect

import core
from core.read import head_roles as heads
from core.read import measures, sinks
from core.run.trace import Trace
from tests.app import models
from tests.app.browsing import Screen, box_of
from tests.app.pages import lend
from tests.thorough import part

APP = "tests/app/gallery.py"
TEXT = "the cat sat on the mat and the cat slept"  # tokens repeat


@pytest.fixture
def screen(browser: Browser, address: str) -> Iterator[Screen]:
    with lend(browser, viewport={"width": 1280, "height": 720}) as page:
        screen = Screen(page, address)
        yield screen
        screen.leave()


def numbers(run: Trace, metric: str) -> list[list[float]]:
    """By core: [layer][head]."""
    of = {
        "entropy": lambda p: measures.entropy(p).mean(-1),
        "distance": lambda p: measures.distance(p).mean(-1),
        "sink": measures.sink_share,
        "previous": measures.previous_token,
        "diagonal": measures.diagonal,
        "induction": lambda p: measures.induction(p, run.source.ids),
    }[metric]
    return torch.stack([of(record.pattern()) for record in run.attention]).tolist()


METRICS = ("entropy", "distance", "sink", "previous", "induction", "diagonal")


@pytest.mark.parametrize(
    ("model", "metric"),
    [*(("minilm", metric) for metric in part(METRICS)), *(("grouped", metric) for metric in part(METRICS, first=1))],
)
def test_every_number_is_core_s(screen: Screen, model: str, metric: str):
    screen.open(f"?model={model}&metric={metric}&text={TEXT.replace(' ', '+')}")
    screen.until("root.dataset.metrics")
    run = core.trace(models.load(model), TEXT)
    sent = [float(value) for value in screen.data()["metrics"].split()]
    expected = [value for row in numbers(run, metric) for value in row]
    assert sent == pytest.approx(expected, abs=2e-4)
    legend = screen.root.locator(".metricbar .legend").inner_text()
    assert ("-" in legend) == (metric == "distance" and min(expected) < 0)


@pytest.mark.parametrize("query", ["?model=minilm&layer=3&head=1", "?model=grouped&layer=1&head=2"])
def test_heads_like_this_one_are_those_whose_map_correlates_most(screen: Screen, query: str):
    """Each weight less the mean of its map, over the cells that may be seen: what the help beside the heads says."""
    screen.open(f"{query}&metric=maps&text={TEXT.replace(' ', '+')}")
    screen.until("root.dataset.alike")
    run = core.trace(models.load(query[7:].partition("&")[0]), TEXT)
    layer, head = (int(screen.data()[name]) for name in ("layer", "head"))
    seen = run.attention[layer].mask(head=head).clone()
    rest = sinks.sink(run.attention)
    if rest is not None and rest.is_sink:
        seen[:, rest.key] = False
    heads = [(at, i) for at, record in enumerate(run.attention) for i in range(record.n_heads)]
    maps = torch.stack([run.attention[at].pattern(i)[0][seen] for at, i in heads])
    close = torch.corrcoef(maps)[heads.index((layer, head))].nan_to_num(-2)
    order = [heads[i] for i in close.argsort(descending=True).tolist() if heads[i] != (layer, head)]
    sent = [part.split(":") for part in screen.data()["alike"].split()]
    assert [place for place, _ in sent] == [f"{at}.{i}" for at, i in order[:4]]
    expected = [float(close[heads.index(place)]) for place in order[:4]]
    assert [float(r) for _, r in sent] == pytest.approx(expected, abs=2e-3)


def test_heads_like_this_one_stand_in_the_corner_that_groups_leave_free(screen: Screen):
    screen.open("?model=minilm&layer=3&head=1")
    screen.until("root.dataset.alike")
    beside = screen.root.locator(".overview .alike.corner")
    expect(beside.get_by_role("button")).to_have_count(4)
    box, heads = box_of(beside), box_of(screen.root.locator(".overview"))
    assert heads["y"] <= box["y"] and box["y"] + box["height"] <= heads["y"] + heads["height"] + 1
    for place in (screen.root.locator(".overview").get_attribute("data-places") or "").split():
        x, y = map(float, place.partition(":")[2].split(","))  # no small map below it
        assert heads["x"] + x + 22 <= box["x"] or not box["y"] - 22 < heads["y"] + y < box["y"] + box["height"], place
    layer, _, head = screen.data()["alike"].partition(":")[0].partition(".")
    beside.get_by_role("button").first.click()
    screen.wait(layer=layer, head=head)


def test_sorted_heads_are_in_order_and_one_click_away(screen: Screen):
    screen.open(f"?metric=previous&text={TEXT.replace(' ', '+')}")
    screen.root.get_by_role("button", name="sort").click()
    screen.wait(sort="true")
    values = numbers(core.trace(core.load("minilm"), TEXT), "previous")
    order = sorted(((layer, head) for layer in range(6) for head in range(12)), key=lambda at: -values[at[0]][at[1]])
    listed = screen.root.locator(".ranked button")
    assert listed.count() == 72
    assert screen.data()["sorted"].split()[:20] == [f"{layer}.{head}" for layer, head in order[:20]]
    listed.nth(2).click()
    screen.wait(layer=str(order[2][0]), head=str(order[2][1]))
    screen.page.keyboard.press("ArrowDown")
    screen.wait(layer=str(order[3][0]), head=str(order[3][1]))
    assert listed.nth(3).get_attribute("aria-pressed") == "true"
    screen.page.wait_for_url(lambda url: "sort=true" in url and "metric=previous" in url)


def test_entropy_lists_the_most_focused_head_first(screen: Screen):
    screen.open("?metric=entropy&sort=true")
    shown = [float(text) for text in screen.root.locator(".ranked u").all_inner_texts()]
    assert shown == sorted(shown) and len(shown) == 72


def test_a_cell_has_its_value_on_hover_and_the_metric_its_meaning(screen: Screen):
    screen.open("?metric=previous")
    box = box_of(screen.root.locator(".overview"))
    said = ""
    for x in range(0, int(box["width"]), 4):
        screen.page.mouse.move(box["x"] + x, box["y"] + 30)
        said = screen.root.locator(".tip:not(.card)").inner_text()
        if "Head 2" in said:
            break
    text = core.trace(core.load("minilm"), "The animal didn't cross the street because it was too tired.")
    value = measures.previous_token(text.attention[0].pattern(2))[0].item()
    assert f"previous token {value * 100:.1f} %" in said
    assert "just before" in (screen.root.locator(".metricbar select").get_attribute("title") or "")


def test_induction_needs_a_token_that_repeats(screen: Screen):
    screen.open("?metric=induction&text=one+two+three")
    assert "no token repeats" in screen.root.locator(".metricbar .legend").inner_text()


def test_a_long_text_is_measured_by_the_server_on_rows_that_it_names(screen: Screen):
    text = " ".join(f"the quick brown fox jumps over a lazy dog and word{i}" for i in range(60))
    screen.open(f"?model=grouped&metric=diagonal&text={text.replace(' ', '+')}")
    screen.until("root.dataset.metrics")
    run = core.trace(models.load("grouped"), text)
    sent = torch.tensor([float(value) for value in screen.data()["metrics"].split()]).view(4, 8)
    n = len(run.source)
    rows = torch.tensor([int((i + 0.5) * n / 256) for i in range(256)])
    expected = [measures.diagonal(record.pattern(None, rows), rows) for record in run.attention]
    assert torch.allclose(sent, torch.stack(expected), atol=2e-5)
    assert "256 rows" in screen.root.locator(".metricbar .legend").inner_text()


def test_blocks_of_an_encoder_decoder_are_all_there_and_arrows_cross_them(screen: Screen):
    screen.open("?model=pair&target=das+Tier&metric=maps")
    visible = screen.root.evaluate(
        "root => { const o = root.querySelector('.overview'); return o.scrollHeight <= o.clientHeight + 1 }"
    )
    assert visible
    screen.root.locator(".overview").focus()
    for _ in range(9):
        screen.page.keyboard.press("ArrowUp")
    screen.wait(site="encoder", layer="0")
    for site, layer in (("encoder", "1"), ("decoder", "0"), ("decoder", "1"), ("decoder", "2"), ("cross", "0")):
        screen.page.keyboard.press("ArrowDown")
        screen.wait(site=site, layer=layer)
    assert "cross" in screen.root.locator(".tools [aria-pressed=true]").first.inner_text()


def test_heads_are_chosen_by_shift_click_and_by_keyboard(screen: Screen):
    screen.open("?metric=maps")
    screen.page.keyboard.down("Shift")
    screen.page.mouse.click(*screen.head(3, 4))
    screen.page.keyboard.up("Shift")
    screen.wait(kind="mean", members="[[3,1],[3,4]]")
    screen.root.locator(".overview").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Space"):
        screen.page.keyboard.press(key)
    screen.wait(members="[[3,1],[3,4],[5,2]]")
    assert screen.root.locator(".map h2 b").inner_text() == "Mean of 3 heads: L3 H1, L3 H4, L5 H2"
    screen.page.keyboard.press("Shift+Enter")
    screen.wait(members="[[3,1],[3,4]]")
    screen.page.wait_for_url(lambda url: "heads=3.1" in url and "kind=mean" in url)
    screen.page.mouse.click(*screen.head(2, 7))
    screen.wait(kind="mean", members="[[2,7],[3,1],[3,4]]")  # another one of several, not another picture
    screen.page.mouse.dblclick(*screen.head(2, 7))
    screen.wait(kind="head", members="[]", layer="2", head="7")
    assert screen.root.locator(".map h2 b").inner_text() == "Layer 2 · Head 7"


def test_heads_open_in_groups_by_what_core_says_they_do(screen: Screen):
    """A head's place is in its group, where a click and the arrow keys find it; by layer is one choice away, and in the link."""
    screen.open(f"?text={TEXT.replace(' ', '+')}")
    run = core.trace(core.load("minilm"), TEXT)
    names = [role.name for roles in heads.roles_of(run) for role in roles]
    lines = [text.rsplit(" ", 1) for text in screen.root.locator(".groups p").all_text_contents()]
    assert {name: int(n) for name, n in lines} == Counter(names)
    assert lines[-1][0].startswith("rests on") and lines[-2][0] == "mixed"
    previous = names.index("one back")
    screen.page.mouse.click(*screen.head(*divmod(previous, 12)))
    screen.wait(layer=str(previous // 12), head=str(previous % 12))
    screen.root.locator(".overview").focus()
    screen.page.keyboard.press("ArrowDown")
    screen.until(f"root.dataset.layer + '.' + root.dataset.head !== '{previous // 12}.{previous % 12}'")
    at = int(screen.data()["layer"]) * 12 + int(screen.data()["head"])
    assert names[at] == lines[1][0]  # the next group, and not the next layer
    screen.root.get_by_label("What each small picture shows").select_option(label="by layer")
    screen.wait(metric="maps")
    assert not screen.root.locator(".groups").is_visible()
    screen.page.wait_for_url(lambda url: "metric=maps" in url)


@pytest.mark.parametrize("query", ["model=grouped", "kind=rollout"])
def test_heads_stand_by_layer_where_that_says_more(screen: Screen, query: str):
    screen.open(f"?{query}&text={TEXT.replace(' ', '+')}")
    assert not screen.root.locator(".groups").is_visible()
    assert (screen.root.locator(".overview").get_attribute("data-places") or "") == ""


def test_twelve_hundred_heads_have_numbers_and_a_list(screen: Screen):
    screen.open("?model=many&metric=entropy")
    screen.until("root.dataset.metrics")
    run = core.trace(models.load("many"), "The animal didn't cross the street because it was too tired.")
    sent = [float(value) for value in screen.data()["metrics"].split()]
    assert sent == pytest.approx([v for row in numbers(run, "entropy") for v in row], abs=1e-4)
    screen.root.get_by_role("button", name="sort").click()
    screen.until("root.querySelectorAll('.ranked button').length === 100")
    assert "first 100 of 1,200" in screen.root.locator(".ranked").inner_text()


def test_a_sentence_of_two_lines_leaves_room_for_every_row_of_heads(screen: Screen):
    text = "+".join(["The+animal+did+not+cross+the+street+because+it+was+tired"] * 3)
    screen.open(f"?model=storyteller&metric=maps&text={text}")
    lines = "(strip) => strip.getBoundingClientRect().height / parseFloat(getComputedStyle(strip).lineHeight)"
    assert screen.root.locator(".strip").evaluate(lines) > 1.9
    box = screen.root.locator(".overview")
    assert box.evaluate("(box) => box.scrollHeight <= box.clientHeight + 1")
