"""The overview: numbers of heads by core.measures, the ranked list, blocks, groups, and a selection of heads."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from playwright.sync_api import expect

import core
from core.read import head_roles as heads
from core.read import measures
from core.trace import Trace
from tests.app import models
from tests.app.browsing import box_of
from tests.app.plain import Plain

APP = "tests/app/gallery.py"
TEXT = "the cat sat on the mat and the cat slept"  # tokens repeat


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


@pytest.mark.parametrize("model", ["minilm", "grouped"])
def test_every_number_is_core_s(plain: Plain, model: str):
    plain.open(f"?model={model}&metric={METRICS[0]}&text={TEXT.replace(' ', '+')}")
    run = core.trace(models.load(model), TEXT)
    for metric in METRICS:
        plain.root.locator(".metricbar select").select_option(metric)
        plain.wait(metric=metric)
        plain.until("root.dataset.metrics")
        sent = [float(value) for value in plain.data()["metrics"].split()]
        expected = [value for row in numbers(run, metric) for value in row]
        assert sent == pytest.approx(expected, abs=2e-4), metric
        legend = plain.root.locator(".metricbar .legend").inner_text()
        assert ("-" in legend) == (metric == "distance" and min(expected) < 0)


@pytest.mark.parametrize(
    "query",
    [
        "?model=minilm&layer=3&head=1",
        pytest.param("?model=grouped&layer=1&head=2", marks=pytest.mark.thorough),
    ],
)
def test_heads_like_this_one_are_those_whose_map_correlates_most(plain: Plain, query: str):
    """Each weight less the mean of its map, over the cells that may be seen: what the help beside the heads says."""
    plain.open(f"{query}&metric=maps&text={TEXT.replace(' ', '+')}")
    plain.until("root.dataset.alike")
    run = core.trace(models.load(query[7:].partition("&")[0]), TEXT)
    layer, head = (int(plain.data()[name]) for name in ("layer", "head"))
    seen = run.attention[layer].mask(head=head).clone()
    rest = measures.sink(run.attention)
    if rest is not None and rest.is_sink:
        seen[:, rest.key] = False
    heads = [(at, i) for at, record in enumerate(run.attention) for i in range(record.n_heads)]
    maps = torch.stack([run.attention[at].pattern(i)[0][seen] for at, i in heads])
    close = torch.corrcoef(maps)[heads.index((layer, head))].nan_to_num(-2)
    order = [heads[i] for i in close.argsort(descending=True).tolist() if heads[i] != (layer, head)]
    sent = [part.split(":") for part in plain.data()["alike"].split()]
    assert [place for place, _ in sent] == [f"{at}.{i}" for at, i in order[:4]]
    expected = [float(close[heads.index(place)]) for place in order[:4]]
    assert [float(r) for _, r in sent] == pytest.approx(expected, abs=2e-3)


def test_heads_like_this_one_stand_in_the_corner_that_groups_leave_free(plain: Plain):
    plain.open("?model=minilm&layer=3&head=1")
    plain.until("root.dataset.alike")
    beside = plain.root.locator(".overview .alike.corner")
    expect(beside.get_by_role("button")).to_have_count(4)
    box, heads = box_of(beside), box_of(plain.root.locator(".overview"))
    assert heads["y"] <= box["y"] and box["y"] + box["height"] <= heads["y"] + heads["height"] + 1
    for place in (plain.root.locator(".overview").get_attribute("data-places") or "").split():
        x, y = map(float, place.partition(":")[2].split(","))  # no small map below it
        assert heads["x"] + x + 22 <= box["x"] or not box["y"] - 22 < heads["y"] + y < box["y"] + box["height"], place
    layer, _, head = plain.data()["alike"].partition(":")[0].partition(".")
    beside.get_by_role("button").first.click()
    plain.wait(layer=layer, head=head)


def test_sorted_heads_are_in_order_and_one_click_away(plain: Plain):
    plain.open(f"?metric=previous&text={TEXT.replace(' ', '+')}")
    plain.root.get_by_role("button", name="sort").click()
    plain.wait(sort="true")
    values = numbers(core.trace(core.load("minilm"), TEXT), "previous")
    order = sorted(((layer, head) for layer in range(6) for head in range(12)), key=lambda at: -values[at[0]][at[1]])
    listed = plain.root.locator(".ranked button")
    assert listed.count() == 72
    assert plain.data()["sorted"].split()[:20] == [f"{layer}.{head}" for layer, head in order[:20]]
    listed.nth(2).click()
    plain.wait(layer=str(order[2][0]), head=str(order[2][1]))
    plain.page.keyboard.press("ArrowDown")
    plain.wait(layer=str(order[3][0]), head=str(order[3][1]))
    assert listed.nth(3).get_attribute("aria-pressed") == "true"
    plain.page.wait_for_url(lambda url: "sort=true" in url and "metric=previous" in url)


def test_entropy_lists_the_most_focused_head_first(plain: Plain):
    plain.open("?metric=entropy&sort=true")
    shown = [float(text) for text in plain.root.locator(".ranked u").all_inner_texts()]
    assert shown == sorted(shown) and len(shown) == 72


def test_a_cell_has_its_value_on_hover_and_the_metric_its_meaning(plain: Plain):
    plain.open("?metric=previous")
    box = box_of(plain.root.locator(".overview"))
    said = ""
    for x in range(0, int(box["width"]), 4):
        plain.page.mouse.move(box["x"] + x, box["y"] + 30)
        said = plain.root.locator(".tip:not(.card)").inner_text()
        if "Head 2" in said:
            break
    text = core.trace(core.load("minilm"), "The animal didn't cross the street because it was too tired.")
    value = measures.previous_token(text.attention[0].pattern(2))[0].item()
    assert f"previous token {value * 100:.1f} %" in said
    assert "just before" in (plain.root.locator(".metricbar select").get_attribute("title") or "")


def test_induction_needs_a_token_that_repeats(plain: Plain):
    plain.open("?metric=induction&text=one+two+three")
    assert "no token repeats" in plain.root.locator(".metricbar .legend").inner_text()


@pytest.mark.thorough
def test_a_long_text_is_measured_by_the_server_on_rows_that_it_names(plain: Plain):
    text = " ".join(f"the quick brown fox jumps over a lazy dog and word{i}" for i in range(60))
    plain.open(f"?model=grouped&metric=diagonal&text={text.replace(' ', '+')}")
    plain.until("root.dataset.metrics")
    run = core.trace(models.load("grouped"), text)
    sent = torch.tensor([float(value) for value in plain.data()["metrics"].split()]).view(4, 8)
    n = len(run.source)
    rows = torch.tensor([int((i + 0.5) * n / 256) for i in range(256)])
    expected = [measures.diagonal(record.pattern(None, rows), rows) for record in run.attention]
    assert torch.allclose(sent, torch.stack(expected), atol=2e-5)
    assert "256 rows" in plain.root.locator(".metricbar .legend").inner_text()


def test_blocks_of_an_encoder_decoder_are_all_there_and_arrows_cross_them(plain: Plain):
    plain.open("?model=pair&target=das+Tier&metric=maps")
    visible = plain.root.evaluate(
        "root => { const o = root.querySelector('.overview'); return o.scrollHeight <= o.clientHeight + 1 }"
    )
    assert visible
    plain.root.locator(".overview").focus()
    for _ in range(9):
        plain.page.keyboard.press("ArrowUp")
    plain.wait(site="encoder", layer="0")
    for site, layer in (("encoder", "1"), ("decoder", "0"), ("decoder", "1"), ("decoder", "2"), ("cross", "0")):
        plain.page.keyboard.press("ArrowDown")
        plain.wait(site=site, layer=layer)
    assert "cross" in plain.root.locator(".tools [aria-pressed=true]").first.inner_text()


def test_heads_are_chosen_by_shift_click_and_by_keyboard(plain: Plain):
    plain.open("?metric=maps")
    plain.page.keyboard.down("Shift")
    plain.page.mouse.click(*plain.head(3, 4))
    plain.page.keyboard.up("Shift")
    plain.wait(kind="mean", members="[[3,1],[3,4]]")
    plain.root.locator(".overview").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Space"):
        plain.page.keyboard.press(key)
    plain.wait(members="[[3,1],[3,4],[5,2]]")
    assert plain.root.locator(".map h2 b").inner_text() == "Mean of 3 heads: L3 H1, L3 H4, L5 H2"
    plain.page.keyboard.press("Shift+Enter")
    plain.wait(members="[[3,1],[3,4]]")
    plain.page.wait_for_url(lambda url: "heads=3.1" in url and "kind=mean" in url)
    plain.page.mouse.click(*plain.head(2, 7))
    plain.wait(kind="mean", members="[[2,7],[3,1],[3,4]]")  # another one of several, not another picture
    plain.page.mouse.dblclick(*plain.head(2, 7))
    plain.wait(kind="head", members="[]", layer="2", head="7")
    assert plain.root.locator(".map h2 b").inner_text() == "Layer 2 · Head 7"


def test_heads_open_in_groups_by_what_core_says_they_do(plain: Plain):
    """A head's place is in its group, where a click and the arrow keys find it; by layer is one choice away, and in the link."""
    plain.open(f"?text={TEXT.replace(' ', '+')}")
    run = core.trace(core.load("minilm"), TEXT)
    names = [role.name for roles in heads.run_roles(run) for role in roles]
    lines = [text.rsplit(" ", 1) for text in plain.root.locator(".groups p").all_text_contents()]
    assert {name: int(n) for name, n in lines} == Counter(names)
    assert lines[-1][0].startswith("rests on") and lines[-2][0] == "mixed"
    previous = names.index("one back")
    plain.page.mouse.click(*plain.head(*divmod(previous, 12)))
    plain.wait(layer=str(previous // 12), head=str(previous % 12))
    plain.root.locator(".overview").focus()
    plain.page.keyboard.press("ArrowDown")
    plain.until(f"root.dataset.layer + '.' + root.dataset.head !== '{previous // 12}.{previous % 12}'")
    at = int(plain.data()["layer"]) * 12 + int(plain.data()["head"])
    assert names[at] == lines[1][0]  # the next group, and not the next layer
    plain.root.get_by_label("What each small picture shows").select_option(label="by layer")
    plain.wait(metric="maps")
    assert not plain.root.locator(".groups").is_visible()
    plain.page.wait_for_url(lambda url: "metric=maps" in url)


@pytest.mark.parametrize("query", ["model=grouped", "kind=rollout"])
def test_heads_stand_by_layer_where_that_says_more(plain: Plain, query: str):
    plain.open(f"?{query}&text={TEXT.replace(' ', '+')}")
    assert not plain.root.locator(".groups").is_visible()
    assert (plain.root.locator(".overview").get_attribute("data-places") or "") == ""


def test_twelve_hundred_heads_have_numbers_and_a_list(plain: Plain):
    plain.open("?model=many&metric=entropy")
    run = core.trace(models.load("many"), "The animal didn't cross the street because it was too tired.")
    plain.until("root.dataset.metrics")
    sent = [float(value) for value in plain.data()["metrics"].split()]
    assert sent == pytest.approx([v for row in numbers(run, "entropy") for v in row], abs=1e-4)
    plain.root.get_by_role("button", name="sort").click()
    plain.until("root.querySelectorAll('.ranked button').length === 100")
    assert "first 100 of 1,200" in plain.root.locator(".ranked").inner_text()


def test_a_sentence_of_two_lines_leaves_room_for_every_row_of_heads(plain: Plain):
    text = "+".join(["The+animal+did+not+cross+the+street+because+it+was+tired"] * 3)
    plain.open(f"?model=storyteller&metric=maps&text={text}")
    lines = "(strip) => strip.getBoundingClientRect().height / parseFloat(getComputedStyle(strip).lineHeight)"
    assert plain.root.locator(".strip").evaluate(lines) > 1.9
    box = plain.root.locator(".overview")
    assert box.evaluate("(box) => box.scrollHeight <= box.clientHeight + 1")
