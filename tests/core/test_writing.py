"""A text that is being written: every reading against a trace of the same tokens, and what a Service says while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import GenerationError
from core.model.hooks import hooked
from core.model.text import from_ids
from core.read.next_token_loss import given
from core.run.request import Prompt, Request
from core.service import MAX_WRITTEN, Continuation, LocalService, PreparedText, WrittenToken
from core.service.engine import Engine
from core.service.writing import IncrementalText
from core.write.beams import beam_steps
from core.write.generate import Sampling, candidates
from core.write.writer import (
    DETAILED,
    LISTED,
    TEMPERATURES,
    TokenDistribution,
    Writer,
    attribute_tokens,
    beginning,
    cache_cost,
    glued,
    label,
    lens,
    lens_columns,
)
from tests.core.conftest import make_loaded
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

STORY = "Once upon a time there was a"
FOREST = "Im Wald steht ein braunes Pferd neben einem Baum."
KING, FORMER = 641, "king who had a king who had a"
CONFIGS: dict[str, dict[str, Any]] = {
    "rotary, grouped": {"position": "rotary", "n_kv_heads": 2},
    "learned": {"position": "learned"},
    "windowed": {"position": "rotary", "window": 4, "n_decoder_layers": 3},
    "alibi": {"position": "alibi"},
    "post": {"norm_order": "post"},
    "encoder-decoder": {"n_encoder_layers": 1, "n_decoder_layers": 2},
}


@cache
def loaded(name: str) -> Loaded:
    return core.load(name)


@cache
def story() -> core.Trace:
    return core.trace(loaded("storyteller"), STORY)


def prompt_of(model: Loaded, ids: Sequence[int], target: Sequence[int] = (1,)) -> Prompt:
    source = (from_ids(None, ids),)
    return Prompt(source, (from_ids(None, target),)) if model.config.kind == "encoder-decoder" else Prompt(source)


def written(writer: Writer, n: int, how: Sampling) -> list[TokenDistribution]:
    found = []
    for _ in range(n):
        _, reading = writer.write(how)
        if reading is not None:
            found.append(reading)
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_every_reading_is_what_a_trace_of_the_same_tokens_has(name: str) -> None:
    model = make_loaded(**CONFIGS[name])
    ids, path = [3, 9, 4, 17, 5, 8], [11, 30]
    writer = Writer(model, prompt_of(model, ids), path, room=4)
    opening = writer.open()
    readings = [*opening.readings, *written(writer, 4, Sampling())]
    crosses = model.config.kind == "encoder-decoder"
    own = [1, *writer.path] if crosses else [*ids, *writer.path]
    run = core.trace(model, ids=ids, target_ids=own) if crosses else core.trace(model, ids=own)
    assert [reading.position for reading in readings] == list(range(len(own)))
    assert [reading.id for reading in readings] == own
    predicted = run.predictions(range(len(own)), k=5)
    site = "cross_attn" if crosses else "attn"
    patterns = [
        record.pattern().numpy() for record in run.attention if (record.stack, record.site) == ("decoder", site)
    ]
    for at, reading in enumerate(readings):
        assert reading.ids[:5].tolist() == list(predicted.ids[at])
        np.testing.assert_allclose(reading.probs()[:5], predicted.probs[at], atol=1e-5)
        wanted = np.stack([pattern[:, at, : len(ids) if crosses else at + 1] for pattern in patterns])
        np.testing.assert_allclose(reading.rows, wanted, atol=1e-5)
    losses = given(run).losses.numpy()
    np.testing.assert_allclose(opening.losses, losses[: len(opening.losses)], atol=1e-4)
    for one, loss, after in zip(readings, losses, own[1:], strict=False):
        if one.taken is not None:
            assert one.taken.id == after
            assert -np.log(one.taken.prob) == pytest.approx(loss, abs=1e-4)


def test_named_tokens_and_the_rest_make_a_whole_at_every_temperature() -> None:
    model = loaded("storyteller")
    writer = Writer(model, beginning(story(), False))
    reading = writer.open().readings[-1]
    assert writer.logits is not None and len(reading.ids) == LISTED < model.config.vocab_size
    for temperature in TEMPERATURES:
        whole = (writer.logits.double() / temperature).softmax(-1)[torch.tensor(reading.ids).long()]
        np.testing.assert_allclose(reading.probs(temperature), whole.numpy(), atol=1e-6)


def test_a_text_that_was_stopped_goes_on_as_it_would_have() -> None:
    model, how = loaded("storyteller"), Sampling(0.8, 40, 0.95, 0.02, seed=7)
    (whole,) = core.generate(model, STORY, max_tokens=9, temperature=0.8, top_k=40, top_p=0.95, min_p=0.02, seed=7)
    for stopped in (0, 4, 8):
        writer = Writer(model, beginning(story(), False), whole.ids[:stopped])
        writer.open()
        written(writer, 9 - stopped, how)
        assert writer.path == whole.ids


def test_the_numbers_of_the_storyteller() -> None:
    """What lessons and texts say of “Once upon a time there was a”."""
    model = loaded("storyteller")
    writer = Writer(model, beginning(story(), False))
    opening = writer.open()
    last = opening.readings[-1]
    assert [label(model, i) for i in last.ids[:2].tolist()] == ["great", "king"]
    np.testing.assert_allclose(last.probs()[:2], [0.11026, 0.08991], atol=1e-4)
    assert opening.losses.mean() == pytest.approx(1.28, abs=0.005)
    assert opening.losses[0] / np.log(2) == pytest.approx(8.5, abs=0.05)
    assert [reading.cache_bytes for reading in opening.readings] == [12_288 * n for n in range(1, 9)]
    writer = Writer(model, beginning(story(), False), [KING])
    taken = writer.open().readings[-2].taken
    assert taken is not None and (taken.id, taken.rank) == (KING, 2)
    assert taken.prob == pytest.approx(0.0899, abs=1e-4)
    assert writer.logits is not None
    words, probs = candidates(writer.logits[None], 0.7, None, 0.9)
    left = [(label(model, int(i)), round(float(p), 3)) for i, p in zip(words[0], probs[0], strict=True) if p > 0]
    assert left == [("who", 0.922), (",", 0.047), ("and", 0.031)]
    rows = lens(model, beginning(story(), False), [KING], 8, int(words[0, 0]))
    assert [row.layer for row in rows] == [None, *range(6)]
    assert [row.rank for row in rows] == [5925, 64, 42, 12, 5, 3, 1]
    *_, step = beam_steps(model, STORY, n_beams=3, max_tokens=8)
    best = step.finished[0][0]
    assert best.text.strip() == FORMER and best.log_prob == pytest.approx(-12.267, abs=1e-3)


@pytest.mark.parametrize("name", CONFIGS)
def test_another_line_goes_on_from_keys_and_values_that_are_held(name: str) -> None:
    model = replace(make_loaded(**CONFIGS[name]), end_ids=(2,))
    prompt = prompt_of(model, [3, 4, 5, 6])
    writer = Writer(model, prompt, [7, 8, 9, 10], room=4)
    writer.open()
    written(writer, 2, Sampling())
    read: list[int] = []
    with hooked(model.model, {"decoder.embed.hook_embed": lambda x: read.append(x.shape[1])}):
        for path, fewest in (([7, 8, 11], 1), ([7], 1), ([12, 13], 2), ([], 1), ([7, 2], 1)):
            turned = writer.turn_to(path, 2)
            assert turned == (name != "windowed"), "a window has let go of what would be needed"
            if not turned:
                return
            read.clear()
            writer.read()
            assert sum(read) == fewest, "only what is new is read"
            fresh = Writer(model, prompt, path, room=2)
            fresh.read()
            assert writer.logits is not None and fresh.logits is not None and writer.ends == fresh.ends
            torch.testing.assert_close(writer.logits, fresh.logits, atol=1e-4, rtol=1e-4)
            if not writer.ends:
                (taken, reading), (same, other) = writer.write(Sampling(), 14), fresh.write(Sampling(), 14)
                assert taken.id == same.id == 14 and taken.prob == pytest.approx(same.prob, abs=1e-5)
                assert reading is not None and other is not None
                np.testing.assert_allclose(reading.rows, other.rows, atol=1e-5)


@pytest.mark.thorough
@needs_smollm2
def test_the_numbers_of_the_language_model_s_story() -> None:
    """The room opens on a draw that was bolder than the model, and on a name that a head copied."""
    model = smollm2()
    text = "Once upon a time, there was a little"
    prompt = beginning(core.trace(model, text), False)
    (drawn,) = core.generate(model, text, max_tokens=26, temperature=0.8, seed=3)
    opening = Writer(model, prompt, drawn.ids).open()
    by_word = [(label(model, reading.taken.id), reading) for reading in opening.readings if reading.taken]
    _, fish = next(pair for pair in by_word if pair[0] == "fish")
    assert fish.taken and (fish.taken.rank, fish.taken.prob) == (6, pytest.approx(0.0234, abs=2e-4))
    assert fish.entropy == pytest.approx(4.409, abs=5e-3)
    assert label(model, int(fish.ids[0])) == "girl" and fish.probs()[0] == pytest.approx(0.383, abs=2e-3)
    assert fish.probs(0.8)[[0, 5]].tolist() == pytest.approx([0.54, 0.016], abs=5e-3)
    # The second Finn: head 1 of layer 23 looks at the first.
    finn = [word for word in attribute_tokens(model, prompt, drawn.ids) if label(model, word.token) == "Finn"][1]
    copied = next(head for head in finn.heads if (head.most.layer, head.most.head) == (23, 1))
    assert (copied.most.weight, copied.most.adds, copied.adds) == pytest.approx((0.821, 2.601, 2.641), abs=5e-3)
    assert label(model, [*prompt.last_read[0].ids, *drawn.ids][copied.most.key]) == "Finn"
    was = next(
        word.position
        for word in attribute_tokens(model, prompt, drawn.ids)
        if label(model, word.token) == "was" and word.position > finn.position
    )
    (column,) = lens_columns(model, prompt, drawn.ids, [was])
    assert column.ranks.index(1) == 1 + 25  # the embedding is before layer 0


@pytest.mark.parametrize(("model", "text"), [("storyteller", STORY), ("translator", FOREST)])
def test_what_wrote_each_word(model: str, text: str) -> None:
    found = loaded(model)
    opens = model == "translator"
    prompt = beginning(core.trace(found, text), opens)
    path = core.generate(found, text, max_tokens=4)[0].ids
    n = len(prompt.last_read[0])
    told = attribute_tokens(found, prompt, path)
    assert [word.token for word in told if word.position >= n - 1] == list(path)
    ids = [*prompt.last_read[0].ids, *path]
    run = core.trace(found, text, target_ids=ids) if opens else core.trace(found, ids=ids)
    for word in told[-4:]:
        # the same looks one position at a time
        looks = core.edge_attribution(run, word.position, word.token)
        sums = looks.sum(-1)
        assert [head.adds for head in word.heads] == pytest.approx(sums.flatten().topk(6).values.tolist(), abs=2e-4)
        for head in word.heads:
            most = head.most
            assert sums[most.layer, most.head].item() == pytest.approx(head.adds, abs=2e-4)
            assert looks[most.layer, most.head, most.key].item() == pytest.approx(most.adds, abs=2e-4)
            assert most.adds == pytest.approx(looks[most.layer, most.head].max().item(), abs=2e-4)
            record = [r for r in run.attention if (r.stack, r.site) == ("decoder", "cross_attn" if opens else "attn")][
                most.layer
            ]
            assert record.pattern(queries=[word.position])[most.head, 0, most.key].item() == pytest.approx(
                most.weight, abs=1e-4
            )
        strongest = looks.flatten(1).amax(-1).max().item()
        assert word.looks[0].adds == pytest.approx(strongest, abs=2e-4)
        assert [look.adds for look in word.looks] == sorted((look.adds for look in word.looks), reverse=True)
    # layers at many places at once: as one place at a time has them
    places = [n - 1, n + 1]
    for column in lens_columns(found, prompt, path, places):
        rows = lens(found, prompt, path, column.position, column.token)
        assert column.ranks == tuple(row.rank for row in rows) and column.ids == tuple(row.ids[0] for row in rows)
        np.testing.assert_allclose(column.probs, [row.probs[0] for row in rows], atol=1e-5)
        assert (column.ids[-1] == column.token) == (column.ranks[-1] == 1)
    with pytest.raises(IndexError, match="followed by a token"):
        lens_columns(found, prompt, path, [n + len(path) - 1])
    assert lens_columns(found, prompt, path, []) == ()


def test_the_translator_looks_at_the_word_that_it_writes() -> None:
    model = loaded("translator")
    run = core.trace(model, FOREST)
    writer = Writer(model, beginning(run, True))
    readings = [*writer.open().readings]
    while not writer.is_over:
        readings += written(writer, 1, Sampling())
    assert writer.ends and writer.path[-1] in model.end_ids
    assert writer.path == core.generate(model, FOREST)[0].ids
    the = next(r for r in readings if label(model, r.id) == "the")
    assert [label(model, i) for i in the.ids[:2].tolist()] == ["forest", "woods"]
    np.testing.assert_allclose(the.probs()[:2], [0.4935, 0.4303], atol=1e-3)
    assert run.source.labels[the.rows[1, 5].argmax()] == "Wald"
    with pytest.raises(GenerationError, match="end"):
        writer.write(Sampling())


def test_a_long_text_is_read_whole_and_shown_from_its_last_tokens() -> None:
    model = make_loaded(position="rotary")
    ids = torch.randint(3, 61, (DETAILED + 20,), generator=torch.Generator().manual_seed(1)).tolist()
    opening = Writer(model, prompt_of(model, ids)).open()
    assert [r.position for r in opening.readings] == list(range(20, DETAILED + 20))
    assert len(opening.losses) == len(ids) - 1


@pytest.mark.parametrize(
    ("path", "says"),
    [([99], "vocabulary"), ([-1], "vocabulary"), ([5] * 60, "positions"), ([2, 5], "end")],
)
def test_paths_that_cannot_be_read_get_a_sentence(path: list[int], says: str) -> None:
    model = replace(make_loaded(position="learned", n_ctx=32), end_ids=(2,))
    with pytest.raises(GenerationError, match=says):
        Writer(model, prompt_of(model, [3, 4, 5]), path)


def test_an_encoder_cannot_write() -> None:
    with pytest.raises(GenerationError, match="encoder"):
        beginning(core.trace(loaded("minilm"), "A cat."), False)


def test_with_and_without_the_cache_the_words_are_the_same() -> None:
    model, prompt, lengths = loaded("storyteller"), beginning(story(), False), list[int]()
    with core.hooked(model.model, {"decoder.blocks.0.hook_resid_pre": lambda x: lengths.append(x.shape[1])}):
        found = cache_cost(model, prompt, [KING, 415, 342], n=240, rounds=3)
    assert found.n == 240 and found.checked == 4
    assert found.same and found.difference < 1e-3
    assert lengths[:7] == [239, 1, 1, 1, 240, 240, 240], "the token that is timed, with all before it held and without"
    assert found.with_seconds > 0 and found.without_seconds > 0


# through a Service


@pytest.fixture(scope="module")
def service() -> LocalService:
    return LocalService(Engine(device=torch.device("cpu"), dtype=torch.float32))


async def begun(service: LocalService, model: str = "storyteller", text: str = STORY) -> str:
    return await service.submit(Request(model, (text,)))


def test_tokens_come_one_by_one_with_labels_told_once(service: LocalService) -> None:
    async def collect() -> list[PreparedText | WrittenToken]:
        key = await begun(service)
        return [answer async for answer in service.write(key, [KING], 4, Sampling(), also=[5, 10**9])]

    first, *rest = asyncio.run(collect())
    assert isinstance(first, PreparedText) and first.prompt_labels[-1] == "a"
    assert first.per_token.self_attention == 12_288
    assert (first.per_token.as_mha, first.per_token.as_mqa) == (12_288, 1_536)
    assert len(first.opening.readings) == 9 and 5 in first.labels
    written = [answer for answer in rest if isinstance(answer, WrittenToken)]
    assert len(written) == len(rest) == 4
    told = [token for answer in (first, *rest) for token in answer.labels]
    assert len(told) == len(set(told))
    named = {int(i) for answer in written if answer.reading is not None for i in answer.reading.ids}
    assert named <= set(told)
    assert [first.labels[KING], *(answer.taken.id for answer in written)][0] == "king"


@pytest.mark.parametrize(
    "text", ["Once upon a time there landed a tired xylophone.", "Zebra quantum eleven, the !! cat sat"]
)
def test_every_token_that_a_column_names_has_its_label(service: LocalService, text: str) -> None:
    """Also a word of the text that ranks beyond those which are listed."""

    async def opened() -> PreparedText:
        key = await begun(service, text=text)
        async with aclosing(service.write(key, (), 0, Sampling())) as coming:
            return cast(PreparedText, await anext(coming))

    found = asyncio.run(opened())
    taken = [reading.taken for reading in found.opening.readings if reading.taken]
    assert any(one.rank > LISTED for one in taken), "a word that is not among the likeliest"
    for one in taken:
        assert found.labels[one.id] == label(loaded("storyteller"), one.id)


def test_a_text_that_was_opened_goes_on_without_its_readings(service: LocalService, monkeypatch: Any) -> None:
    opened: list[IncrementalText] = []
    whole = IncrementalText.open

    def noted(self: IncrementalText, also: Iterable[int] = ()) -> PreparedText:
        opened.append(self)
        return whole(self, also)

    monkeypatch.setattr(IncrementalText, "open", noted)

    async def collect(n: int) -> list[Any]:
        key = await begun(service)
        return [answer async for answer in service.write(key, [KING], n, Sampling(0.8, seed=3))]

    fresh = asyncio.run(collect(3))
    (shown,) = asyncio.run(collect(0))
    first, *rest = asyncio.run(collect(3))
    assert first is shown and len(opened) == 2, "nobody waits for readings that are there"
    assert first.labels == fresh[0].labels
    for one, other in zip(fresh[1:], rest, strict=True):
        assert one.labels == other.labels and one.taken.id == other.taken.id
        np.testing.assert_allclose(one.reading.logits, other.reading.logits, atol=1e-4)
        np.testing.assert_allclose(one.reading.rows, other.reading.rows, atol=1e-6)


def test_nothing_is_written_that_nobody_waits_for(service: LocalService) -> None:
    async def stop() -> tuple[int, int]:
        key = await begun(service)
        coming, n = service.write(key, (), 400, Sampling()), 0
        async for _ in coming:
            n += 1
            if n == 3:
                break
        await coming.aclose()
        turns, again = [], service.engine.schedule
        service.engine.schedule = lambda make: turns.append(make) or again(make)  # type: ignore[method-assign]
        await asyncio.sleep(0.1)
        service.engine.schedule = again  # type: ignore[method-assign]
        return n, len(turns)

    assert asyncio.run(stop()) == (3, 0)
    service.engine._queue.submit(lambda: None).result()  # behind a turn that had begun
    assert asyncio.run(service.status())["running_or_waiting"] == 0


def test_another_run_gets_its_turn_between_two_tokens(service: LocalService) -> None:
    service.engine.load("copy")  # what is waited for is a turn, and not a file

    async def both() -> list[str]:
        key, order = await begun(service), []

        async def write() -> None:
            async for _ in service.write(key, (), 60, Sampling()):
                order.append("token")

        async def other() -> None:
            while len(order) < 3:
                await asyncio.sleep(0)
            await service.facts(await begun(service, "copy", "abc=abc"))
            order.append("run")

        await asyncio.gather(write(), other())
        return order

    order = asyncio.run(both())
    assert order.count("token") == 61
    assert order.index("run") < 60, "the run did not wait for the text to be written"


def test_a_line_that_is_written_on_has_no_opening_and_begins_with_the_word_that_was_taken(
    service: LocalService,
) -> None:
    async def collect() -> tuple[Any, ...]:
        key, how = await begun(service), Sampling(0.8, seed=3)
        first = [answer async for answer in service.write(key, [KING], 4, how, Continuation())]
        line = [answer async for answer in service.write(key, [KING], 3, how, Continuation(342))]
        alone = [answer async for answer in service.write(key, [KING, 342], 2, how)]
        return first, line, alone

    first, line, (opened_, *alone) = asyncio.run(collect())
    assert all(isinstance(answer, WrittenToken) for answer in (*first, *line)) and isinstance(opened_, PreparedText)
    assert [answer.taken.id for answer in line] == [342, *(answer.taken.id for answer in alone)]
    assert line[0].labels, "another reader knows no labels"


def test_beams_lens_and_cache_through_the_service(service: LocalService) -> None:
    async def collect() -> tuple[Any, ...]:
        key = await begun(service)
        steps = [grown async for grown in service.beams(key, 3, 8)]
        told = await service.wrote(key, [KING]), await service.lens_columns(key, [KING], [6, 7])
        return steps, await service.lens_at(key, [KING], 8, 415), await service.cache_cost(key, [KING], 32), told

    steps, rows, cost, (words, layers) = asyncio.run(collect())
    assert words.words[-1].token == KING and words.words[-1].position == 7
    assert layers.columns[-1].ranks[-1] == 2 and layers.labels[KING] == "king"
    assert len(steps) == 8 and steps[-1].step.finished[0][0].log_prob == pytest.approx(-12.267, abs=1e-3)
    assert steps[0].labels[KING] == "king"
    assert rows[-1].rank == 1 and cost.n == 32 and cost.same


@pytest.mark.parametrize(
    ("model", "text", "path", "says"),
    [
        ("minilm", "A cat.", (), "encoder"),
        ("storyteller", STORY, (10**6,), "vocabulary"),
        ("storyteller", STORY, (5,) * (MAX_WRITTEN + 1), "at most"),
    ],
)
def test_what_cannot_be_written_is_refused(
    service: LocalService, model: str, text: str, path: tuple[int, ...], says: str
) -> None:
    async def collect() -> None:
        async for _ in service.write(await begun(service, model, text), path, 1, Sampling()):
            pass

    with pytest.raises(core.HeadlightError, match=says):
        asyncio.run(collect())


def test_tokens_say_whether_they_bring_a_space() -> None:
    loaded = core.load("storyteller")
    tokens = loaded.tokens("Once upon a time there was a kingfisher, unbelievably old.")
    close = set(glued(loaded, tokens.ids))
    found = [i for i, special in enumerate(tokens.special) if not special]
    for i in found[1:]:
        start = tokens.offsets[i][0]
        apart = tokens.text[start].isspace() or tokens.text[start - 1].isspace()
        assert (tokens.ids[i] in close) is not apart, tokens.labels[i]
    assert any(tokens.ids[i] in close for i in found) and not all(tokens.ids[i] in close for i in found)
