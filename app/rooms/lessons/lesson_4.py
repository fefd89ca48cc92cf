"""Lesson 4, Two stacks: an encoder and a decoder, what a layer is made of, and where its parameters are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app import languages
from app.rooms.lessons import races, truths, words
from app.rooms.lessons.step import Candidate, Shown, Step, Truth
from app.session.words import EXAMPLE
from core.errors import HeadlightError
from core.model.config import ModelConfig
from core.plan import PRESETS, parameters
from core.plan.parameters import LayerParameters

PAIR, COURSE, SCRATCH = "Encoder and decoder", "The course", "Attention from scratch"
GERMAN = "Ein Hund rennt durch den Schnee."
EARLY = 50  # the step at which two runs are held against each other


async def whose(shown: Shown) -> Truth:
    """From which text a cross-attention has its queries, and from which its keys and values."""
    facts = truths.run(shown)
    of = truths.site(shown, facts, "cross")
    sides = {"source": "encoder", "target": "decoder"}
    wired = sides[of.query], sides[of.key]
    options = {
        f"Q from the {q}, K and V from the {k}": (q, k) == wired
        for q, k in (("encoder", "decoder"), ("decoder", "encoder"), ("decoder", "decoder"))
    }
    n, m = of.n_query, of.n_key
    return truths.choosing(
        "In cross-attention, whose are Q, K and V?",
        f"The {wired[0]} asks, the {wired[1]} answers: {n} rows of queries by {m} keys here. Self-attention has all three from one text.",
        words.FOOTER_RUN.format(what=languages.said(f"cross-attention, {n} × {m}")),
        options,
        wrong=(
            (
                "Another side asks.",
                f"Its map has a row for each query: {m} keys and {n} queries here. Count the two texts.",
            ),
            (
                "The other way round.",
                f"Its map has a row for each query, {n} here, and a column for each key, {m}. Count the two texts.",
            ),
            ("That is self-attention.", "All three of one text: each stack has that as well, one sublayer earlier."),
        ),
    )


async def crossing(shown: Shown) -> Truth:
    """Where a word of the target looks in the source."""
    facts = truths.run(shown)
    of = truths.site(shown, facts, "cross")
    labels, query = facts.tokens(of.query).labels, truths.record_of(shown, of)[3]
    reason = "The end of the text is written there."
    if query + 1 < len(labels):
        reason = f"This row writes the next word, {truths.said(labels[query + 1])}, and looks where that comes from."
    return await truths.row(shown, "Which word of the source will {word} take most from?", reason, "cross")


async def norm_first(shown: Shown) -> Truth:
    """Whether Pre-LN or Post-LN has learnt more at an early step."""
    own, twin = await races.both(shown)
    a, b = own.loss(EARLY), twin.loss(EARLY)
    return truths.choosing(
        f"Which of the two has the lower loss at step {EARLY}?",
        f"{a:.2f} as it is and {b:.2f} with the change. A norm in front of a sublayer leaves the stream a straight way back for gradients; "
        "weights of one do not serve the other.",
        races.footer((own, twin)),
        {f"{own.name}": a < b or _tied(a, b), f"{twin.name}": b < a or _tied(a, b)},
        wrong=[("That one is behind.", f"At step {EARLY} it has a loss of {loss:.2f}.") for loss in (a, b)],
    )


def _tied(a: float, b: float) -> bool:
    return abs(a - b) <= 0.01 * max(a, b)


async def expanded(shown: Shown) -> Truth:
    """The shape of the MLP's hidden layer."""
    facts = truths.run(shown)
    stack, layers, tokens = truths.stack(shown, facts)
    layer = truths.number(shown, "layer", layers)
    walked = await shown.service.walk(facts.key, stack, layer, truths.number(shown, "query", len(tokens)))
    hidden, config = len(walked.values["mlp.act"]), facts.config
    negative = int((walked.values["mlp.act"] <= 0).sum())
    return truths.shaping(
        f"The stream is [{len(tokens)}, {config.d_model}]. What is the shape of the MLP’s hidden layer?",
        f"{config.d_model} → {hidden} → {config.d_model}, each token by itself. {config.activation.upper()} lets {hidden - negative} of {hidden} units of this token through above 0.",
        words.FOOTER_RUN.format(what=languages.said(f"layer {layer}, MLP")),
        (len(tokens), hidden),
        (config.d_model, config.d_head, config.n_heads),
        (
            (
                [len(tokens), config.d_model],
                "As wide as the stream.",
                "That is what the MLP reads and what it adds. In between it widens.",
            ),
            (
                [len(tokens), config.d_head],
                "That is a head’s width.",
                "The MLP has no heads: it reads all features of a token.",
            ),
            (
                [hidden, len(tokens)],
                "Tokens come first.",
                "Each row is a token by itself, and the units are counted along it.",
            ),
            (
                [config.d_model, hidden],
                "That is its matrix.",
                "The matrix leads from one width to the other. The result has a row for each token.",
            ),
        ),
    )


async def mlp_share(shown: Shown) -> Truth:
    """How much of a layer's parameters are in its MLP, and what the lesson's class has in all."""
    of = truths.setup(shown)
    layer = _layer(of.config)
    narrow, broad = (
        100 * made.mlp / made.total for made in (_layer(replace(of.config, d_ff=k * of.config.d_model)) for k in (2, 8))
    )
    base = PRESETS["transformer-base"].config
    lesson = replace(base, vocab_size=32_000, tied=False, head_bias=True, norm_order="pre", final_norm=True)
    total = parameters(lesson, two_vocabularies=True).total
    return truths.dragging(
        "How much of the parameters of a layer is in its MLP?",
        f"{layer.mlp:,} of {layer.total:,}; attention has {layer.attn + layer.cross_attn:,}, the norms {layer.norms:,}. "
        f"With a hidden layer twice as wide as the stream the MLP would have {narrow:.1f} %, with one eight times as wide {broad:.1f} %.",
        words.FOOTER_COUNTED.format(what=of.title),
        100 * layer.mlp / layer.total,
        (0, 100),
        unit="%",
        step=1,
        tolerance=5,
        digits=1,
        mistakes=(
            (
                100 * (layer.attn + layer.cross_attn) / layer.total,
                "That is attention’s share.",
                f"Attention has {layer.attn + layer.cross_attn:,} of the parameters of a layer.",
            ),
            (
                100 * layer.mlp / (layer.mlp + layer.attn / 4),
                "Attention has four matrices.",
                f"Q, K, V and the output have {layer.attn // 4:,} parameters each, about.",
            ),
            (
                50,
                "Half and half.",
                f"Attention has {layer.attn + layer.cross_attn:,} parameters in a layer of {layer.total:,}.",
            ),
        ),
        slip=f"The lesson says ~65 M; this class has {total:,}. About 65 M is right for one table of words for source, target and output.",
    )


def _layer(config: ModelConfig) -> LayerParameters:
    found = parameters(config)
    return (found.encoder if found.encoder.n_layers else found.decoder).layer


async def one_row(shown: Shown) -> Truth:
    """Which row of the last layer's stream is the followed token's."""
    facts = truths.run(shown)
    stack, layers, tokens = truths.stack(shown, facts)
    if len(tokens) < 2:
        raise HeadlightError(words.ONE_TOKEN)
    query = truths.number(shown, "query", len(tokens))
    walked = await shown.service.walk(facts.key, stack, layers - 1, query)
    stream = await shown.service.point(facts.key, f"{stack}.blocks.{layers - 1}.hook_resid_pre")
    apart = np.linalg.norm(stream - walked.values["x"], axis=-1)
    label = tokens.labels[query]
    guess = ""
    if facts.writes and stack == facts.config.stacks[-1][0]:
        word, p = (await shown.service.next_words(facts.key, [query], 1))[0].words[0]
        guess = f" After the last layer it becomes a guess for the next token: {truths.said(word)}, {100 * p:.1f} %."
    return truths.pointing(
        f"{truths.said(label)}, token {tokens.ids[query]}, has {query} tokens before it and {len(tokens) - query - 1} after it. Which row of the last layer is its own, if the first one is row 0?",
        f"A token keeps its row from the embedding to the end; others only add to it.{guess}",
        words.FOOTER_RUN.format(what=languages.said(f"{stack}, layer {layers - 1}, row {query}")),
        truths.Candidates(
            [Candidate(f"row {i}", (i,), float(apart[i] == apart.min())) for i in range(len(tokens))],
            "token",
            "plain",
        ),
        mistakes=[
            ((i,), *_other_row(i, len(tokens), f"Its vector is {apart[i]:.1f} away from that of the token."))
            for i in range(len(tokens))
        ],
    )


def _other_row(at: int, n: int, sentence: str) -> tuple[str, str]:
    if at == n - 1:
        return "That is where the text ends.", sentence
    return ("That is where the text begins." if at == 0 else "That row is another token’s."), sentence


async def trained(shown: Shown) -> Truth:
    """What of a transformer with sinusoids has parameters."""
    of = truths.setup(shown)
    found = parameters(of.config)
    layer = (found.encoder if found.encoder.n_layers else found.decoder).layer
    rest = found.total - found.embedding - found.encoder.total - found.decoder.total - found.unembed - found.head
    counts = {
        "W_q": layer.attn,
        "W_k and W_v": layer.attn,
        "the embedding": found.source.token,
        "W₁ and W₂ of the MLP": layer.mlp,
        "the table of sinusoids" if of.config.position == "sinusoidal" else "the positions": found.source.position,
        "the softmax": rest,
        "X, the vectors of a text": rest,
    }
    return truths.choosing(
        "Which of these does training change? Choose all that apply.",
        f"Numbers to learn: {found.embedding:,} in the embedding, {layer.attn:,} in the four matrices of an attention, {layer.mlp:,} in an MLP. {words.POSITIONS[of.config.position]} The softmax follows from its scores, X from the text.",
        words.FOOTER_COUNTED.format(what=of.title),
        {name: count > 0 for name, count in counts.items()},
        all_of=True,
        wrong=[
            ("One of these has no parameters.", f"Of {name} there are {count:,} numbers to learn.")
            for name, count in counts.items()
        ],
    )


STEPS = (
    Step(
        title="Three kinds of attention",
        source=PAIR,
        room="explore",
        state={"site": "cross", "layer": "1", "head": "5", "query": "1"},
        text="A translator has three kinds: the encoder looks at the source, the decoder at what it wrote so far, and cross-attention joins the two. Each has its own mask.",
        question="In cross-attention, whose are Q, K and V?",
        kind="choose",
        cover="",
        rows=("B1", "E11", "F15"),
        truth=whose,
        model="translator",
        sentence=GERMAN,
    ),
    Step(
        title="From one language to the other",
        source=PAIR,
        room="explore",
        state={"site": "cross", "layer": "1", "head": "5", "query": "2"},
        text="The decoder writes word by word. In the row of a word it must find what comes next, and this head fetches that from the German words.",
        question="Which word of the source will the framed one take most from?",
        kind="point",
        cover="row",
        rows=("B1",),
        truth=crossing,
        varied={"query": "1"},
        model="translator",
        sentence=GERMAN,
    ),
    Step(
        title="Before or after the norm",
        source=PAIR,
        room="train",
        state={"task": "copy", "twin": "postln"},
        text="The first transformer normalised after each addition; today the norm comes before each sublayer. Two small models race, alike but for this. Press Train.",
        question="Which of the two has the lower loss at step 50?",
        kind="choose",
        cover="curve",
        rows=("B2", "D6", "F2"),
        truth=norm_first,
    ),
    Step(
        title="Expand and compress",
        source=PAIR,
        room="step",
        state={"at": "up", "layer": "3", "head": "1", "query": "10"},
        text="Attention moves numbers between tokens; the MLP works on each token alone. It widens the row, applies a nonlinear activation, and narrows it again.",
        question="What is the shape of the MLP’s hidden layer?",
        kind="shape",
        cover="shape",
        rows=("B3",),
        truth=expanded,
        varied={"query": "7"},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="Where the parameters are",
        source=PAIR,
        room="compute",
        state={"plan_model": "transformer-base", "compute_part": "Parameters"},
        text="Attention is what the paper is named after. Most numbers of a layer are elsewhere.",
        question="How much of the parameters of a layer is in its MLP?",
        kind="drag",
        cover="number",
        rows=("B5", "D4", "D5", "F5", "F12", "F14"),
        hint="The MLP has two matrices of d_model × d_ff, attention four of d_model × d_model.",
        truth=mlp_share,
        varied={"plan_model": "gpt2"},
    ),
    Step(
        title="Follow one token",
        source=PAIR,
        room="step",
        state={"at": "x", "layer": "5", "head": "0", "query": "3"},
        text="A token goes in as a number and leaves as a guess. Between the two it is one row, which every layer reads and adds to.",
        question="Which row of the last layer is its own?",
        kind="point",
        cover="row",
        rows=("B6",),
        truth=one_row,
        varied={"query": "4"},
        model="storyteller",
        sentence="Once upon a time there was a little girl",
    ),
    Step(
        title="What is trained?",
        source=COURSE,
        room="compute",
        state={"plan_model": "transformer-base", "compute_part": "Parameters"},
        text="Training changes numbers, step by step, so that the loss falls. Not everything that is a number can be changed.",
        question="Which of these does training change? Choose all that apply.",
        kind="choose",
        cover="",
        rows=("E11", "F15", "F8"),
        truth=trained,
    ),
)
