"""Lesson 5, Writing, training, cost: the next word, how a model comes to know it, and what that takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

import numpy as np

from app import languages
from app.kit.numbers import scientific
from app.rooms.lessons import races, small, truths, words
from app.rooms.lessons.step import Candidate, Shown, Step, Truth
from app.sizes import words as size_words
from core.errors import HeadlightError
from core.model.config import ModelConfig
from core.plan import DEVICES, decode, kv_cache, prefill, total_flops, with_layers
from core.plan.operations import share_of_peak
from core.service import Facts, PreparedText, Sampling

COURSE, SCRATCH = "The course", "Attention from scratch"
STORY = "Once upon a time there was a"
READ = 200  # of the likeliest words; some of them can be pointed at
APART = 4  # times as likely as the next of them: no two that can be pointed at are near
LISTED = 5
CARD = "A100 80 GB"
BACK, WIDE = 20, 64  # steps that a gradient goes back, in an RNN of this width


async def next_word(shown: Shown) -> Truth:
    """The likeliest next word."""
    facts = truths.writer(shown)
    at = len(facts.source if facts.target is None else facts.target) - 1
    k = min(READ, facts.config.vocab_size)
    found = await shown.service.predictions(facts.key, k=k)
    named = await shown.service.next_words(facts.key, [found.positions[0]], k)
    listed = _apart([Candidate(label, (id,), p) for id, (label, p) in zip(found.ids[0], named[0].words, strict=True)])
    return truths.pointing(
        f"After “{_ending(facts)}”: which of these {len(listed)} is likeliest?",
        "The last row of the stream is held against every word of the vocabulary; the softmax makes shares of one whole of it.",
        words.FOOTER_RUN.format(what=languages.said(f"the word after position {at}, of {facts.config.vocab_size:,}")),
        truths.Candidates(listed, "token id", "ranked", share=True),
    )


def _apart(words: Sequence[Candidate]) -> list[Candidate]:
    """The likeliest word, and after each the first that is so much less likely that the two are no guess among equals."""
    found = [words[0]]
    for word in words:
        if APART * word.value <= found[-1].value and word.label.strip() and len(found) < LISTED:
            found.append(word)
    return found if len(found) > 1 else [words[0], words[-1]]


def _ending(facts: Facts) -> str:
    tokens = facts.source if facts.target is None else facts.target
    text = (tokens.text or "").strip() or " ".join(tokens.labels)
    return text if len(text) <= 40 else f"… {text[-38:]}"


async def revised(shown: Shown) -> Truth:
    """How likely two words are together: the likeliest next one, and the likeliest after it."""
    facts = truths.writer(shown)
    first = (await shown.service.predictions(facts.key, k=1)).ids[0][0]
    before = await _begun(shown, facts, ())
    after = await _begun(shown, facts, (first,))
    if after.opening.readings[-1].position != before.opening.readings[-1].position + 1:
        raise HeadlightError(words.TEXT_ENDS.format(model=facts.spec.title))
    chances = [begun.opening.readings[-1].probs()[0] for begun in (before, after)]
    labels = [
        (before.labels | after.labels).get(int(begun.opening.readings[-1].ids[0]), "") for begun in (before, after)
    ]
    both = 100 * float(chances[0] * chances[1])
    return truths.dragging(
        f"It gives “{labels[0]}” {100 * chances[0]:.1f} %. Once that is written, its likeliest next word is “{labels[1]}”: {100 * chances[1]:.1f} %. How likely are the two together?",
        f"The second is a share of the first: {100 * chances[0]:.1f} % of {100 * chances[1]:.1f} %. Every word that is written is read again, and all probabilities are computed again, so those of a text are multiplied.",
        words.FOOTER_RUN.format(what=languages.said(f"the text with “{labels[0]}” after it")),
        both,
        (0, float(f"{200 * min(chances):.2g}")),
        unit="%",
        step=float(f"{min(chances):.1g}"),
        tolerance=max(0.1 * both, 0.01),
        digits=2,
        mistakes=(
            (
                100 * float(chances[0]),
                "That is the first alone.",
                f"{100 * chances[0]:.1f} % is what “{labels[0]}” has. The second word has a share of it.",
            ),
            (
                100 * float(chances[1]),
                "That is the second alone.",
                f"“{labels[1]}” has {100 * chances[1]:.1f} % once “{labels[0]}” is written. That has to come first.",
            ),
            (
                100 * float(chances[0] + chances[1]),
                "They were added.",
                f"{100 * chances[0]:.1f} % + {100 * chances[1]:.1f} % is {100 * (chances[0] + chances[1]):.1f} %. Two words together are rarer than either of them.",
            ),
        ),
    )


async def _begun(shown: Shown, facts: Facts, path: tuple[int, ...]) -> PreparedText:
    async with aclosing(shown.service.write(facts.key, path, 0, Sampling())) as coming:
        found = await anext(coming)
    assert isinstance(found, PreparedText)
    return found


async def learnt(shown: Shown) -> Truth:
    """The first step that is seen with 90 % of unseen symbols right."""
    run = await races.race(shown, races.spec_of(shown))
    frames = [(frame.step, races.right(frame)) for frame in run.frames]
    at = next((i for i, (_, right) in enumerate(frames) if right >= 0.9), None)
    if at is None:
        raise HeadlightError(
            words.NO_STEP.format(run=run.name, step=run.spec.steps)
            if len(frames) < 2 or frames[-1][0] < run.spec.steps
            else words.NEVER_RIGHT.format(run=run.name)
        )
    before = frames[max(0, at - 1)]
    half = next(frame for frame in frames if frame[1] >= 0.5)
    return truths.dragging(
        "At which step has it 90 % of unseen symbols right?",
        f"At step {before[0]} it has {_per_cent(before[1])} %, at step {frames[at][0]} {_per_cent(frames[at][1])} %. Training shifts each text by one: every place is a question whose answer is the next symbol.",
        races.footer((run,)),
        frames[at][0],
        (0, run.spec.steps),
        step=5,
        tolerance=max(30, frames[at][0] - before[0]),
        mistakes=(
            (half[0], "That is about half.", f"At step {half[0]} it has {100 * half[1]:.1f} % right."),
            (run.spec.steps, "That is the end.", f"At step {frames[-1][0]} it has {100 * frames[-1][1]:.1f} % right."),
        ),
    )


def _per_cent(share: float) -> str:
    """With one decimal, and never rounded up: what is not yet 90 % is not called that."""
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f}"


async def unmasked(shown: Shown) -> Truth:
    """How many unseen words a run without its mask writes by itself; and so what the mask is for."""
    own, twin = await races.both(shown)
    a, b, of = own.last.whole, twin.last.whole, races.UNSEEN
    few = a // 10
    return truths.choosing(
        f"{twin.name} sees the answer while it learns. How many of {of} unseen words will it write right, and what is the mask for?",
        f"Loss {twin.loss(twin.spec.steps):.4f} against {own.loss(own.spec.steps):.4f}, and {b} of {of} words on its own against {a}. Without the mask the next symbol can be read off while it learns; when it writes, that symbol is not there yet.",
        races.footer((own, twin)),
        {
            f"At least {a}, as with the mask: the mask saves work": b >= a,
            f"Fewer than {a}, more than {few}: the mask steadies the learning": few < b < a,
            f"At most {few}: the mask hides what is to be written": b <= min(few, a - 1),
        },
        wrong=(
            (
                "It did not learn the same.",
                f"Its loss is {twin.loss(twin.spec.steps):.4f} with the answer to read. On its own there is no answer to read.",
            ),
            (
                "The mask decides what can be read.",
                f"The losses are {twin.loss(twin.spec.steps):.4f} without it and {own.loss(own.spec.steps):.4f} with it. Think of what is there to read when it writes.",
            ),
            ("It has learnt more than to copy.", "On its own it writes more words right than that."),
        ),
    )


async def heads_race(shown: Shown) -> Truth:
    """Which of a run and its twin of other heads has the lower loss at the end."""
    own, twin = await races.both(shown)
    a, b = own.loss(own.last.step), twin.loss(twin.last.step)
    near = abs(a - b) <= 0.01 * max(a, b)
    return truths.choosing(
        "As many parameters, other heads: which has the lower loss at the end?",
        f"{a:.4f} as it is, {b:.4f} with the change; unseen words right on its own: {own.last.whole} and {twin.last.whole} of {races.UNSEEN}. One seed is one draw: try another.",
        races.footer((own, twin)),
        {own.name: a < b or near, twin.name: b < a or near},
        wrong=[
            (
                "That one is behind.",
                f"It ends with a loss of {loss:.4f} and {one.last.whole} of {races.UNSEEN} words right.",
            )
            for loss, one in ((a, own), (b, twin))
        ],
    )


async def again(shown: Shown) -> Truth:
    """The tokens whose keys and values are computed again without a cache."""
    facts = truths.writer(shown)
    begun = await _begun(shown, facts, _path(shown, facts))
    labels = [*begun.prompt_labels, *(begun.labels.get(id, str(id)) for id in _path(shown, facts))]
    if len(labels) < 2:
        raise HeadlightError(words.ONE_TOKEN)
    return truths.marking(
        f"{truths.said(labels[-1])} is read. Without a cache, whose keys and values are computed a second time?",
        f"All {len(labels) - 1} before it: they were known already, and no later token changes them. A cache keeps {begun.per_token.per_token:,} bytes for each.",
        words.FOOTER_RUN.format(what=languages.said(f"{len(labels)} tokens so far")),
        ((label, i, i + 1 < len(labels)) for i, label in enumerate(labels)),
        mistakes=[
            ((), "The other way round.", "That token is read now, for the first time."),
            (
                (len(labels) - 1,),
                "That one is new.",
                f"{truths.said(labels[-1])} is read now: its key and value are computed for the first time.",
            ),
        ],
    )


def _path(shown: Shown, facts: Facts) -> tuple[int, ...]:
    """The tokens that were written in the room."""
    parts = shown.values.get("path", "").split(".")
    ids = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 9]
    return tuple(id for id in ids if id < facts.config.vocab_size)


async def cache_formula(shown: Shown) -> Truth:
    """How many numbers the cache of a text has."""
    of = truths.setup(shown)
    config, n = of.config, of.target_len or of.source_len
    if not config.n_decoder_layers:
        raise HeadlightError(words.NO_CACHE.format(model=of.title))
    n = min(n, config.window or n)  # of more tokens a window keeps no more
    found = _kept(config, n)
    d, layers = config.n_kv_heads * config.d_head, config.n_decoder_layers
    options: dict[str, Formula] = {
        "n · d · L": lambda n, layers: [n * d * layers],
        "2 · n · d · L": lambda n, layers: [2 * n * d * layers],
        "2 · n² · L": lambda n, layers: [2 * n * n * layers],
        "2 · n · d": lambda n, layers: [2 * n * d],
    }
    half = max(1, n // 2)  # a formula holds at every size, and not only where two of them happen to be equal
    tried = {
        size: _kept(with_layers(config, size[1]), size[0]) for size in ((half, layers), (half + 1, 1), (half + 2, 2))
    }
    return truths.choosing(
        f"{of.title} has L = {layers} layers and keys of d = {d:,}. How many numbers does its cache hold for n tokens?",
        f"A key and a value, in every layer, for every token: {found:,} numbers at {n:,} tokens, {2 * found:,} bytes in float16. One text; a batch has one each.",
        words.FOOTER_COUNTED.format(what=languages.said(f"{of.title}, {n:,} tokens")),
        {name: all(formula(*size) == [count] for size, count in tried.items()) for name, formula in options.items()},
        wrong=(
            (
                "Keys, but no values.",
                f"That is {n * d * layers:,} numbers at {n:,} tokens: one of the two that a head reads.",
            ),
            ("Twice is too much.", f"That is {2 * n * d * layers:,} numbers at {n:,} tokens."),
            (
                "Those are maps.",
                f"That is {2 * n * n * layers:,} numbers at {n:,} tokens. Maps are made again for every word, and not kept.",
            ),
            (
                "One layer alone.",
                f"That is {2 * n * d:,} numbers at {n:,} tokens. Each of {layers} layers has keys of its own.",
            ),
        ),
    )


def _kept(config: ModelConfig, n: int) -> int:
    """The numbers that a cache has of so many tokens."""
    return kv_cache(config, n=n, dtype="float32").self_attention // 4


async def roof(shown: Shown) -> Truth:
    """What one token costs in one product, and what a card waits for."""
    of = truths.setup(shown)
    config = of.config
    if not config.n_decoder_layers:
        raise HeadlightError(words.NO_CACHE.format(model=of.title))
    device = next((card for card in DEVICES if card.name == shown.values.get("compute_card")), None)
    device = device or next(card for card in DEVICES if card.name == CARD)
    cached, memory = (of.target_len, of.source_len) if of.target_len else (of.source_len, 0)
    one, many = (decode(config, batch=n, cached=cached, memory_len=memory, dtype="float16") for n in (1, 32))
    product = next(op for op in one if op.name.endswith("mlp up"))
    m, k = config.d_model, config.d_ff
    n_bytes = product.bytes - (2 * k if config.mlp_bias else 0)  # without the bias, which is added later
    intensity = product.flops / n_bytes
    limit = "memory" if intensity < device.ridge else "arithmetic"
    alone = [min(1, next(op for op in ops if op.name == product.name).intensity / device.ridge) for ops in (one, many)]
    whole = [share_of_peak(ops, device) for ops in (one, many)]
    options = {
        f"{text}, and it waits for {what}": (count == product.flops, what == limit)
        for text, count in (("m · k FLOPs", m * k), ("2 · m · k FLOPs", 2 * m * k))
        for what in ("memory", "arithmetic")
    }
    return truths.choosing(
        f"One new token: a product [1, {m:,}] · [{m:,}, {k:,}] on the {device.name}. What does it take, and what does it wait for?",
        f"{product.flops:,} FLOPs, 2 · n · m · k with n = 1, for {n_bytes:,} bytes: {intensity:.2f} a byte, where the roof begins at {device.ridge:.0f}. "
        f"{size_words.SHARE_OF_PEAK}, this product alone: {100 * alone[0]:.3g} % at a batch of 1, {100 * alone[1]:.3g} % at 32; "
        f"all of one token, with its cache: {100 * whole[0]:.3g} % and {100 * whole[1]:.3g} %.",
        words.FOOTER_COUNTED.format(what=languages.said(f"{of.title}, one token, float16")),
        {text: all(so) for text, so in options.items()},
        wrong=[
            ("Products, but no sums.", f"It has {m * k:,} products, and they are added up as well.")
            if not so[0]
            else (
                "It waits for something else.",
                f"It has {intensity:.2f} FLOPs for each byte. The roof of the {device.name} begins at {device.ridge:.0f}.",
            )
            for so in options.values()
        ],
    )


Formula = Callable[[int, int], list[int]]


async def three_terms(shown: Shown) -> Truth:
    """How the maps of an encoder-decoder grow with what is read and what is written."""
    of = truths.setup(shown)
    if of.config.kind != "encoder-decoder":
        raise HeadlightError(words.NO_PAIR.format(model=of.title))
    terms: dict[str, Formula] = {
        "O(n) + O(m)": lambda n, m: [n, m],
        "O(n · m)": lambda n, m: [n * m],
        "O(n²) + O(m²)": lambda n, m: [n * n, m * m],
        "O(n²) + O(m²) + O(n · m)": lambda n, m: [n * n, m * m, n * m],
    }
    lengths = [(50, 50), (100, 50), (50, 100), (100, 200), (300, 100)]
    counted = np.array([_maps(of, n, m) for n, m in lengths], dtype=float)
    options = {name: _fits([formula(n, m) for n, m in lengths], counted) for name, formula in terms.items()}
    n, m, d = of.source_len, of.target_len, of.config.d_model
    return truths.choosing(
        "It reads n tokens and writes m. How does the cost of its attention maps grow?",
        f"Self-attention of either side and cross-attention between: {_maps(of, n, m):,} FLOPs for {n} and {m}. "
        f"An RNN of width {d} would take n steps, one after the other, of 4 · d² FLOPs: {4 * n * d * d:,}. All that it knows of "
        f"the text is one vector, and {BACK} steps back {scientific(small.left_of_gradient(WIDE, BACK))} of a gradient’s length is left "
        f"(width {WIDE}, fresh weights). Attention goes back in one step.",
        words.FOOTER_COUNTED.format(what=languages.said(f"{of.title}, five pairs of lengths")),
        options,
        wrong=(
            ("That is an RNN.", "It reads token by token. An attention map has a number for each pair of tokens."),
            ("Cross-attention alone.", f"That is {n} × {m} pairs. Both texts look at themselves as well."),
            ("Self-attention alone.", f"That is {n}² and {m}² pairs. The written text looks at the other one as well."),
            ("Too many terms.", f"{_maps(of, n, m):,} FLOPs for {n} and {m} are fewer."),
        ),
    )


def _maps(of: truths.Setup, n: int, m: int) -> int:
    """FLOPs of scores and sums."""
    operations = prefill(of.config, replace(of.workload, batch=1, source_len=n, target_len=m, attention="eager"))
    return total_flops(tuple(op for op in operations if op.name.endswith(("scores", "weights × v"))))


def _fits(rows: list[list[int]], counted: np.ndarray) -> bool:
    """Whether these terms, each with a factor, give what was counted."""
    matrix = np.array(rows, dtype=float)
    factors = np.linalg.lstsq(matrix, counted, rcond=None)[0]
    return bool(np.allclose(matrix @ factors, counted, rtol=1e-9))


STEPS = (
    Step(
        title="The next word",
        source=COURSE,
        room="generate",
        state={"n": "0", "how": "greedy"},
        text="A decoder has read a beginning. For every word that it knows it says how likely that one comes next; then one is chosen, and read in its turn.",
        question="Which word is likeliest?",
        kind="point",
        cover="column",
        rows=("E4",),
        truth=next_word,
        varied={"n": "0"},
        model="storyteller",
        sentence=STORY,
    ),
    Step(
        title="Revised word by word",
        source=COURSE,
        room="generate",
        state={"n": "0", "how": "greedy", "t": "1"},
        text="Temperature bends these chances, top-k and top-p cut them off. The chosen word is read, and everything is computed again for the word after it.",
        question="It gives a word and the one after it a probability each. How likely are the two together?",
        kind="drag",
        cover="column",
        rows=("E4",),
        truth=revised,
        varied={"n": "0"},
        model="storyteller",
        sentence=STORY,
    ),
    Step(
        title="Watch it learn",
        source=SCRATCH,
        room="train",
        state={"task": "copy", "twin": "none"},
        text="A model of two layers begins with random weights and is to copy words. Press Train: its heads form while you say how long that takes. Then look at them, step by step.",
        question="At which step has it 90 % of unseen symbols right?",
        kind="drag",
        cover="curve",
        rows=("C5",),
        truth=learnt,
    ),
    Step(
        title="Take the mask away",
        source=COURSE,
        room="train",
        state={"task": "copy", "twin": "nomask"},
        text="The same race, but the twin learns without a causal mask: every token sees the whole text, the answer too. Its loss falls faster. Press Train.",
        question="How many unseen words will it write right, and what is the mask for?",
        kind="choose",
        cover="number",
        rows=("E5", "E11", "C6", "F15"),
        truth=unmasked,
    ),
    Step(
        title="One head or many",
        source=SCRATCH,
        room="train",
        state={"task": "copy", "twin": "heads1"},
        text="Four heads of 16 against one of 64: the same parameters and the same cost. What differs is how many places a token can look at.",
        question="Which has the lower loss at the end?",
        kind="choose",
        cover="curve",
        rows=("C6", "F5"),
        truth=heads_race,
    ),
    Step(
        title="What is computed twice?",
        source=COURSE,
        room="generate",
        state={"n": "0", "how": "greedy", "cache": "without", "page": "cache"},
        text="To write one more word, the model must know the keys and values of all before it. A cache keeps them; here there is none.",
        question="Without a cache, whose keys and values are computed a second time?",
        kind="point",
        cover="bar",
        rows=("E6",),
        truth=again,
        varied={"n": "0"},
        model="storyteller",
        sentence=STORY,
    ),
    Step(
        title="How big is the cache?",
        source=COURSE,
        room="memory",
        state={"plan_model": "gpt2", "memory_part": "KV cache"},
        text="Nothing that is kept needs to be computed again, but it must lie somewhere. Long texts fill a card with their cache.",
        question="How many numbers does a cache hold for n tokens?",
        kind="choose",
        cover="headline",
        rows=("E6", "E11", "F15"),
        hint="Count the numbers that one token leaves in one layer, then tokens and layers.",
        truth=cache_formula,
        varied={"plan_model": "gpt2-large"},
    ),
    Step(
        title="Compute or memory?",
        source=COURSE,
        room="compute",
        state={"plan_model": "gpt2", "plan_dtype": "float16", "compute_part": "Roofline", "compute_card": CARD},
        text="A card multiplies faster than it reads. Work with many FLOPs for each byte runs under the flat roof, the rest on the slope.",
        question="One new token: what does a product take, and what does it wait for?",
        kind="choose",
        cover="curve",
        rows=("E7", "E8", "E11", "F10", "F11"),
        hint="A number of the weights is read for one product and one addition. Where below the roof is that?",
        truth=roof,
    ),
    Step(
        title="Long in, short out",
        source=COURSE,
        room="compute",
        state={"plan_model": "transformer-base", "compute_part": "Encoder–decoder"},
        text="A translator reads n tokens and writes m. Three maps are computed: encoder by itself, decoder by itself, and one against the other.",
        question="How does the cost of its attention maps grow?",
        kind="choose",
        cover="bar",
        rows=("E9", "E10", "E11", "F15", "F16"),
        hint="Count the cells of each of the three maps: who looks at whom?",
        truth=three_terms,
    ),
)
