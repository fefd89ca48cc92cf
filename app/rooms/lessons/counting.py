"""Questions that the planner answers, and two of vectors: the price of widths and lengths, neighbours in a batch, words times √d."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import numpy as np

from app import languages
from app.kit.numbers import scientific
from app.rooms.lessons import small, truths, words
from app.rooms.lessons.step import Shown, Step, Truth
from app.session.words import EXAMPLE
from core.errors import HeadlightError
from core.model.config import ModelConfig
from core.plan import LESSON_CLASS, PRESETS, Operation, Workload, decode, kv_cache, parameters, prefill
from core.plan.parameters import concatenated
from core.run.request import Request

TRACE, COURSE, PAIR = "An encoder’s shapes", "The course", "Encoder and decoder"
ROUNDING = 1e-4  # of the last stream, whose numbers are about 1
LENGTHS = (512, 8_192, 131_072)
BEFORE = (1_024, 8_192)
SIZES = ("Mini", "Base")


async def neighbours(shown: Shown) -> Truth:
    """Whether a sentence's numbers change when another sentence of its batch does."""
    facts = truths.run(shown)
    texts = [*shown.text.splitlines(), *shown.values.get("partner", "").splitlines()]
    texts = [text.strip() for text in texts if text.strip()][:2]
    if len(texts) < 2:
        raise HeadlightError(words.NO_PADDING)
    other, own = texts
    changed = " ".join(reversed(other.split()))
    target = "" if facts.target is not None else None
    point = f"{facts.config.stacks[0][0]}.hook_final"
    found = []
    for texts in ((own, other), (own, changed), (own,)):
        run = await truths.of_request(shown, Request(facts.spec.id, texts, target))
        found.append((await shown.service.point(run.key, point))[: len(facts.source)])
    first, second, alone = found
    real = len(alone)  # the rest of a batch's rows are padding
    moved = float(np.abs(first[:real] - second[:real]).max())
    single = float(np.abs(first[:real] - alone).max())
    return truths.choosing(
        f"Two sentences share a batch, and the words of the other one are reversed. What happens to the vectors of “{own}”?",
        f"The largest difference is {scientific(moved)}; against the sentence alone it is {scientific(single)}, which is rounding. Every product "
        "goes over the features or the tokens of one sentence: sentences of a batch never meet.",
        words.FOOTER_RUN.format(what=languages.said("the last stream of one sentence, beside two others and alone")),
        {
            "They stay as they are, up to rounding": moved < ROUNDING,
            "Those of words that both sentences have change": False,
            "All of them change a little": moved >= ROUNDING,
        },
        wrong=(
            ("They do not stay.", f"The largest difference is {scientific(moved)}."),
            (
                "They do not share words.",
                "A word is a row of its own in each sentence; no product joins it with the same word of the other one.",
            ),
            (
                "Rounding is no change.",
                f"The largest difference is {scientific(moved)}, as much as a sum in another order makes.",
            ),
        ),
    )


async def scaled(shown: Shown) -> Truth:
    """Which is longer at the start: the vector of a word or the row of sinusoids that is added to it."""
    preset = PRESETS.get(shown.values.get("of", ""))
    if preset is None:
        raise HeadlightError(words.NO_SIZES)
    d = preset.config.d_model
    word, position, times = small.vectors(d)
    return truths.choosing(
        f"A fresh word has {d} numbers of variance 1 ÷ {d}, a position {d} sines and cosines. Which vector is longer?",
        f"The word’s has length {word:.2f}, the position’s √({d} ÷ 2) = {position:.1f}: it would drown the word. Times √{d} the word has {times:.1f}. "
        "Why so small? The same table, transposed, makes the scores of the next word (x · Eᵀ), which are then about 1. Other matrices begin as Glorot "
        "has it, with variance 2 ÷ (in + out), so that neither numbers nor gradients grow from layer to layer.",
        words.FOOTER_WORKED.format(what=languages.said(f"64 fresh words of {d} numbers")),
        {
            "The word’s": word > 1.05 * position,
            "The position’s": position > 1.05 * word,
            "They are about equally long": abs(word - position) <= 0.05 * max(word, position),
        },
        wrong=(
            ("Many numbers, but small ones.", f"{d} numbers of variance 1 ÷ {d} have squares that add up to about 1."),
            ("The other way round.", f"Half of its numbers are sines: its squares add up to {d / 2:.0f}."),
            (
                "One of them is much longer.",
                f"The word’s numbers have variance 1 ÷ {d}. The variance of a sine is larger.",
            ),
        ),
    )


async def wider(shown: Shown) -> Truth:
    """By how much a model's parameters grow where it is twice as wide."""
    of = truths.setup(shown)
    layer, table = (_layer(config) for config in (of.config, wide(of.config))), (of.config, wide(of.config))
    one, two = layer
    first, second = (parameters(config).source.token for config in table)
    grown = round(two / one), round(second / first)
    options = {
        "Twice as many, in the layers and in the embedding": (2, 2),
        "Four times in each layer, twice in the embedding": (4, 2),
        "Four times as many, in the layers and in the embedding": (4, 4),
        "Eight times in each layer, twice in the embedding": (8, 2),
    }
    return truths.choosing(
        "d_model doubles, and d_ff and the number of heads with it. How do the parameters grow?",
        f"One layer: {one:,} → {two:,}; its matrices are d × d and d × d_ff. The embedding: {first:,} → {second:,}, one row a word.",
        words.FOOTER_COUNTED.format(
            what=languages.said(f"{of.title}, d_model {of.config.d_model:,} and {2 * of.config.d_model:,}")
        ),
        {text: factors == grown for text, factors in options.items()},
        wrong=(
            ("A matrix has two sides.", "In a layer rows and columns double."),
            ("It is not four and two.", "Count the sides that double."),
            (
                "A table has one side that doubles.",
                f"The embedding has a row for each of {of.config.vocab_size:,} words, and these stay as many.",
            ),
            (
                "Three sides do not double.",
                "A matrix of a layer has two sides, and there are as many layers as before.",
            ),
        ),
    )


def wide(config: ModelConfig) -> ModelConfig:
    """Twice as wide, with as many times the heads as they were."""
    return replace(
        config,
        d_model=2 * config.d_model,
        d_ff=2 * config.d_ff,
        n_heads=2 * config.n_heads,
        n_kv_heads=2 * config.n_kv_heads,
    )


def _layer(config: ModelConfig) -> int:
    found = parameters(config)
    return (found.encoder if found.encoder.n_layers else found.decoder).layer.total


async def put_beside(shown: Shown) -> Truth:
    """How many parameters layers have whose positions come beside words and are not added to them: the number of Positions."""
    of = truths.setup(shown)
    found = concatenated(of.config)
    d, added, beside = found.width, found.added / 1e6, found.beside / 1e6
    return truths.dragging(
        f"Its layers have {added:.1f} million parameters. How many if positions came beside words instead of being added?",
        f"{beside:.1f} million: a word brings {d:,} numbers and its position as many, so that the stream is {2 * d:,} wide, and so is "
        f"every matrix that reads or writes it. Added, they share the same {d:,}, and the layers learn to tell them apart.",
        words.FOOTER_COUNTED.format(
            what=languages.said(f"{of.title}, a stream of {d:,} and of {2 * d:,}; heads and MLP as wide as they are")
        ),
        beside,
        (0, float(f"{10 * added:.1g}")),
        unit="million",
        step=float(f"{added / 20:.1g}"),
        tolerance=0.08 * beside,
        digits=1,
        mistakes=(
            (
                added,
                "As many as before.",
                f"{added:.1f} million is what they have now. Every matrix at the stream would be wider.",
            ),
            (
                4 * added,
                "Everything twice as wide.",
                f"{4 * added:.1f} million would be heads and MLP twice as wide as well. Here only the stream is.",
            ),
            (
                added + 0.1 * added,
                "A little more.",
                "It is not the positions that cost: they follow from a rule. It is what reads the wider stream.",
            ),
        ),
    )


async def class_sizes(_: Shown) -> Truth:
    """How many parameters the smallest model of a textbook class has, whose block is known."""
    config = LESSON_CLASS[SIZES[0]]
    found = parameters(config)
    block, n, table = found.encoder.layer.total, config.n_encoder_layers, found.source.token
    largest = parameters(LESSON_CLASS[SIZES[1]])
    options = {n * block: False, n * block + table: False, found.total: True, found.total + table: False}
    return truths.choosing(
        f"{n} blocks of {block:,} parameters each, {config.vocab_size:,} words, width {config.d_model}. How many parameters in all?",
        f"{n} · {block:,} + {config.vocab_size:,} · {config.d_model} + {found.encoder.final_norm} of the last norm = {found.total:,}; sinusoids have none. "
        f"The same class at width {LESSON_CLASS[SIZES[1]].d_model}: {largest.total:,}.",
        words.FOOTER_COUNTED.format(what=languages.said("a textbook encoder class, attention without biases")),
        {f"{count:,}": is_right for count, is_right in options.items()},
        wrong=(
            ("Blocks alone.", f"{n} · {block:,} is without the table of words."),
            ("Nearly all of it.", "Blocks and words are there. After the last block comes one thing more."),
            ("", ""),
            (
                "The table twice.",
                f"A second table of {table:,} would be one of positions or of the output: sinusoids have none, and an encoder writes no words.",
            ),
        ),
    )


async def product(shown: Shown) -> Truth:
    """FLOPs of a product of matrices, and how many numbers it writes."""
    of = truths.setup(shown)
    n, m, k = of.source_len, of.config.d_model, of.config.d_ff
    op = _first_product(of.config, of.workload)
    each = op.writes // (n * k)  # bytes of a number, if n · k of them are written
    # Where m = k, n · m numbers are as many as n · k: a formula holds with an MLP of another width as well
    other = _first_product(replace(of.config, d_ff=k + m), of.workload)
    flops = {"n · m · k": n * m * k, "2 · n · m · k": 2 * n * m * k}
    written = {"n · m": (n * m, n * m), "n · k": (n * k, n * (k + m))}
    options = {
        f"{a} FLOPs, and {b} numbers are written": (
            count == op.flops and tuple(size * max(each, 1) for size in sizes) == (op.writes, other.writes)
        )
        for a, count in flops.items()
        for b, sizes in written.items()
    }
    return truths.choosing(
        f"[n, m] · [m, k] with n = {n:,}, m = {m:,}, k = {k:,}: how many FLOPs, and how many numbers are written?",
        f"{op.flops:,} FLOPs: each of the n · k results is m products and m additions. Written are {n * k:,} numbers, {op.writes:,} bytes.",
        words.FOOTER_COUNTED.format(
            what=languages.said(f"{of.title}, the MLP’s first product, {n:,} tokens, {of.dtype}")
        ),
        options,
        wrong=[
            ("Products, but no sums.", f"It has {n * m * k:,} products, and they are added up as well.")
            if count != op.flops
            else ("That is what is read.", f"n · m = {n * m:,} numbers are the first matrix.")
            for count in flops.values()
            for _ in written
        ],
        slip="A slide says that n · m numbers are written: that is what is read of the first matrix.",
    )


def _first_product(config: ModelConfig, workload: Workload) -> Operation:
    """The first product of an MLP, for one text."""
    return next(op for op in prefill(config, replace(workload, batch=1)) if op.name.endswith("mlp up"))


async def bottleneck(shown: Shown) -> Truth:
    """At which lengths the maps take more FLOPs than the products with weights."""
    of = truths.setup(shown)
    shares = [_maps_share(of.config, n) for n in LENGTHS]
    most = tuple(share > 0.5 for share in shares)
    short, middle, long = (f"{n:,}" for n in LENGTHS)
    options = {
        "In the products with weights, at all three": (False, False, False),
        f"In these products up to {middle}, in the maps at {long}": (False, False, True),
        f"In these products at {short}, in the maps from {middle} on": (False, True, True),
        "In the maps, at all three": (True, True, True),
    }
    crossing = bisect_right(range(1 << 20), 0.5, key=lambda n: _maps_share(of.config, max(1, n))) - 1
    return truths.choosing(
        f"A text of {short}, {middle} or {long} tokens is read: where are most FLOPs of a layer?",
        f"The maps have {', '.join(f'{100 * share:.1f} %' for share in shares)}. They grow with n², the rest with n; here they are ahead beyond "
        f"{crossing:,} tokens, {crossing / of.config.d_model:.3g} times d_model.",
        words.FOOTER_COUNTED.format(
            what=languages.said(f"one layer of {of.title}, whole maps, and products with its weights")
        ),
        {text: pattern == most for text, pattern in options.items()},
        wrong=[
            (
                "One of the lengths is wrong.",
                f"At {LENGTHS[i]:,} tokens the maps have {100 * shares[i]:.1f} % of the FLOPs.",
            )
            for i in (_first_apart(pattern, most) for pattern in options.values())
        ],
    )


def _first_apart(pattern: tuple[bool, ...], true: tuple[bool, ...]) -> int:
    return next((i for i, (a, b) in enumerate(zip(pattern, true, strict=True)) if a != b), 0)


def _maps_share(config: ModelConfig, n: int) -> float:
    """Which share of the FLOPs of its layers is in the maps of attention, for one text of n tokens."""
    config = replace(config, n_ctx=max(config.n_ctx, n))
    target = n if config.kind == "encoder-decoder" else 0
    found = [op for op in prefill(config, batch=1, source_len=n, target_len=target, attention="eager") if op.stack]
    maps = sum(op.times * op.flops for op in found if op.name.endswith(("scores", "weights × v")))
    return maps / sum(op.times * op.flops for op in found)


async def moved(shown: Shown) -> Truth:
    """Whether writing one token reads more of the cache or of the weights, at two lengths."""
    of = truths.setup(shown)
    if not of.config.n_decoder_layers:
        raise HeadlightError(words.NO_CACHE.format(model=of.title))
    found = [_read(of.config, n) for n in BEFORE]
    more = tuple(cache > weights for cache, weights in found)
    short, long = (f"{n:,}" for n in BEFORE)
    options = {
        "More of the weights at both": (False, False),
        f"More of the weights after {short}, more of the cache after {long}": (False, True),
        "More of the cache at both": (True, True),
    }
    said = "; ".join(
        f"after {n:,}: cache {cache:,} bytes, weights {weights:,}"
        for n, (cache, weights) in zip(BEFORE, found, strict=True)
    )
    maps = 2 * BEFORE[1] ** 2 * of.config.n_heads
    return truths.choosing(
        f"One token is written after {short} or {long} others. Does a layer read more of its cache or of its weights?",
        f"{said[0].upper()}{said[1:]}. The weights are {found[0][1] / (2 * of.config.d_model**2):.1f} · d² numbers of two bytes, whatever n is; a cache has {2 * of.config.n_kv_heads * of.config.d_head:,} for each token that it keeps. To read {long} tokens at once, the "
        f"n² of every map are written and read as well: {maps:,} bytes, unless the kernel is fused.",
        words.FOOTER_COUNTED.format(what=languages.said(f"one layer of {of.title}, one token, float16")),
        {text: pattern == more for text, pattern in options.items()},
        wrong=[
            (
                "One of the lengths is wrong.",
                f"After {BEFORE[i]:,} a layer reads {found[i][0]:,} bytes of cache and {found[i][1]:,} of weights.",
            )
            for i in (_first_apart(pattern, more) for pattern in options.values())
        ],
    )


def _read(config: ModelConfig, n: int) -> tuple[int, int]:
    """Bytes of cache, for n tokens, and of weights that a layer of the decoder reads for one token, in float16."""
    config = replace(config, n_ctx=max(config.n_ctx, n))
    memory = 1 if config.kind == "encoder-decoder" else 0  # the shortest text that it can translate
    found: list[Operation] = [
        op for op in decode(config, batch=1, cached=n, memory_len=memory, dtype="float16") if op.stack and op.times > 1
    ]
    cache = kv_cache(config, batch=1, n=n, memory_len=memory, dtype="float16").total // config.n_decoder_layers
    return cache, sum(op.weights for op in found)


BATCH = (
    Step(
        title="Neighbours in a batch",
        source=TRACE,
        room="masks",
        state={"lab": "padding", "partner": "The dog ran.", "sentence": "1", "pad": "on"},
        text="Sentences are computed side by side, in one tensor. That saves time, and it should change nothing else: try it with another neighbour.",
        question="Two sentences share a batch, and the other one changes. What happens to the vectors of this one?",
        kind="choose",
        cover="vectors",
        rows=("F22",),
        hint="Look at the maps: is a row of one sentence ever multiplied with a key of the other?",
        truth=neighbours,
        varied={"partner": "A cat slept."},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="Words times √d",
        source=PAIR,
        room="shapes",
        state={"of": "transformer-base", "batch": "1", "length": "100"},
        text="The first transformer multiplies its words by √d before it adds positions. Its table begins with small numbers, and is used once more at the end.",
        question="A fresh word and a row of sinusoids: which vector is longer?",
        kind="choose",
        cover="",
        rows=("F8",),
        truth=scaled,
    ),
)
PARAMETERS = {"plan_model": "transformer-base", "compute_part": "Parameters"}
WIDTHS = (
    Step(
        title="Twice as wide",
        source=PAIR,
        room="compute",
        state=PARAMETERS,
        text="A wider model has longer vectors for its words, and larger matrices between them. The two do not grow alike.",
        question="d_model doubles, and d_ff and the number of heads with it. How do the parameters grow?",
        kind="choose",
        cover="",
        rows=("F19",),
        truth=wider,
        varied={"plan_model": "transformer-big"},
    ),
    Step(
        title="Added, not beside",
        source=PAIR,
        room="compute",
        state=PARAMETERS,
        text="A position is added to its word, number by number. It could come beside it as well, so that the two never mix. That has a price.",
        question="How many parameters would it have if positions came beside words instead of being added?",
        kind="drag",
        cover="",
        rows=("F21",),
        truth=put_beside,
    ),
    Step(
        title="A class in five sizes",
        source=TRACE,
        room="compute",
        state={"plan_model": "lesson-encoder", "compute_part": "Parameters"},
        text="Once the parameters of one block are known, a whole model is soon counted: as many blocks, a table of words, and what is easily forgotten.",
        question="Blocks, words and width are known. How many parameters in all?",
        kind="choose",
        cover="",
        rows=("F12",),
        truth=class_sizes,
    ),
)
OPERATIONS = {"plan_model": "gpt2", "plan_dtype": "float16", "compute_part": "Operations"}
COSTS = (
    Step(
        title="One product of matrices",
        source=COURSE,
        room="compute",
        state=OPERATIONS,
        text="Nearly all work of a transformer is products of matrices. Two numbers say what one costs: what is computed, and what is written down.",
        question="[n, m] · [m, k]: how many FLOPs, and how many numbers are written?",
        kind="choose",
        cover="",
        rows=("F10",),
        truth=product,
        varied={"plan_model": "gpt2-large"},
    ),
    Step(
        title="Where the work is",
        source=COURSE,
        room="compute",
        state=OPERATIONS,
        text="Products with weights grow with the text, maps with its square. Short texts and long ones do not wait for the same thing.",
        question="At 512, 8,192 and 131,072 tokens: where are most FLOPs of a layer?",
        kind="choose",
        cover="",
        rows=("F19",),
        truth=bottleneck,
        varied={"plan_model": "gpt2-large"},
    ),
    Step(
        title="Bytes to be read",
        source=COURSE,
        room="compute",
        state=OPERATIONS,
        text="For one more word a card reads every weight and every key and value once. Arithmetic is little: what counts is how many bytes come through.",
        question="One token is written: does a layer read more of its cache or of its weights?",
        kind="choose",
        cover="",
        rows=("F20",),
        truth=moved,
        varied={"plan_model": "gpt2-large"},
    ),
)
