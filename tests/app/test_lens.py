"""What the large map shows: several heads, rollout, norms, hidden tokens, words. core is the judge of every number."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from playwright.sync_api import expect
from torch import Tensor

import core
from app.attention import words as attention_words
from app.session import words
from core.read import measures
from core.service import word_groups
from core.trace import Trace
from tests.app import models
from tests.app.browsing import Screen, eventually
from tests.app.plain import Plain, opened

APP = "tests/app/gallery.py"
LAYER, HEAD, IT = 3, 1, 10
PIECES = "unbelievably overcomplicated tokenization of transformers"
LONG = " ".join(f"the quick brown fox jumps over a lazy dog and word{i}" for i in range(60))  # 726 tokens
STEP = 0.5 / 65535

first = opened("")


@pytest.fixture(scope="module")
def run() -> Trace:
    return core.trace(core.load("minilm"), words.EXAMPLE)


def shown(screen: Screen) -> dict[int, str]:
    """The row of the locked query as the table has it: what stands for each key, by its first position."""
    screen.root.locator("table").wait_for()
    cells = screen.root.evaluate(
        "root => [...root.querySelectorAll('table tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    return {int(position): value for _, _, position, value in cells}


def assert_row(screen: Screen, expected: Tensor, positions: Sequence[int] | None = None, off: float = 6e-5) -> None:
    row = shown(screen)
    for i, value in enumerate(expected.tolist()):
        text = row[i if positions is None else positions[i]]
        if value == 0 and not text[0].isdecimal():
            continue
        assert float(text) == pytest.approx(value, abs=off), i


def hidden(rows: Tensor, keys: Sequence[int]) -> Tensor:
    rows = rows.clone()
    rows[..., list(keys)] = 0
    return rows / rows.sum(-1, keepdim=True)


def merged(rows: Tensor, queries: Sequence[range], keys: Sequence[range]) -> Tensor:
    columns = torch.stack([rows[:, list(group)].sum(-1) for group in keys], dim=-1)
    return torch.stack([columns[list(group)].mean(0) for group in queries])


def title(screen: Screen) -> str:
    return screen.root.locator(".map h2 b").inner_text()


MEMBERS = [(3, 1), (3, 4), (5, 2)]


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("max", []),
        ("", MEMBERS),
        pytest.param("mean", [], marks=pytest.mark.thorough),
        pytest.param("max", MEMBERS, marks=pytest.mark.thorough),
    ],
)
def test_several_heads_are_core_s_and_named(plain: Plain, run: Trace, kind: str, members: list[tuple[int, int]]):
    """Their mean also where a link names heads alone."""
    heads = ",".join(f"{layer}.{head}" for layer, head in members)
    plain.open("?show=table" + (f"&kind={kind}" if kind else "") + (f"&heads={heads}" if heads else ""))
    pairs = members or [(LAYER, head) for head in range(12)]
    together = measures.maximum if kind == "max" else measures.mean
    assert_row(plain, together([(run.attention[layer], head) for layer, head in pairs], IT)[0])
    name = "Maximum" if kind == "max" else "Mean"
    assert title(plain) == (
        f"{name} of 3 heads: L3 H1, L3 H4, L5 H2" if members else f"{name} of all 12 heads of layer 3"
    )
    assert title(plain) in plain.root.locator("caption").inner_text()
    assert ("As spread out as" in plain.root.locator(".facts").inner_text()) == (kind != "max")


def test_rollout_is_core_s(plain: Plain, run: Trace):
    plain.open("?show=table&kind=rollout")
    assert_row(plain, measures.rollout(run.attention, LAYER)[IT])
    assert title(plain) == "Attention rollout, layers 0 to 3"
    assert "arXiv:2005.00928" in (plain.root.locator(".map h2 .hint").get_attribute("title") or "")
    assert plain.facts().startswith("Rollout attributes")


def test_norms_are_core_s_and_not_called_shares(plain: Plain, run: Trace):
    plain.open("?kind=value")
    norms = measures.value_weighted(run.attention[LAYER], HEAD)
    plain.until("root.dataset.exact === 'true'")  # norms come when somebody wants them
    legend = plain.root.locator("footer .legend").inner_text().split()
    assert float(legend[-1]) == pytest.approx(norms.max().item(), rel=0.05)
    assert "%" not in plain.root.locator(".facts").inner_text().split("Lines")[0]
    assert "rows do not sum to 1" in plain.root.locator(".map > .note").inner_text()
    plain.root.get_by_role("button", name="table").click()
    assert_row(plain, norms[IT], off=6e-5 + STEP * run.attention[LAYER].value_norms(HEAD).max().item())


@pytest.mark.parametrize("keys", [[0, 2, 15], pytest.param([0], marks=pytest.mark.thorough)])
def test_hidden_tokens_are_taken_out_and_rows_renormalised(plain: Plain, run: Trace, keys: list[int]):
    plain.open(f"?show=table&hide={','.join(map(str, keys))}")
    row = run.attention[LAYER].row(HEAD, IT)
    eventually(plain.page, lambda: assert_row(plain, hidden(row, keys)))  # of faint rows exact numbers come later
    assert all(shown(plain)[key] == attention_words.COMPONENT["tip_hidden"] for key in keys)
    facts = plain.root.locator(".facts").inner_text()
    assert f"{1 - row[keys].sum().item():.0%}".replace("%", " %") + " of this row's attention remains" in facts
    for part in (".map > .note", "caption"):
        assert "[CLS]" in plain.root.locator(part).inner_text()
        assert "rows renormalised" in plain.root.locator(part).inner_text()


def test_the_sink_goes_with_one_click_and_comes_back_with_another(plain: Plain, run: Trace):
    plain.open("?layer=2&head=5")
    pattern = run.attention[2].pattern(5)[0]
    sink = int(pattern.mean(0).argmax())
    button = plain.root.get_by_role("button", name=f"hide {run.source.labels[sink]}")
    button.click()
    plain.wait(hide=f"[{sink}]")
    plain.page.wait_for_url(lambda url: f"hide={sink}" in url)
    plain.page.mouse.move(*plain.cell(4, 3))
    plain.wait(cell="4,3")
    expected = hidden(pattern[4], [sink])[3].item()
    assert float(plain.data()["value"]) == pytest.approx(expected, abs=1e-4)
    plain.page.mouse.move(*plain.cell(4, sink))
    plain.wait(cell=f"4,{sink}")
    assert attention_words.COMPONENT["tip_hidden"] in plain.root.locator(".tip:not(.card)").inner_text()
    plain.root.get_by_role("button", name="show hidden").click()
    plain.wait(hide="[]")


def test_a_key_is_hidden_by_keyboard_and_the_last_one_stays(plain: Plain):
    plain.open("?text=Hi")
    plain.root.locator(".matrix").focus()
    for key, hide in (("h", 1), ("ArrowRight", 1), ("h", 2)):
        plain.page.keyboard.press(key)
        plain.until(f"JSON.parse(root.dataset.hide).length === {hide}")
    last = ({0, 1, 2} - set(map(int, plain.data()["hide"].strip("[]").split(",")))).pop()
    plain.page.mouse.move(*plain.cell(0, last))
    plain.wait(cell=f"0,{last}")
    plain.page.keyboard.press("h")
    plain.page.get_by_text(attention_words.COMPONENT["hide_last"]).wait_for()
    assert plain.data()["hide"].count(",") == 1


def test_a_token_is_hidden_in_the_sentence(plain: Plain, run: Trace):
    plain.open("?show=table")
    token = plain.root.locator(".strip [data-i='2']")
    token.focus()
    plain.page.keyboard.press("h")
    plain.wait(hide="[2]")
    assert_row(plain, hidden(run.attention[3].row(1, 2)[None], [2])[0])
    assert token.evaluate("node => node.getRootNode().activeElement === node")  # still there, to take it back
    plain.page.keyboard.press("h")
    plain.wait(hide="[]")
    locked = plain.data()["locked"]
    plain.root.locator(".strip [data-i='0']").dblclick()
    plain.wait(hide="[0]", locked=locked)


def test_a_key_of_cross_attention_is_locked_and_hidden_by_keyboard(plain: Plain):
    plain.open("?model=pair&target=das+Tier&site=cross")
    plain.root.locator(".strip.key [data-i='0']").focus()
    plain.page.keyboard.press("ArrowRight")
    plain.page.keyboard.press("Enter")
    plain.wait(pin="1", locked="")
    assert plain.root.locator(".strip.key [aria-selected=true]").all_text_contents() == [plain.tokens("key")[1]]
    plain.page.keyboard.press("h")
    plain.wait(hide="[1]")


def test_a_row_of_which_little_is_left_says_so_and_its_numbers_are_exact(plain: Plain, run: Trace):
    """Sixteen bits of what is left of such a row would be made up."""
    found = [
        (1 - record.pattern()[..., 0].max().item(), layer, divmod(int(record.pattern()[..., 0].argmax()), 16))
        for layer, record in enumerate(run.attention)
    ]
    left, layer, (head, query) = min(found)
    assert left < 0.01
    plain.open(f"?show=table&layer={layer}&head={head}&query={query}&hide=0")
    row = run.attention[layer].row(head, query)
    exact = hidden(row.double(), [0]).float()
    eventually(plain.page, lambda: assert_row(plain, exact, off=2e-4))  # they come when they are needed
    facts = plain.root.locator(".facts").inner_text()
    assert "of this row's attention remains" in facts
    percent = float(facts.split(" % of this row's")[0].split()[-1])
    assert percent == pytest.approx(100 * row[1:].sum().item(), rel=0.6)


def test_a_row_of_which_nothing_is_left_says_who_took_it(plain: Plain):
    plain.open("?model=grouped&layer=2&query=0&hide=0")
    plain.until("root.querySelector('.big').textContent.includes('All that')")
    assert "may look at is hidden" in plain.facts() and "all zeros" not in plain.facts()


@pytest.mark.parametrize("model", ["minilm", pytest.param("grouped", marks=pytest.mark.thorough)])
def test_pieces_are_put_together_to_words(plain: Plain, model: str):
    trace = core.trace(models.load(model), PIECES)
    groups = word_groups(trace.source)
    assert len(groups) < len(trace.source)
    query = groups[2].start + 1
    plain.open(f"?model={model}&layer=2&head=1&words=true&show=table&query={query}&text={PIECES.replace(' ', '+')}")
    expected = merged(trace.attention[2].pattern(1)[0], groups, groups)[2]
    assert_row(plain, expected, [group.start for group in groups])
    assert "Sub-words merged to words" in plain.root.locator(".map > .note").inner_text()
    assert plain.facts().startswith("overcomplicated")
    assert plain.data()["locked"] == str(query)


def test_hidden_then_merged(plain: Plain):
    trace = core.trace(core.load("minilm"), PIECES)
    groups = word_groups(trace.source)
    plain.open(f"?layer={LAYER}&head={HEAD}&words=true&show=table&hide=0,2&query=3&text={PIECES.replace(' ', '+')}")
    rows = hidden(trace.attention[LAYER].pattern(HEAD)[0], [0, 2])
    at = next(i for i, group in enumerate(groups) if 3 in group)
    expected = merged(rows, groups, groups)[at]
    eventually(plain.page, lambda: assert_row(plain, expected, [group.start for group in groups]))


def test_masked_cells_keep_their_reason_in_a_mean(plain: Plain):
    plain.open("?model=grouped&kind=mean&heads=0.1,1.2&query=9&show=table")
    trace = core.trace(models.load("grouped"), words.EXAMPLE)
    row = shown(plain)
    assert row[12] == "masked: in the future"
    assert row[2][0].isdecimal()  # outside the window of one of the two heads only
    expected = measures.mean([(trace.attention[0], 1), (trace.attention[1], 2)], 9)[0]
    assert_row(plain, expected)


def test_rollout_of_a_decoder_and_of_neither_stack(plain: Plain):
    plain.open("?model=pair&target=das+Tier&kind=rollout&site=decoder&layer=2&query=3&show=table")
    trace = core.trace(models.load("pair"), words.EXAMPLE, "das Tier")
    stack = [record for record in trace.attention if record.stack == "decoder" and record.site == "attn"]
    assert_row(plain, measures.rollout(stack, 2)[3])
    plain.root.get_by_role("button", name="map").click()
    plain.root.get_by_role("button", name="cross").click()
    plain.wait(site="cross")
    assert attention_words.COMPONENT["rollout_cross"] in plain.root.locator(".refusal").inner_text()
    assert plain.facts() == attention_words.COMPONENT["rollout_cross"]


@pytest.mark.parametrize(
    "options",
    [
        "kind=mean&heads=2.1,3.5",
        "words=true&hide=0",
        *(
            pytest.param(options, marks=pytest.mark.thorough)
            for options in ("kind=max", "kind=rollout", "kind=value", "hide=0,3")
        ),
    ],
)
def test_a_long_text_has_the_same_pictures_from_the_server(plain: Plain, options: str):
    trace = core.trace(models.load("grouped"), LONG)
    plain.open(f"?model=grouped&layer=2&head=1&query=400&whole=true&{options}&text={LONG.replace(' ', '+')}")
    pattern = trace.attention[2].pattern(1)[0]
    groups = word_groups(trace.source)
    expected = {
        "kind=mean&heads=2.1,3.5": lambda: measures.mean([(trace.attention[2], 1), (trace.attention[3], 5)], 400)[0],
        "kind=max": lambda: measures.maximum([(trace.attention[2], head) for head in range(8)], 400)[0],
        "kind=rollout": lambda: measures.rollout(trace.attention, 2)[400],
        "kind=value": lambda: measures.value_weighted(trace.attention[2], 1, 400)[0],
        "hide=0,3": lambda: hidden(pattern[400], [0, 3]),
        "words=true&hide=0": lambda: merged(hidden(pattern, [0]), groups, groups)[
            next(i for i, g in enumerate(groups) if 400 in g)
        ],
    }[options]()
    key = int(expected.argmax())
    plain.until("root.dataset.exact === 'false'")
    plain.root.locator(".matrix").focus()
    plain.until("root.querySelector('.big').textContent.includes('rank 1')")
    plain.page.keyboard.press("ArrowRight")
    at = groups[key].start if "words" in options else key
    plain.until(f"root.dataset.cell.endsWith(',{at}')")
    plain.until("root.dataset.value !== ''")
    assert float(plain.data()["value"]) == pytest.approx(expected[key].item(), abs=1e-4)


def test_a_cell_gives_raw_and_scaled_score(first: Plain, run: Trace):
    record = run.attention[LAYER]
    first.page.mouse.move(*first.cell(IT, 2))
    raw, scaled = record.raw(HEAD, IT)[0, 0, 2].item(), record.scores(HEAD, IT)[0, 0, 2].item()
    first.page.get_by_text(f"q·k {raw:.3f}, scaled {scaled:.3f}").wait_for()
    assert scaled == pytest.approx(raw / record.q.shape[-1] ** 0.5, abs=1e-4)


def test_the_ends_of_the_colours_are_set_by_hand_and_a_wrong_pair_changes_nothing(first: Plain):
    first.page.keyboard.press("o")
    low, high = (first.root.get_by_label(attention_words.COMPONENT[f"bounds_{end}"]) for end in ("low", "high"))
    high.fill("0,3")  # as half of the world writes it
    high.press("Enter")
    first.wait(bounds="[0,0.3]")
    expect(first.root.locator("footer .legend")).to_have_text("00.15≥ 0.3")
    low.fill("0.5")
    low.press("Enter")
    expect(first.root.locator(".bounds [role=status]")).to_contain_text("0.5 to 0,3 is no range")
    assert first.data()["bounds"] == "[0,0.3]" and low.input_value() == "0.5"
    low.fill("0.1")
    low.press("Enter")
    first.wait(bounds="[0.1,0.3]")
    expect(first.root.locator(".bounds [role=status]")).to_be_empty()
    first.page.wait_for_url(lambda url: "bounds=0.1" in url)
    expect(first.root.locator("footer .legend")).to_have_text("≤ 0.10.2≥ 0.3")
    first.root.get_by_role("button", name=attention_words.COMPONENT["per_row"], exact=True).click()
    expect(low).to_be_disabled()


def test_the_link_brings_the_same_picture_back(plain: Plain):
    names = ("kind", "members", "hide", "scale", "bounds", "metric")
    plain.open("?kind=max&heads=3.1,4.2&hide=0&scale=log&bounds=0.001,0.5&metric=entropy")
    shown, facts = [plain.data()[name] for name in names], plain.facts()
    assert shown[1] == "[[3,1],[4,2]]"
    plain.open(plain.page.url.removeprefix(f"{plain.address}/"))
    assert [plain.data()[name] for name in names] == shown and plain.facts() == facts
