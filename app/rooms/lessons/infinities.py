"""Masks that are not as they should be, and −∞ in them: a row with no key, a mask that multiplies, a mask that was left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app import languages
from app.rooms.lessons import truths, words
from app.rooms.lessons.step import Shown, Step, Truth
from app.session.words import EXAMPLE
from core.edits import EditMask, MaskFill
from core.errors import HeadlightError
from core.run.request import Request
from core.service import MapTransform

SCRATCH, PAIR = "Attention from scratch", "Encoder and decoder"
GERMAN = "Ein Hund rennt."
LONGER = "Ein brauner Hund rennt am Morgen durch den tiefen Schnee."


async def no_key(shown: Shown) -> Truth:
    """A row that may look at nothing: by a plain softmax, here, and with a finite number for −∞."""
    facts = truths.run(shown)
    of = truths.site(shown, facts)
    record, layer, head, query = truths.record_of(shown, of)
    word = truths.said(facts.tokens_of(record)[0].labels[query])
    hidden = EditMask(queries=query, keys=None)
    found = []
    for edits in ((hidden,), (hidden, MaskFill(-1e9))):
        key = await truths.changed(shown, facts, edits)
        found.append((await shown.service.row(key, MapTransform(record, head), query)).values)
    ours, finite = found
    plain = softmax(np.full(of.n_key, -np.inf))
    options = {
        "All of them 0": not plain.any(),
        f"All of them alike: 1 ÷ {of.n_key}": bool(np.allclose(plain, 1 / of.n_key)),
        "Not a number: NaN": bool(np.isnan(plain).all()),
    }
    return truths.choosing(
        f"Every key is hidden from {word} with −∞. What does a plain softmax make of the row?",
        f"e to the −∞ is 0 for every key, and 0 ÷ 0 is NaN, which then spreads through the model. Here such a row is zeros: it adds up to "
        f"{float(ours.sum()):.0f}. With −1e9 for −∞ it adds up to {float(finite.sum()):.0f}, {100 * float(finite.max()):.1f} % for every key alike.",
        words.FOOTER_ROW.format(layer=layer, head=head, row=query),
        options,
        wrong=(
            (
                "That is what happens here.",
                "This engine looks for such rows and makes them 0. A plain softmax divides by its sum, whatever that is.",
            ),
            (
                "That is −1e9, not −∞.",
                f"With −1e9 every key has {100 * float(finite.max()):.1f} %: nothing is hidden from itself.",
            ),
            ("Nothing divides by 0.", f"The row adds up to {float(plain.sum()):.0f}."),
        ),
    )


async def multiplied(shown: Shown) -> Truth:
    """How many rows come out right under a causal mask of 1 and −∞ that multiplies the scores."""
    facts = truths.run(shown)
    of = truths.site(shown, facts)
    _, layer, head, _ = truths.record_of(shown, of)
    if of.id == "cross" or of.n_key < 2:
        raise HeadlightError(words.ONE_TOKEN)
    scores = (await shown.service.masked(facts.key, of.id, [layer])).scores[0, head].astype(float)  # [query, key]
    future = np.triu(np.ones(scores.shape, bool), 1)
    with np.errstate(invalid="ignore", over="ignore"):
        rows = softmax(np.where(future, -np.inf, 1.0) * scores)
    right = softmax(np.where(future, -np.inf, scores))
    lost = np.isnan(rows[:-1].sum(-1))  # of those with something to hide: the last row sees all
    exact = np.isclose(rows[:-1], right[:-1], atol=1e-12).all(-1)
    hidden, negative = int(future.sum()), int((scores[future] < 0).sum())
    options = {
        "All: 1 changes nothing, and −∞ hides": bool(exact.all()),
        "Some: those whose hidden scores are all above 0": bool(exact.any() and not exact.all()),
        "None: each row is NaN": bool(lost.all()),
    }
    n = len(lost)
    return truths.choosing(
        f"A causal mask of 1 and −∞ multiplies the scores. How many of the {n} rows with something hidden come out right?",
        f"{int(exact.sum())} of {n}; NaN: {int(lost.sum())}. A hidden score below 0 becomes −∞ · −1 = +∞, and ∞ ÷ ∞ is no number; 0 · −∞ is "
        "none either. Masks are added (0 and −∞) or fill in; only after the softmax may one multiply, with 1 and 0.",
        words.FOOTER_RUN.format(what=languages.said(f"scores of layer {layer}, head {head}, multiplied")),
        options,
        wrong=(
            ("The sign of a score decides.", f"Of the scores to hide {negative} are below 0: −∞ times these is +∞."),
            ("Count the signs.", f"Of the {hidden} scores to hide {negative} are below 0."),
            (
                "Not every score is below 0.",
                f"Of the {hidden} scores to hide {negative} are. A row with none of them is hidden as it should be.",
            ),
        ),
    )


async def forgotten(shown: Shown) -> Truth:
    """How much of its attention a decoder gives to the padding of the source where it is not hidden."""
    facts = truths.run(shown)
    truths.site(shown, facts, "cross")
    texts = [*shown.text.splitlines(), *shown.values.get("partner", "").splitlines()]
    texts = [text.strip() for text in texts if text.strip()][:2]
    if len(texts) < 2:
        raise HeadlightError(words.NO_PADDING)
    batch = Request(facts.spec.id, tuple(texts), facts.target.text if facts.target is not None else None)
    masked = await truths.of_request(shown, batch)
    padding = [i for i, is_padding in enumerate(masked.source.padding) if is_padding]
    if not padding:
        raise HeadlightError(words.NO_PADDING)
    seen = EditMask("decoder", keys=padding, allowed=True, site="cross_attn")
    free = await truths.of_request(shown, replace(batch, interventions=(seen,)))
    shares = []
    for run in (masked, free):
        (cross,) = [site for site in run.sites if site.id == "cross"]
        rows = [
            (await shown.service.row(run.key, MapTransform(record, head), query)).values[padding].sum()
            for record in cross.records
            for head in range(cross.n_heads)
            for query in range(cross.n_query)
        ]
        shares.append(100 * float(np.mean(rows)))
    return truths.dragging(
        f"{len(padding)} of {len(masked.source)} keys of the source are padding. Without memory_mask, how much of cross-attention goes to them, over all heads?",
        f"With the mask they get {shares[0]:.0f} %, without it {shares[1]:.1f} %, and the "
        "rest of each row has that much less. The encoder’s own mask does not help: it is another attention.",
        words.FOOTER_RUN.format(
            what=languages.said(f"{len(texts)} sentences in one batch, {len(padding)} keys of padding")
        ),
        shares[1],
        (0, 100),
        unit="%",
        step=1,
        tolerance=5,
        digits=1,
        mistakes=(
            (
                shares[0],
                "That is with the mask.",
                "The encoder hides padding from itself. Cross-attention is another attention, with a mask of its own.",
            ),
            (
                100 * len(padding) / len(masked.source),
                "Counted, not weighed.",
                f"{len(padding)} of {len(masked.source)} keys are padding. Heads do not give every key the same.",
            ),
            (100, "Nothing for the words.", "Words still match what the decoder asks for, and keep a share."),
        ),
    )


def softmax(scores: np.ndarray) -> np.ndarray:
    """Over the last axis, as it is written in a textbook: a row of −∞ alone is NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        raised = np.exp(scores - scores.max(-1, keepdims=True))
        return raised / raised.sum(-1, keepdims=True)


STEPS = (
    Step(
        title="A row that sees nothing",
        source=SCRATCH,
        room="masks",
        state={"lab": "paint", "layer": "3", "head": "1", "query": "10", "forbid": "10-0..15"},
        text="A mask can hide every key of a row: a text that is all padding, or a slip. The softmax then divides by a sum of nothing.",
        question="Every key of a row is hidden with −∞. What does a plain softmax make of it?",
        kind="choose",
        cover="number",
        rows=("F6",),
        hint="e to the power of −∞ is 0. A softmax then divides by the sum of the row.",
        truth=no_key,
        varied={"query": "7", "forbid": "7-0..12"},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="A mask that multiplies",
        source=SCRATCH,
        room="masks",
        state={"lab": "paint", "site": "decoder", "layer": "1", "head": "1", "query": "1"},
        text="A mask of 0 and −∞ is added to the scores. A lesson has one of 1 and −∞ and multiplies, since 1 changes nothing.",
        question="A causal mask of 1 and −∞ multiplies the scores. How many rows come out right?",
        kind="choose",
        cover="",
        rows=("F17",),
        truth=multiplied,
        varied={"query": "2"},
        model="storyteller",
        sentence="Once upon a time",
    ),
    Step(
        title="The forgotten memory mask",
        source=PAIR,
        room="masks",
        state={"lab": "padding", "partner": LONGER, "sentence": "0", "pad": "off"},
        text="Two German sentences share a batch, so the shorter one is filled up. The encoder hides the padding from itself; the decoder looks at the same tokens once more.",
        question="Cross-attention without memory_mask: how much of it goes to the padding of the source?",
        kind="drag",
        cover="",
        rows=("F17",),
        truth=forgotten,
        model="translator",
        sentence=GERMAN,
    ),
)
