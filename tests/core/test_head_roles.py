"""The names of heads and the link that a picture opens on: on models that everybody has, and on maps made by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.read import head_roles, measures
from core.read.head_roles import OpeningEdge

Tiny = Callable[..., Loaded]
ANIMAL = "The animal didn't cross the street because it was too tired."
OLD = "The old animal didn't cross the street because it was too tired."
WATER = "She poured water from the jug into the glass until it was full."


@cache
def run(model: str, text: str, target: str | None = None) -> core.Trace:
    return core.trace(core.load(model), text, target)


def link(trace: core.Trace, opening: OpeningEdge) -> tuple[str, str]:
    record = next(
        r for r in trace.attention if (r.stack, r.site, r.layer) == (opening.stack, opening.site, opening.layer)
    )
    queries, keys = trace.tokens_of(record)
    assert record.row(opening.head, opening.query)[opening.key].item() == pytest.approx(opening.weight, abs=1e-6)
    return queries.labels[opening.query], keys.labels[opening.key]


def test_the_heads_of_the_default_sentence() -> None:
    names = head_roles.run_roles(run("minilm", ANIMAL))
    counts = Counter(role.name for layer in names for role in layer)
    assert counts == {"rests on [CLS]": 50, "mixed": 18, "2–5 away": 2, "one back": 1, "one ahead": 1}
    assert names[0][2].name == "one back" and names[0][2].share == pytest.approx(0.9999, abs=1e-4)
    # the largest share of a head that has no name: two rows of "the" on each other
    assert names[0][8].name == "mixed" and names[0][8].share == pytest.approx(0.345, abs=1e-4)
    assert names[0][0].share == pytest.approx(0.2898, abs=1e-4)


def test_heads_named_after_copies_of_a_token_and_after_single_words() -> None:
    letters = Counter(role.name for layer in head_roles.run_roles(run("minilm", "שלום לכל העולם")) for role in layer)
    assert letters == {
        "rests on [CLS]": 55, "mixed": 8, "2–5 away": 5, "same token": 2, "one back": 1, "one ahead": 1
    }  # fmt: skip
    trace = run("translator", "Ein Hund rennt durch den Schnee.", "A dog runs through the snow.")
    kinds: dict[tuple[str, str], Counter[str]] = {}
    for record, roles in zip(trace.attention, head_roles.run_roles(trace), strict=True):
        kinds.setdefault((record.stack, record.site), Counter()).update(role.name for role in roles)
    assert kinds["encoder", "attn"] == {"2–5 away": 19, "mixed": 3, "one back": 2}
    assert kinds["decoder", "attn"] == {"itself": 17, "rests on <s>": 4, "one back": 3}
    assert kinds["decoder", "cross_attn"] == {"mixed": 12, "one word": 12}


def test_a_name_says_where_attention_goes_and_not_what_for() -> None:
    trace = run("brackets", "{}[[{[=]}]]")
    roles = head_roles.run_roles(trace)
    assert roles[1][1].name == "one back" and roles[1][1].share == pytest.approx(0.5047, abs=1e-4)
    assert trace.attention[1].row(1, 7)[6].item() == pytest.approx(0.998, abs=5e-4)
    # all of the text is punctuation, so no head is named after it
    assert Counter(role.name for layer in roles for role in layer) == {"mixed": 6, "one back": 2}


def test_an_opening_is_a_link_between_two_words() -> None:
    trace = run("minilm", WATER)
    (opening,) = head_roles.opening_edges(trace)
    assert (opening.layer, opening.head, link(trace, opening)) == (1, 6, ("into", "poured"))
    assert opening.weight == pytest.approx(0.930, abs=5e-4) and opening.habit == pytest.approx(0.1264, abs=2e-4)
    # the plain maximum would be the head for one back
    largest = max(record.pattern()[:, 1:-1, 1:-1].max().item() for record in trace.attention)
    assert largest > 0.99


def test_the_cells_that_examples_are_opened_on_by_hand() -> None:
    for text, query, key, weight in ((ANIMAL, "it", "animal", 0.677), (OLD, "it", "animal", 0.555)):
        trace = run("minilm", text)
        labels = trace.source.labels
        found = trace.attention[3].row(1, labels.index(query))[labels.index(key)].item()
        assert found == pytest.approx(weight, abs=1e-3)
    openings = [head_roles.opening_edges(run("minilm", text))[0] for text in (ANIMAL, OLD)]
    assert [link(run("minilm", t), o) for t, o in zip((ANIMAL, OLD), openings, strict=True)] == [
        ("too", "because"), ("too", "because")
    ]  # fmt: skip
    assert openings[0].weight - openings[0].habit == pytest.approx(0.6264, abs=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        "The cat sat on the mat.",
        "The cat sat on the mat",
        "Der Hund war müde, weil er lange lief.",
        "for (int i = 0; i < n; i++) sum += 2;",
        "The dog chased the cat because it was angry.",
    ],
)
def test_no_opening_is_where_every_query_looks(text: str) -> None:
    """Some head of each of these texts gives one word more than half of all its attention; that says nothing of a pair."""
    trace = run("minilm", text)
    (opening,) = head_roles.opening_edges(trace)
    column = trace.attention[opening.layer].pattern()[opening.head, :, opening.key]
    others = [q for q in range(len(column)) if q != opening.query]
    assert column[others].mean() < 0.15 < 0.5 < opening.weight
    words = [i for i, special in enumerate(trace.source.special) if not special]
    assert max(record.pattern()[:, :, words].mean(1).max().item() for record in trace.attention) > 0.3


def test_each_kind_of_attention_has_its_own_opening() -> None:
    trace = run("translator", "Ein Hund rennt durch den Schnee.", "A dog runs through the snow.")
    openings = head_roles.opening_edges(trace)
    assert [(o.stack, o.site) for o in openings] == [
        ("encoder", "attn"), ("decoder", "attn"), ("decoder", "cross_attn")
    ]  # fmt: skip
    assert [link(trace, o) for o in openings] == [("durch", "Schnee"), ("through", "A"), ("dog", "rennt")]
    assert [round(o.weight - o.habit, 4) for o in openings] == pytest.approx([0.6587, 0.8755, 0.9953], abs=2e-4)


def test_letters_and_symbols_have_openings_too() -> None:
    trace = run("minilm", "שלום לכל העולם")
    (opening,) = head_roles.opening_edges(trace)
    assert (opening.layer, opening.head, link(trace, opening)) == (5, 4, ("ל", "ש"))
    trace = run("brackets", "{}[[{[=]}]]")
    (opening,) = head_roles.opening_edges(trace)
    assert (opening.layer, opening.head, opening.query, opening.key) == (1, 1, 8, 5)


def test_a_longer_text_opens_on_words_that_stand_apart() -> None:
    text = (
        "Of charred bones.' Then he whipped up his reindeer, and was soon out of sight. For some time the Lapp was "
        "satisfied with hearing the bones rattle, and thinking to himself what a good bargain he had made; but in the "
        "end he wanted to look at his silver, for the reindeer that he had sold were worth it. He opened the sack."
    )
    trace = run("minilm", text)
    assert len(trace.source) > head_roles.SHORT
    (opening,) = head_roles.opening_edges(trace)
    query, key = link(trace, opening)
    assert head_roles.PAIR_DISTANCES[0] <= abs(opening.query - opening.key) <= head_roles.PAIR_DISTANCES[1]
    assert query.isalpha() and key.isalpha() and query != key
    assert "one" not in head_roles.run_roles(trace)[opening.layer][opening.head].name


def test_whole_maps_give_the_same_as_working_them_out(tiny: Tiny) -> None:
    generator = torch.Generator().manual_seed(3)
    for n in (9, 80):
        for kind in ({"n_encoder_layers": 2}, {"n_decoder_layers": 2}):
            ids = torch.randint(0, 61, (n,), generator=generator).tolist()
            trace = core.trace(tiny(**kind, n_ctx=200), ids=ids)
            patterns = [record.pattern() for record in trace.attention]
            assert head_roles.opening_edges(trace, patterns) == head_roles.opening_edges(trace)
            assert head_roles.run_roles(trace, patterns) == head_roles.run_roles(trace)
            assert head_roles.roles(trace.attention[1], trace.source, trace.source) == head_roles.run_roles(trace)[1]


def test_an_edit_that_shows_the_future_counts(tiny: Tiny) -> None:
    loaded = tiny(n_ctx=400)
    ids = torch.randint(0, 61, (200,), generator=torch.Generator().manual_seed(5)).tolist()
    for edit in (
        core.edits.SetMask("none", layer=1, head=2),
        core.edits.MaskAfterSoftmax(),
        core.edits.Ablate("decoder", 0, 1),
    ):
        trace = core.trace(loaded, ids=ids, interventions=[edit])
        assert head_roles.opening_edges(trace) == head_roles.opening_edges(
            trace, [record.pattern() for record in trace.attention]
        )
        (opening,) = head_roles.opening_edges(trace)
        weight = trace.attention[opening.layer].row(opening.head, opening.query)[opening.key].item()
        assert weight == pytest.approx(opening.weight, abs=1e-6)


def test_the_opening_is_the_largest_excess_of_all_cells(tiny: Tiny) -> None:
    trace = core.trace(tiny(n_encoder_layers=2), ids=[7, 3, 9, 3, 1, 20, 5, 7, 33])
    (opening,) = head_roles.opening_edges(trace)
    best = (-1.0, (0, 0, 0, 0))
    for record in trace.attention:
        pattern = record.pattern()
        for head in range(record.n_heads):
            for query in range(9):
                for key in range(9):
                    same = trace.source.ids[query] == trace.source.ids[key]
                    if abs(query - key) > 1 and not same:
                        diagonal, column = torch.diagonal(pattern[head], key - query), pattern[head, :, key]
                        weight = pattern[head, query, key]
                        habit = max((line.sum() - weight) / max(1, len(line) - 1) for line in (diagonal, column))
                        best = max(best, ((weight - habit).item(), (record.layer, head, query, key)))
    assert (opening.layer, opening.head, opening.query, opening.key) == best[1]
    assert opening.weight - opening.habit == pytest.approx(best[0], abs=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_no_row_and_no_key(tiny: Tiny, side: str) -> None:
    loaded = core.load("minilm")
    padded = core.trace(loaded, [WATER, ANIMAL + " " + OLD], padding_side=side).text(0)  # type: ignore[arg-type]
    alone = core.trace(loaded, WATER)
    shift = len(padded.source) - len(alone.source) if side == "left" else 0
    (found,), (expected,) = head_roles.opening_edges(padded), head_roles.opening_edges(alone)
    assert (found.layer, found.head) == (expected.layer, expected.head)
    assert (found.query - shift, found.key - shift) == (expected.query, expected.key)
    assert found.weight == pytest.approx(expected.weight, abs=1e-5)
    for got, want in zip(head_roles.run_roles(padded), head_roles.run_roles(alone), strict=True):
        assert [(role.name, role.rows) for role in got] == [(role.name, role.rows) for role in want]
        assert [role.share for role in got] == pytest.approx([role.share for role in want], abs=1e-5)


def test_a_long_text_is_judged_by_some_rows_and_says_so(tiny: Tiny) -> None:
    trace = core.trace(tiny(n_ctx=400), ids=[i % 61 for i in range(300)])
    record = trace.attention[0]
    whole = head_roles.roles(record, trace.source, trace.source)
    some = head_roles.roles(record, trace.source, trace.source, cells=4 * 300 * 50)
    few = head_roles.roles(record, trace.source, trace.source, cells=1)
    assert (whole[0].rows, some[0].rows, few[0].rows) == (218, 50, head_roles.MIN_ROWS)
    exact = head_roles.roles(record, trace.source, trace.source, record.pattern())
    assert exact[0].rows == 300 and exact[0].share == pytest.approx(whole[0].share, abs=0.05)


def test_a_text_of_one_token_has_an_opening(tiny: Tiny) -> None:
    (opening,) = head_roles.opening_edges(core.trace(tiny(), ids=[5]))
    assert (opening.query, opening.key, opening.weight, opening.habit) == (0, 0, 1.0, 0.0)


def test_words_between_spaces() -> None:
    tokens = run("minilm", ANIMAL).source
    assert tokens.labels[3:6] == ("didn", "'", "t")
    assert head_roles.spaced_words(tokens) == [0, 1, 2, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11, 12]
    tokens = run("storyteller", "Up on a center-table, she").source
    words = head_roles.spaced_words(tokens)
    assert words[-1] == max(words) and len(set(words)) == 6  # with <s>
    assert head_roles.spaced_words(run("brackets", "{}[[{[=]}]]").source) == list(range(12))
    assert head_roles.is_punctuation("…”") and head_roles.is_punctuation("=") and not head_roles.is_punctuation("'t")


def test_the_parts_agree_with_the_measures() -> None:
    trace = run("minilm", ANIMAL)
    pattern = trace.attention[0].pattern()
    roles = head_roles.run_roles(trace)[0]
    special = [i for i, s in enumerate(trace.source.special) if s]
    assert measures.near(pattern, but_not=special)[3].item() == pytest.approx(roles[3].share, abs=1e-6)
    assert measures.same_token(pattern, trace.source.ids)[8].item() == pytest.approx(roles[8].share, abs=1e-6)
    assert measures.sink_share(trace.attention[5].pattern(), [0])[2].item() == pytest.approx(
        measures.mean_received(trace.attention[5].pattern())[2, 0].item(), abs=1e-6
    )
    assert torch.allclose(measures.sink_share(pattern, special), pattern[..., special].sum(-1).mean(-1), atol=1e-6)
    assert torch.allclose(measures.punctuation(pattern, [4, 14]), pattern[..., [4, 14]].sum(-1).mean(-1), atol=1e-6)


@pytest.mark.parametrize("what", ["hidden", "nan"])
def test_a_run_without_any_weight_opens_on_its_first_cell(tiny: Tiny, what: str) -> None:
    loaded, ids = tiny(), [3, 1, 4]
    if what == "nan":
        loaded.model.get_parameter("decoder.embed.token.weight").fill_(torch.nan)
    edits = [core.edits.EditMask(keys=range(3))] if what == "hidden" else []
    run = core.trace(loaded, ids=ids, interventions=edits)
    first = OpeningEdge("decoder", "attn", 0, 0, 0, 0, 0.0, 0.0, 3)
    assert head_roles.opening_edges(run) == (first,)
    assert head_roles.opening_edge_of(run, 1, 2) == OpeningEdge("decoder", "attn", 1, 2, 0, 0, 0.0, 0.0, 3)
