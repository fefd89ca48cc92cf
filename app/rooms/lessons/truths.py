"""What steps share to say what is true: the run that is asked about and its parts, and models that are counted and never run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app import languages
from app.rooms.lessons import words
from app.rooms.lessons.checks import check, number_words, ties
from app.rooms.lessons.replies import written
from app.rooms.lessons.step import Candidate, Form, Mistake, Shown, Truth
from app.sizes.setup import Setup, Sizes, shaped
from app.transport import limits
from core.edits import Intervention
from core.errors import HeadlightError
from core.model.text import Tokens
from core.plan import PRESETS
from core.run.request import Request
from core.service import Facts, MapTransform, Site

Known = tuple[Any, str, str]  # a mistake: the answer that it gives, its name, and a sentence
LOOKS = 0.2  # the weight from which on a head looks at a word

SITES = {"encoder": "self-attention", "decoder": "self-attention", "cross": "cross-attention"}


# a run


def run(shown: Shown) -> Facts:
    """The run on the screen."""
    if shown.facts is None:
        raise HeadlightError(words.NO_RUN)
    return shown.facts


def writer(shown: Shown) -> Facts:
    """The same, of a model that writes."""
    facts = run(shown)
    if not facts.writes:
        raise HeadlightError(words.NO_WRITER.format(model=facts.spec.title))
    return facts


def number(shown: Shown, name: str, below: int, default: int = 0) -> int:
    """A number that the room shows, such as its layer; the nearest that this run has."""
    found = limits.read(shown.values.get(name, ""))
    return max(0, min(default if found is None else found, below - 1))


def site(shown: Shown, facts: Facts, id: str = "") -> Site:
    """A kind of attention of the run: the one of this id, or else the one on the screen."""
    known: dict[str, Site] = {site.id: site for site in facts.sites}
    if id and id not in known:
        raise HeadlightError(words.NO_SITE.format(model=facts.spec.title, site=SITES[id]))
    return known.get(id or shown.values.get("site", ""), facts.sites[0])


def record_of(shown: Shown, of: Site) -> tuple[int, int, int, int]:
    """Record, layer, head and query on the screen."""
    layer, head = number(shown, "layer", len(of.records)), number(shown, "head", of.n_heads)
    return of.records[layer], layer, head, number(shown, "query", of.n_query)


def stack(shown: Shown, facts: Facts) -> tuple[str, int, Tokens]:
    """The stack on the screen, how many layers it has, and what it reads."""
    stacks: dict[str, int] = dict(facts.config.stacks)
    name = shown.values.get("stack", "")
    name = name if name in stacks else next(iter(stacks))
    tokens = facts.source if name == "encoder" or facts.target is None else facts.target
    return name, stacks[name], tokens


async def changed(shown: Shown, facts: Facts, edits: Sequence[Intervention]) -> str:
    """The key of the run with these edits as well, once it has ended."""
    if not edits:
        return facts.key
    key = await shown.service.edited(facts.key, edits)
    async for _ in shown.service.follow(key):
        pass
    return key


async def of_request(shown: Shown, request: Request) -> Facts:
    """A run that is not on the screen, once it has ended."""
    key = await shown.service.submit(request)
    async for _ in shown.service.follow(key):
        pass
    return await shown.service.facts(key)


async def row(shown: Shown, question: str, reason: str, site_id: str = "") -> Truth:
    """Where the query on the screen looks most, in the head on the screen. Padding and hidden keys are nowhere to look."""
    facts = run(shown)
    of = site(shown, facts, site_id)
    record, layer, head, query = record_of(shown, of)
    queries, keys = facts.tokens_of(record)
    word = said(queries.labels[query])
    found = await shown.service.row(facts.key, MapTransform(record, head), query)
    seen = [i for i, why in enumerate(found.reasons) if not why and not keys.padding[i]]
    if len(seen) < 2:
        raise HeadlightError(words.ONE_KEY.format(word=word))
    footer = words.FOOTER_ROW if len(facts.sites) == 1 else words.FOOTER_SITE
    is_so = pointing(
        languages.said(question).format(word=word),
        languages.said(reason).format(word=word),
        footer.format(site=SITES[of.id], layer=layer, head=head, row=query),
        Candidates([Candidate(keys.labels[i], (i,), float(found.values[i])) for i in seen], "token", share=True),
    )
    try:
        every = (await shown.service.similarity(facts.key, of.id, query, [1 / of.n_key] * of.n_key)).rows
    except HeadlightError:  # a text so long that not every head can be asked
        every = None
    own = query if of.query == of.key else -1
    mistakes = [
        Mistake(str(at), _row_mistake(keys, at, own), f"{_gets(is_so, keys, at)}{_seen_by(every, at, (layer, head))}")
        for at in (candidate.place[0] for candidate in is_so.candidates[is_so.best :])
    ]
    return replace(is_so, mistakes=tuple(mistakes))


def _row_mistake(keys: Tokens, at: int, query: int) -> str:
    """Which mistake a wrong word is. `query` is the word that looks, -1 where it is of another text."""
    same = [i for i, label in enumerate(keys.labels) if label.strip().lower() == keys.labels[at].strip().lower()]
    if at == query:
        return words.ROW_MISTAKES["itself"]
    if query in same and at < query:
        return words.ROW_MISTAKES["earlier"]
    if keys.special[at] or (at == 0 and not any(keys.special)):
        return words.ROW_MISTAKES["rests"]
    if len(same) > 1:
        return words.ROW_MISTAKES["twice"]
    return words.ROW_MISTAKES["before" if at == query - 1 else "stands_out"]


def _gets(truth: Truth, keys: Tokens, at: int) -> str:
    """The share of a word in this row, and its rank; a word that is there twice with its place."""
    chosen = next(candidate for candidate in truth.candidates if candidate.place == (at,))
    label = said(chosen.label) + (f" ({at})" if keys.labels.count(chosen.label) > 1 else "")
    rank = 1 + sum(candidate.value > chosen.value for candidate in truth.candidates)
    share = number_words(100 * chosen.value, "%", 1)
    return words.REPLY["gets"].format(word=label, value=share, rank=rank, n=len(truth.candidates))


def _seen_by(every: np.ndarray | None, at: int, own: tuple[int, int]) -> str:
    """The head that looks at a word most, where one looks there: weights [layer, head, key] of one query."""
    if every is None:
        return ""
    layer, head = (int(i) for i in np.unravel_index(every[:, :, at].argmax(), every.shape[:2]))
    weight = float(every[layer, head, at])
    if weight < LOOKS or (layer, head) == own:
        return ""
    return " " + words.REPLY["seen_by"].format(head=head, layer=layer, value=number_words(100 * weight, "%", 0))


@dataclass(frozen=True)
class Candidates:
    """What may be pointed at, and how it is said."""

    all: Iterable[Candidate]
    places: str  # what their places count: "token", "layer, head"
    form: Form = "row"
    share: bool = False  # whether their values are shares of one, in per cent


def pointing(
    question: str, reason: str, footer: str, candidates: Candidates, *, best: int | None = None, **more: Any
) -> Truth:
    """A question whose answer is the candidate of the largest value, or one that ties with it; or any of the `best` largest.

    `mistakes` are places, each with its name and sentence.
    """
    mistakes: Sequence[Known] = more.pop("mistakes", ())
    found = sorted(candidates.all, key=lambda candidate: -candidate.value)
    best = ties([candidate.value for candidate in found]) if best is None else best
    made = Truth(
        "point",
        question,
        reason,
        footer,
        candidates=tuple(found),
        places=candidates.places,
        best=best,
        form=candidates.form,
        share=candidates.share,
        **more,
    )
    return _slipping(made, [([place], name, sentence) for place, name, sentence in mistakes])


def dragging(
    question: str, reason: str, footer: str, number: float, between: tuple[float, float], **more: Any
) -> Truth:
    """A question for a number between these two, or a little farther: the middle of that range, which is guessed first, is not right.

    `mistakes` are the numbers that known mistakes give.
    """
    mistakes: Sequence[Known] = more.pop("mistakes", ())
    low, high = between
    tolerance = float(more["tolerance"])
    for share in (1.0, 0.8, 0.65, 0.5, 1.3, 1.6):
        end = low + share * (high - low)
        if abs((low + end) / 2 - number) > 1.2 * tolerance and end >= number + tolerance:
            break
    return _slipping(
        Truth("drag", question, reason, footer, number=number, low=low, high=float(f"{end:.6g}"), **more), mistakes
    )


def _slipping(truth: Truth, known: Iterable[Known]) -> Truth:
    """With what is known of wrong answers; an answer that is right of this run is no mistake."""
    found = [
        Mistake(one[0] if truth.kind == "drag" else written(one[0]), *one[1:])
        for one in known
        if not check(truth, one[0]).right
    ]
    return replace(truth, mistakes=(*truth.mistakes, *found))


def marking(
    question: str,
    reason: str,
    footer: str,
    named: Iterable[tuple[str, int, bool]],
    *,
    places: str = "token",
    **more: Any,
) -> Truth:
    """A question whose answer is all that is right: labels, places and whether each is."""
    mistakes: Sequence[Known] = more.pop("mistakes", ())
    found = [Candidate(label, (at,), float(is_right)) for label, at, is_right in named]
    best = sum(bool(candidate.value) for candidate in found)
    made = pointing(question, reason, footer, Candidates(found, places, "plain"), best=best, all_of=True, **more)
    wrong = {candidate.place for candidate in made.candidates[best:]}
    one_too_many = [Mistake(written([place]), *said) for place, *said in mistakes if place in wrong]
    other_way = [Mistake(written(sorted(wrong)), *said) for place, *said in mistakes if place == ()]
    return replace(made, mistakes=(*other_way, *one_too_many))


def choosing(
    question: str, reason: str, footer: str, options: dict[str, bool], *, all_of: bool = False, **more: Any
) -> Truth:
    """A question with options, each with whether it is so. `wrong` has for each option the mistake that it is: a name and a sentence."""
    wrong: Sequence[tuple[str, str]] = more.pop("wrong", ())
    right = tuple(i for i, is_right in enumerate(options.values()) if is_right)
    mistakes = tuple(Mistake(str(i), *said) for i, said in enumerate(wrong) if said[0] and i not in right)
    return Truth(
        "choose",
        question,
        reason,
        footer,
        options=tuple(options),
        right=right,
        all_of=all_of,
        mistakes=mistakes,
        **more,
    )


def shaping(
    question: str,
    reason: str,
    footer: str,
    shape: Sequence[int],
    others: Iterable[int],
    mistakes: Sequence[Known] = (),
) -> Truth:
    """A question for a shape, with tiles of its sizes and of others, and shapes that known mistakes give."""
    tiles = sorted({*shape, *others})
    made = Truth("shape", question, reason, footer, axes=tuple(map(str, shape)), options=tuple(map(str, tiles)))
    return _slipping(made, mistakes)


def said(label: str) -> str:
    """A token in a sentence."""
    return languages.quotation(label)


# models that are counted


def setup(shown: Shown) -> Setup:
    """The sizes that the sliders of Memory and Compute stand at."""
    values = shown.values
    preset = PRESETS.get(values.get("plan_model", "lesson-encoder"))
    if preset is None:
        raise HeadlightError(words.NO_SIZES)
    config = preset.config
    own = {"batch": 32, "source": 50, "target": 50}
    if config.kind == "decoder":
        own = {"batch": 1, "source": min(1024, config.n_ctx), "target": 0}
    sizes = {name: whole(shown, f"plan_{name}", default) for name, default in own.items()}
    target = sizes["target"] if config.kind == "encoder-decoder" else 0
    shape = {
        "d_model": config.d_model,
        "n_heads": config.n_heads,
        "n_kv_heads": config.n_kv_heads,
        "n_layers": max(config.n_encoder_layers, config.n_decoder_layers),
        "d_ff": config.d_ff,
        "vocab_size": config.vocab_size,
    }
    names = {"n_heads": "heads", "n_kv_heads": "kv_heads", "n_layers": "layers", "vocab_size": "vocab"}
    shape = {name: whole(shown, f"plan_{names.get(name, name)}", default) for name, default in shape.items()}
    sized = shaped(config, Sizes(**shape), longest=max(sizes["source"], target))
    made = Setup(preset.title, sized, sizes["batch"], sizes["source"], target)
    training = values.get("plan_phase", "train") == "train"
    choices: dict[str, Any] = {"dtype": "dtype", "attention": "attention"}
    choices |= {"optimizer": "optimizer", "recompute": "recompute"} if training else {}
    said_so: dict[str, Any] = {
        field: values[f"plan_{name}"] for field, name in choices.items() if values.get(f"plan_{name}")
    }
    return replace(made, training=training, dropout=training and values.get("plan_dropout") == "on", **said_so)


def sizes_in_words(of: Setup) -> str:
    """ "a textbook encoder, 32 × 50 tokens, float32"."""
    length = f"{of.source_len:,}" if not of.target_len else f"({of.source_len:,} + {of.target_len:,})"
    return f"{of.title}, {of.batch:,} × {length} tokens, {of.dtype}"


def whole(shown: Shown, name: str, default: int) -> int:
    """A whole number from 1 that the room shows."""
    return min(max(1, limits.read(shown.values.get(name, "")) or default), 1 << 20)
