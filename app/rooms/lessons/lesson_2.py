"""Lesson 2, Order and depth: how a model knows what stands where, and what its layers add."""

from __future__ import annotations

import numpy as np

from app import languages
from app.kit.numbers import scientific
from app.rooms.lessons import small, truths, words
from app.rooms.lessons.step import Candidate, Shown, Step, Truth
from app.session.words import EXAMPLE
from core.errors import HeadlightError, TextError
from core.model.text import Tokens
from core.run.request import Request

GERMAN = "Ein Hund rennt durch den Schnee."
COURSE, ORDER, TWO = "The course", "Positions and the encoder", "Encoder and decoder"
PLACES = 16  # that are counted in binary
LONG = 256  # places over which waves are counted
SAME = 1e-3  # two maps that differ by less than this are the same map, up to rounding


async def swapped(shown: Shown) -> Truth:
    """What becomes of the maps of a text whose words change places, without positions."""
    facts = truths.run(shown)
    if not facts.config.n_encoder_layers:
        raise HeadlightError(words.NO_ENCODER.format(model=facts.spec.title))
    first, second = _pair(shown, facts.source)
    places = list(range(len(facts.source)))
    places[first], places[second] = second, first
    proof = await shown.service.equivariance(facts.key, places)
    labels = facts.source.labels
    moved = proof.without < SAME
    options = {
        "Nothing changes: every row stays where it was": False,
        "Their rows and columns swap too, and no number changes": moved,
        "Every weight of every row becomes another": not moved,
    }
    return truths.choosing(
        f"Without positions: {truths.said(labels[first])} and {truths.said(labels[second])} change places. What do the maps do?",
        f"What moves in, moves out: attention is equivariant. Largest difference after swapping back: {scientific(proof.without)}; "
        f"with positions {proof.trained:.2f}.",
        words.FOOTER_RUN.format(what=languages.said("every head of the encoder, with the words swapped")),
        options,
        wrong=(
            (
                "That would be invariant.",
                "A row belongs to the word that stands there, and another word stands there now.",
            ),
            (
                "They are not the same numbers.",
                f"The largest difference after swapping back is {scientific(proof.without)}.",
            ),
            (
                "That takes positions.",
                f"With positions the largest difference is {proof.trained:.2f}. Without them a word is the same wherever it stands.",
            ),
        ),
        slip="A lesson calls this invariant. It is equivariant: the rows do swap.",
    )


def _pair(shown: Shown, tokens: Tokens) -> tuple[int, int]:
    """The words that change places in the room; else the first and the last that can."""
    movable = [i for i in range(len(tokens)) if not (tokens.special[i] or tokens.padding[i])]
    if len(movable) < 2:
        raise HeadlightError(words.FEW_WORDS)
    asked = [part for part in shown.values.get("swap", "").split("-") if part.isascii() and part.isdecimal()]
    pair = sorted({int(part) for part in asked if len(part) < 8} & set(movable))
    return (pair[0], pair[1]) if len(pair) == 2 else (movable[0], movable[-1])


async def fastest_digit(_: Shown) -> Truth:
    """The digit that changes at every step."""
    flips = small.flips(PLACES)
    return truths.pointing(
        "Count from 0 to 15 in binary. Which digit changes at every step?",
        f"From one place to the next they change {', '.join(map(str, flips))} times in {PLACES - 1} steps: each about half as often as the one before.",
        words.FOOTER_WORKED.format(what=languages.said("the places 0 to 15")),
        truths.Candidates(
            [Candidate(f"the digit worth {1 << j}", (j,), float(n)) for j, n in enumerate(flips)], "digit", "plain"
        ),
        mistakes=[
            ((j,), "That one waits.", f"From 0 to {PLACES - 1} it changes {n} times.") for j, n in enumerate(flips)
        ],
    )


async def frequencies(shown: Shown) -> Truth:
    """Whether the waves of the run's own table of sinusoids become faster with the feature."""
    facts = truths.run(shown)
    config, stack = facts.config, truths.stack(shown, facts)[0]
    if config.position != "sinusoidal":
        raise HeadlightError(words.NO_SINUSOIDS.format(model=facts.spec.title))
    d_model, n = config.d_model, min(LONG, config.n_ctx)
    table = await shown.service.position_rows(facts.key, stack, 0, n)
    asked = [part for part in shown.values.get("features", "").split(",") if part.isascii() and part.isdecimal()]
    features = sorted({int(part) for part in asked if len(part) < 6 and int(part) < d_model}) or [0]
    if len(features) < 2:
        features = [0, d_model // 2]
    turns = [int((np.diff(np.signbit(table[:, feature])) != 0).sum()) for feature in features]
    falls, rises = turns == sorted(turns, reverse=True), turns == sorted(turns)
    options = {
        "Yes: the higher the feature, the faster its wave": rises and not falls,
        "No: the higher the feature, the slower its wave": falls and not rises,
        "No: all waves are equally fast": falls and rises,
    }
    counted = ", ".join(f"{feature} {turn}" for feature, turn in zip(features, turns, strict=True))
    return truths.choosing(
        f"Features {', '.join(map(str, features))} of its table: do their waves become faster?",
        f"Changes of sign over {n} places, by feature: {counted}. Like binary digits, each changes more slowly than the one before.",
        words.FOOTER_RUN.format(what=languages.said(f"rows 0 to {n - 1} of its table of positions")),
        options,
        wrong=(
            (
                "The other way round.",
                f"Feature {features[0]} changes its sign {turns[0]} times over {n} places. Count another.",
            ),
            (
                "The other way round.",
                f"Feature {features[-1]} changes its sign {turns[-1]} times over {n} places. Count another.",
            ),
            (
                "One clock alone.",
                "Waves that are equally fast come round together, so that places would soon be alike.",
            ),
        ),
        slip="A lesson cuts its table with pe[:, :, :n], which takes features and raises an error; pe[:, :n] takes places.",
    )


async def too_long(shown: Shown) -> Truth:
    """What happens to a text that is one token longer than the table of positions."""
    facts = truths.run(shown)
    config = facts.config
    if not config.has_position_table:
        raise HeadlightError(words.NO_TABLE.format(model=facts.spec.title))
    text = " ".join(["a"] * (config.n_ctx + 1 - sum(facts.source.special)))
    request = Request(facts.spec.id, (text,), "a" if config.kind == "encoder-decoder" else None)
    refusal = ""
    try:
        key = await shown.service.submit(request)
        async for _ in shown.service.follow(key):
            pass
    except TextError as error:
        refusal = str(error)
    options = {
        "It is cut off: the last word is not read": False,
        "It is refused, and the text is kept": bool(refusal),
        "The positions begin again at 0": False,
        "It is read like any other": not refusal,
    }
    return truths.choosing(
        f"The table of {facts.spec.title} has {config.n_ctx:,} rows. What happens to a text of {config.n_ctx + 1:,} tokens?",
        refusal or "Nothing has refused it.",
        words.FOOTER_RUN.format(what=languages.said("a text longer than its table, tried now")),
        options,
        wrong=(
            ("Nothing is cut here.", "A text that loses its end is another text."),
            ("Nothing refuses it.", "It was tried just now, and it ran."),
            ("Two places would be one.", f"Place {config.n_ctx:,} would have the row of place 0."),
            ("It has no row to add.", f"The rows are numbered 0 to {config.n_ctx - 1:,}."),
        ),
    )


async def normalised(shown: Shown) -> Truth:
    """Over which axis LayerNorm measures."""
    facts = truths.run(shown)
    stack, layers, tokens = truths.stack(shown, facts)
    layer, query = truths.number(shown, "layer", layers), truths.number(shown, "query", len(tokens))
    walked = await shown.service.walk(facts.key, stack, layer, query)
    norm = next(iter(walked.norms.values()), None)
    if norm is None or not norm.takes_mean:
        raise HeadlightError(words.NO_NORM.format(model=facts.spec.title))
    n, width = norm.before.shape
    centred = (norm.before - norm.before.mean(-1, keepdims=True)) / np.sqrt(
        norm.before.var(-1, keepdims=True) + norm.eps
    )
    return truths.shaping(
        f"The stream is {n} × {width}. Over how many numbers does LayerNorm take each mean?",
        f"Each token by itself, over its {len(norm.weight)} features: then its mean is {abs(centred[query].mean()):.0f} and its variance "
        f"{centred[query].var():.2f}. BatchNorm measures a feature over tokens, so padding and neighbours change it.",
        words.FOOTER_RUN.format(what=languages.said(f"layer {layer}, row {query}")),
        norm.weight.shape,
        (n, facts.config.d_head, facts.config.n_heads),
        (
            (
                [n],
                "That is the mean over tokens.",
                f"Over {n} tokens there is a mean for every feature: BatchNorm does that.",
            ),
            (
                [facts.config.d_head],
                "Heads come later.",
                "The norm comes before the split into heads, so it knows nothing of their width.",
            ),
            (
                [facts.config.n_heads],
                "Heads come later.",
                "The norm comes before the split into heads, so it knows nothing of their number.",
            ),
        ),
    )


async def adds_up(shown: Shown) -> Truth:
    """How long a token's stream is once attention has added its vector, whose length is known."""
    facts = truths.run(shown)
    stack, layers, tokens = truths.stack(shown, facts)
    layer, query = truths.number(shown, "layer", layers), truths.number(shown, "query", len(tokens))
    walked = await shown.service.walk(facts.key, stack, layer, query)
    if "attn.add" not in walked.values:
        raise HeadlightError(words.NO_SUM.format(model=facts.spec.title))
    stream, after = walked.values["x"].astype(float), walked.values["attn.add"].astype(float)
    vector = after - stream
    before, added, long = (float(np.linalg.norm(one)) for one in (stream, vector, after))
    cosine = float(stream @ vector) / (before * added)
    every = await shown.service.additions(facts.key, stack)
    most = max(every, key=lambda one: one.lengths[query])
    return truths.dragging(
        f"The stream of {truths.said(tokens.labels[query])} is {before:.1f} long, and attention adds a vector {added:.1f} long to it. How long is the sum?",
        f"Lengths add up, to {before + added:.1f}, only where both point the same way; here the cosine of the two is {cosine:.2f}. At right angles it would be "
        f"√({before:.1f}² + {added:.1f}²) = {np.hypot(before, added):.1f}. Nothing is overwritten. The longest vector is added by layer {most.layer}, {most.sublayer}: {most.lengths[query]:.1f}.",
        words.FOOTER_RUN.format(what=languages.said(f"{stack}, layer {layer}, row {query}, ‖what is added‖")),
        long,
        (0, float(f"{1.5 * (before + added):.2g}")),
        step=float(f"{(before + added) / 100:.1g}"),
        tolerance=0.08 * long,
        digits=1,
        mistakes=(
            (
                before + added,
                "Lengths added as numbers.",
                f"{before:.1f} + {added:.1f} is {before + added:.1f}. So long is the sum only where both point the same way.",
            ),
            (
                float(np.hypot(before, added)),
                "As if at right angles.",
                f"√({before:.1f}² + {added:.1f}²) is {np.hypot(before, added):.1f}. These two do not stand so.",
            ),
            (
                abs(before - added),
                "As if against each other.",
                f"{max(before, added):.1f} − {min(before, added):.1f} is {abs(before - added):.1f}. So short is the sum only where they point opposite ways.",
            ),
        ),
    )


async def previous(shown: Shown) -> Truth:
    """The head that looks one token back."""
    facts = truths.run(shown)
    of = truths.site(shown, facts)
    if of.id == "cross":
        of = facts.sites[0]
    found = (await shown.service.measures(facts.key, of.id)).values["previous"]
    heads = [
        (layer, head, value) for layer, row in enumerate(found) for head, value in enumerate(row) if value is not None
    ]
    if len(heads) < 2:
        raise HeadlightError(words.ONE_TOKEN)
    return truths.pointing(
        f"One of these {len(heads)} heads looks one token back, whatever the text says. Which?",
        "Such a head reads positions alone. Others build on it: with the token before at hand, a model can find what followed last time.",
        words.FOOTER_RUN.format(what=languages.said("the mean weight on the token before, of every head")),
        truths.Candidates(
            [Candidate(f"layer {layer}, head {head}", (layer, head), value) for layer, head, value in heads],
            "layer, head",
            "ranked",
            share=True,
        ),
    )


STEPS = (
    Step(
        title="Swap two words",
        source=ORDER,
        room="positions",
        state={"lab": "order", "order": "words", "swap": "2-8"},
        text="Attention adds up values, and a sum has no order. Order comes in with positions alone. Take them away and let two words change places.",
        question="Without positions, two words change places. What do the maps do?",
        kind="choose",
        cover="number",
        rows=("D1", "F1"),
        hint="Without positions a word has the same query, key and value wherever it stands.",
        truth=swapped,
        varied={"swap": "2-5"},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="Positions in binary",
        source=COURSE,
        room="positions",
        state={"lab": "binary", "t": "7"},
        text="Number the places 0, 1, 2 … in binary: a few digits tell all of them apart. Some digits are always changing, others hardly ever.",
        question="Count from 0 to 15 in binary. Which digit changes at every step?",
        kind="point",
        cover="cell",
        rows=("E3",),
        hint="Write 0, 1, 2 and 3 below each other. Or move the place in the picture by one.",
        truth=fastest_digit,
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="From bits to waves",
        source=COURSE,
        room="positions",
        state={"lab": "two", "kind": "sinusoidal", "features": "0,4,10,20"},
        text="Digits jump; waves do not. This translator gives each place a row of sines and cosines, which is added to the token. No two rows are equal.",
        question="Features 0, 4, 10, 20 of its table: do their waves become faster?",
        kind="choose",
        cover="curve",
        rows=("D1", "E11", "F9", "F14", "F15"),
        hint="Waves are digits made smooth. Which digits were slow: the first, or those farther on?",
        truth=frequencies,
        model="translator",
        sentence=GERMAN,
    ),
    Step(
        title="Longer than the table",
        source=ORDER,
        room="positions",
        state={"lab": "two", "kind": "learned", "first": "496"},
        text="Learned positions are a table: one row a place, and no rule for the next. A longer table costs memory and must be trained; waves go on by themselves.",
        question="What happens to a text that is longer than the table?",
        kind="choose",
        cover="headline",
        rows=("D7",),
        hint="Each place takes a row of the table, and nothing says how a row more would look.",
        truth=too_long,
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="Which axis is normalised?",
        source=ORDER,
        room="step",
        state={"at": "norm1", "layer": "3", "head": "1", "query": "10"},
        text="A norm takes away the mean and divides by the spread, so that no layer gets numbers that run away. The question is: the mean of what?",
        question="Over how many numbers does LayerNorm take each mean?",
        kind="shape",
        cover="shape",
        rows=("D2",),
        truth=normalised,
        varied={"query": "7"},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="What each part adds",
        source=TWO,
        room="step",
        state={"at": "add1", "layer": "3", "head": "1", "query": "10"},
        text="The residual stream is a rail: attention and MLP leave it, work, and add what they found. Nothing is overwritten, so gradients have a straight way back.",
        question="The stream and what attention adds to it have known lengths. How long is the sum?",
        kind="drag",
        cover="bar",
        rows=("B4", "F2"),
        hint="The sum is the third side of the triangle. Were the angle 90°, it would be √(a² + b²).",
        truth=adds_up,
        varied={"query": "7"},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="The same sentence, 72 heads",
        source=ORDER,
        room="explore",
        state={"metric": "previous", "layer": "3", "head": "1", "query": "3"},
        text="Heads of one model read the same sentence, each in its own way. One number for each can find a head without a look at any map.",
        question="One of these heads looks one token back, whatever the text says. Which?",
        kind="point",
        cover="heads",
        rows=("D3",),
        truth=previous,
        model="minilm",
        sentence="The cat sat on the mat",
    ),
)
