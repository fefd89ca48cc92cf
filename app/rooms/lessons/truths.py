"""What steps share to say what is true: the run that is asked about and its parts, and models that are counted and never run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app import languages
from app.rooms.lessons import words
from app.rooms.lessons.checks import ties
from app.rooms.lessons.step import Candidate, Form, Shown, Truth
from app.sizes.setup import Setup, Sizes, shaped
from app.transport import limits
from core.edits import Intervention
from core.errors import Refused
from core.model.text import Tokens
from core.plan import PRESETS
from core.run.request import Request
from core.service import Facts, MapTransform, Site

SITES = {"encoder": "self-attention", "decoder": "self-attention", "cross": "cross-attention"}


# a run


def run(shown: Shown) -> Facts:
    """The run on the screen."""
    if shown.facts is None:
        raise Refused(words.NO_RUN)
    return shown.facts


def writer(shown: Shown) -> Facts:
    """The same, of a model that writes."""
    facts = run(shown)
    if not facts.writes:
        raise Refused(words.NO_WRITER.format(model=facts.spec.title))
    return facts


def number(shown: Shown, name: str, below: int, default: int = 0) -> int:
    """A number that the room shows, such as its layer; the nearest that this run has."""
    found = limits.read(shown.values.get(name, ""))
    return max(0, min(default if found is None else found, below - 1))


def site(shown: Shown, facts: Facts, id: str = "") -> Site:
    """A kind of attention of the run: the one of this id, or else the one on the screen."""
    known = {site.id: site for site in facts.sites}
    if id and id not in known:
        raise Refused(words.NO_SITE.format(model=facts.spec.title, site=SITES[id]))
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
        raise Refused(words.ONE_KEY.format(word=word))
    footer = words.FOOTER_ROW if len(facts.sites) == 1 else words.FOOTER_SITE
    return pointing(
        languages.said(question).format(word=word),
        languages.said(reason).format(word=word),
        footer.format(site=SITES[of.id], layer=layer, head=head, row=query),
        Candidates([Candidate(keys.labels[i], (i,), float(found.values[i])) for i in seen], "token", share=True),
    )


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
    """A question whose answer is the candidate of the largest value, or one that ties with it; or any of the `best` largest."""
    found = sorted(candidates.all, key=lambda candidate: -candidate.value)
    best = ties([candidate.value for candidate in found]) if best is None else best
    return Truth(
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


def dragging(
    question: str, reason: str, footer: str, number: float, between: tuple[float, float], **more: Any
) -> Truth:
    """A question for a number on a slider from one end to the other, or a little farther: it rests in its middle, which must not be right."""
    low, high = between
    tolerance = float(more["tolerance"])
    for share in (1.0, 0.8, 0.65, 0.5, 1.3, 1.6):
        end = low + share * (high - low)
        if abs((low + end) / 2 - number) > 1.2 * tolerance and end >= number + tolerance:
            break
    return Truth("drag", question, reason, footer, number=number, low=low, high=float(f"{end:.6g}"), **more)


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
    found = [Candidate(label, (at,), float(is_right)) for label, at, is_right in named]
    best = sum(bool(candidate.value) for candidate in found)
    return pointing(question, reason, footer, Candidates(found, places, "plain"), best=best, all_of=True, **more)


def choosing(
    question: str, reason: str, footer: str, options: dict[str, bool], *, all_of: bool = False, **more: Any
) -> Truth:
    """A question with options, each with whether it is so."""
    right = tuple(i for i, is_right in enumerate(options.values()) if is_right)
    return Truth("choose", question, reason, footer, options=tuple(options), right=right, all_of=all_of, **more)


def shaping(question: str, reason: str, footer: str, shape: Sequence[int], others: Iterable[int]) -> Truth:
    """A question for a shape, with tiles of its sizes and of others."""
    tiles = sorted({*shape, *others})
    return Truth("shape", question, reason, footer, axes=tuple(map(str, shape)), options=tuple(map(str, tiles)))


def said(label: str) -> str:
    """A token in a sentence."""
    return languages.quotation(label)


# models that are counted


def setup(shown: Shown) -> Setup:
    """The sizes that the sliders of Memory and Compute stand at."""
    values = shown.values
    preset = PRESETS.get(values.get("plan_model", "lesson-encoder"))
    if preset is None:
        raise Refused(words.NO_SIZES)
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
    said_so = {field: values[f"plan_{name}"] for field, name in choices.items() if values.get(f"plan_{name}")}
    return replace(made, training=training, dropout=training and values.get("plan_dropout") == "on", **said_so)


def sizes_in_words(of: Setup) -> str:
    """ "a textbook encoder, 32 × 50 tokens, float32"."""
    length = f"{of.source_len:,}" if not of.target_len else f"({of.source_len:,} + {of.target_len:,})"
    return f"{of.title}, {of.batch:,} × {length} tokens, {of.dtype}"


def whole(shown: Shown, name: str, default: int) -> int:
    """A whole number from 1 that the room shows."""
    return min(max(1, limits.read(shown.values.get(name, "")) or default), 1 << 20)
