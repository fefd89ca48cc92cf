"""Lesson 3, Shapes and memory: what every tensor of an encoder is, and what it takes."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace

from app import languages
from app.kit.numbers import MIB, scientific
from app.rooms.lessons import truths, words
from app.rooms.lessons.step import Shown, Step, Truth
from app.session.words import EXAMPLE
from app.sizes.setup import layers
from core.errors import ConfigError, HeadlightError
from core.plan import PRESETS, longest_fit, trace_shapes, with_layers
from core.plan.training import kept_activations, lesson_terms

TRACE = "An encoder’s shapes"
TERMS = {
    "input": "the input",
    "qkv": "q, k and v",
    "scores": "the weights",
    "attn_out": "the heads’ outputs",
    "ffn_hidden": "the MLP’s hidden layer",
}
LENGTHS = (50, 512)  # tokens, as the lesson asks
GIB = 1 << 30
RIGHT = 0.03  # of a number of bytes: so far off is still right
SIZES = {"plan_model": "lesson-encoder", "plan_batch": "32", "plan_source": "50", "plan_attention": "eager"}


async def split_run(shown: Shown) -> Truth:
    """The shape of q after the split into heads, as the run has it."""
    facts = truths.run(shown)
    step = next(step for step in facts.steps if step.name.endswith("attn.hook_q"))
    batch, n, heads, d_head = step.shape  # as a hook sees it
    width = facts.config.d_model
    return truths.shaping(
        f"q is [{batch}, {n}, {heads * d_head}]. What is its shape once split into {heads} heads?",
        f"{heads * d_head} features are {heads} heads of {d_head}; the head goes in front, so that each has a matrix of its own.",
        words.FOOTER_RUN.format(what=step.name.removesuffix(".hook_q")),  # its record has q by head
        (batch, heads, n, d_head),
        (width, facts.config.d_ff),
        _split_mistakes(batch, heads, n, d_head),
    )


def _split_mistakes(batch: int, heads: int, n: int, d_head: int) -> tuple[truths.Known, ...]:
    """Shapes that are taken for that of q after the split."""
    return (
        (
            [batch, n, heads, d_head],
            "Cut, and not yet transposed.",
            "So it is after the view. The head is not in front yet.",
        ),
        (
            [batch, heads, n, heads * d_head],
            "Every head as wide as all.",
            f"{heads} heads share the {heads * d_head:,} features; none has all of them.",
        ),
        ([batch, heads, d_head, n], "That is k, transposed.", "Only k is put on its side, for the product with q."),
        ([batch, heads, n, n], "Those are the scores.", "They have tokens by tokens. q has its features still."),
        ([heads, batch, n, d_head], "The batch comes first.", "Sizes of the batch stay in front of all others."),
    )


async def q_of_many(shown: Shown) -> Truth:
    """The shape of q after the split, traced for sizes that were never run."""
    return _shape(
        shown,
        "hook_q",
        "{batch} texts of {n} tokens, width {width}, {heads} heads. What is the shape of q after the split?",
        "Every text by itself, every head by itself: then tokens by features.",
    )


async def scores_of(shown: Shown) -> Truth:
    """The shape of the scores, traced."""
    return _shape(
        shown,
        "hook_scores",
        "{batch} text of {n} tokens, width {width}, {heads} heads. What shape are the scores?",
        "A score for every head, query and key of every text: the only tensor with tokens times tokens.",
    )


def _shape(shown: Shown, point: str, question: str, reason: str) -> Truth:
    preset = PRESETS.get(shown.values.get("of", ""))
    if preset is None:
        raise HeadlightError(words.NO_SIZES)
    config, batch, n = preset.config, truths.whole(shown, "batch", 1), truths.whole(shown, "length", 100)
    name, _ = config.stacks[0]
    target = 1 if config.kind == "encoder-decoder" else 0
    config = replace(config, n_ctx=max(config.n_ctx, n)) if config.position == "sinusoidal" else config
    run = trace_shapes(with_layers(config, 1), batch=batch, source_len=n, target_len=target)
    shape = next(step.shape for step in run.steps if step.name == f"{name}.blocks.0.attn.{point}")
    split = (batch, config.n_heads, n, config.d_head)
    mistakes = _split_mistakes(*split)
    if point == "hook_q":  # a hook sees the token before the head
        shape = (shape[0], shape[2], shape[1], shape[3])
    else:
        mistakes = (
            (split, "That is q.", "Features are what q and k are multiplied over, and so they are gone."),
            (
                [batch, config.n_heads, config.d_head, n],
                "That is k, transposed.",
                "Features are what q and k are multiplied over, and so they are gone.",
            ),
            (
                [batch, config.n_heads, config.d_head, config.d_head],
                "Features by features.",
                "That would be kᵀ · q, the other way round: a score is of two tokens.",
            ),
            (
                [batch, n, config.n_heads, n],
                "The head comes first.",
                "Every head has a map of its own: the number of heads comes in front of it.",
            ),
            (
                [config.n_heads, batch, n, n],
                "The batch comes first.",
                "Sizes of the batch stay in front of all others.",
            ),
        )
    sizes = {"batch": f"{batch:,}", "n": f"{n:,}", "width": f"{config.d_model:,}", "heads": config.n_heads}
    return truths.shaping(
        languages.said(question).format(**sizes),
        reason,
        words.FOOTER_COUNTED.format(
            what=languages.said(f"{preset.title}, {batch:,} × {n:,} tokens, traced without allocating it")
        ),
        shape,
        (config.d_model, config.d_head),
        mistakes,
    )


async def padded_keys(shown: Shown) -> Truth:
    """The keys of a batch that are padding."""
    facts = truths.run(shown)
    texts = [*shown.text.splitlines(), *shown.values.get("partner", "").splitlines()]
    texts = [text.strip() for text in texts if text.strip()][:4]
    if len(texts) < 2:
        raise HeadlightError(words.NO_PADDING)
    at = truths.number(shown, "sentence", len(texts), default=0)
    side = "left" if shown.values.get("side") == "left" else "right"
    found = await shown.service.padded(facts.key, texts, side, at)
    labels, padding = found.labels[at], found.padding[at]
    if not any(padding):
        raise HeadlightError(words.NO_PADDING)
    return truths.marking(
        f"{len(texts)} sentences share a batch, so the shorter one is filled up. Which of its keys may no token look at?",
        f"Hidden from every row, padding changes nothing: no weight moves by more than {scientific(found.weights[0])}. "
        "Here True may look; in PyTorch’s key_padding_mask True is hidden.",
        words.FOOTER_RUN.format(
            what=languages.said(f"{len(texts)} sentences in one batch, {sum(padding)} keys of padding")
        ),
        ((label, i, padding[i]) for i, label in enumerate(labels)),
        mistakes=[
            ((), "The other way round.", "These are the keys that are real. The mask is to hide what was filled up."),
            *(
                (
                    (i,),
                    "That is one of its own.",
                    f"{truths.said(label)} is of the sentence itself, and every token may look at it.",
                )
                for i, label in enumerate(labels)
            ),
        ],
    )


async def five_terms(shown: Shown) -> Truth:
    """The largest of the five terms by which the lesson counts a layer."""
    of = truths.setup(shown)
    terms = lesson_terms(of.config, of.workload)
    total, n_layers = terms["total"] / MIB, layers(of.config)
    largest = max(TERMS, key=terms.__getitem__)
    others = ", ".join(f"{TERMS[name]} {terms[name] / MIB:,.3f}" for name in TERMS if name != largest)
    return _mib(
        f"One layer keeps five things, {total:,.3f} MiB together. The largest is {TERMS[largest]}: how much is it?",
        f"The others: {others} MiB. All {n_layers} layers: {total * n_layers:,.1f} MiB.",
        truths.sizes_in_words(of),
        terms[largest] / MIB,
        total,
        (
            (
                terms["input"] / MIB,
                "As wide as the stream.",
                f"{terms['input'] / MIB:,.3f} MiB is the input. The MLP’s hidden layer is {of.config.d_ff / of.config.d_model:.0f} times as wide.",
            )
            if largest == "ffn_hidden"
            else (terms["input"] / MIB, "That is the input.", "It is one number for each feature of each token."),
            (
                terms[largest] / MIB / of.batch,
                "One text alone.",
                f"A batch keeps it for each of its {of.batch:,} texts.",
            ),
            (total, "All five together.", f"{total:,.3f} MiB is the sum of the five."),
            (n_layers * terms[largest] / MIB, "All layers together.", f"That is what {n_layers} layers keep of it."),
            *_scales(terms[largest] / MIB),
        ),
    )


def _scales(mib: float) -> tuple[truths.Known, ...]:
    """The same number of bytes in units that are taken for MiB, and the same numbers of other widths."""
    return (
        (mib * MIB / 1e6, "That is in megabytes.", f"A megabyte has 10⁶ bytes, a MiB {MIB:,}."),
        (mib / 1024, "That is in GiB.", "The number is asked for in MiB: a GiB is 1,024 of them."),
        (mib / 2, "Two bytes a number.", "That is float16. A float32 has four bytes."),
        (mib / 4, "Numbers, not bytes.", "A float32 has four bytes, and all of them are kept."),
    )


async def really_kept(shown: Shown) -> Truth:
    """What autograd keeps of one layer."""
    of = truths.setup(shown)
    kept = kept_activations(of.config, of.workload).layers[0]
    terms = lesson_terms(of.config, of.workload)["total"] / MIB
    most = sorted(kept.items, key=lambda item: -item.bytes)[:3]
    return _mib(
        f"The five terms of one layer come to {terms:,.3f} MiB. How much does autograd really keep of it?",
        f"{len(kept.items)} tensors, among them {', '.join(f'{item.name} {item.bytes / MIB:,.3f}' for item in most)} MiB.",
        truths.sizes_in_words(of),
        kept.per_layer / MIB,
        4 * terms,
        (
            (
                terms,
                "The five terms alone.",
                "Autograd keeps these, and what norms, activation and sums need on the way back.",
            ),
            (2 * terms, "Everything kept twice.", "Not everything is kept again: autograd shares what two steps read."),
            (
                layers(of.config) * kept.per_layer / MIB,
                "All layers together.",
                f"That is what {layers(of.config)} layers keep.",
            ),
            *_scales(kept.per_layer / MIB),
        ),
    )


async def squared(shown: Shown) -> Truth:
    """The scores of one layer at ten times the length."""
    of = truths.setup(shown)
    short, long = (lesson_terms(of.config, replace(of.workload, source_len=n))["scores"] / MIB for n in LENGTHS)
    first, second = LENGTHS
    return _mib(
        f"At {first} tokens the scores of one layer take {short:,.2f} MiB. And at {second}?",
        f"× {long / short:.1f}: {second} ÷ {first} is {second / first:.2f}, and scores grow with its square. Twice as long is four times as much.",
        truths.sizes_in_words(of),
        long,
        3 * long,
        _grown(short, first, second),
    )


def _grown(mib: float, first: int, second: int) -> tuple[truths.Known, ...]:
    """The results of mistakes about scores of so many MiB at `first` tokens, once there are `second`."""
    times = second / first
    sides = f"{first:,} × {times:.4g} = {second:,}"
    return (
        (mib * times, "In proportion to the length.", f"{sides}. But so many more words each look at so many more."),
        (mib * times**3, "Counted three times.", f"{sides}, and tokens meet in pairs, not by threes."),
        (
            mib * (2 * times - 1),
            "The corner is missing.",
            f"{sides}. New words look at old ones and old ones at new; new ones look at each other too.",
        ),
        (mib * mib, "You squared the memory.", f"{mib:,.2f}² = {mib * mib:,.2f}. It is the length that is squared."),
        (mib * 2 * times, "Doubled, not squared.", f"{times:.4g} × 2 is not {times:.4g}²."),
        (mib, "As much as before.", f"{mib:,.2f} MiB is what {first:,} tokens take."),
        (mib * times**2 / 1024, "That is in GiB.", "The number is asked for in MiB: a GiB is 1,024 of them."),
    )


def _mib(question: str, reason: str, what: str, mib: float, high: float, mistakes: Sequence[truths.Known]) -> Truth:
    return truths.dragging(
        question,
        reason,
        words.FOOTER_COUNTED.format(what=what),
        mib,
        (0, float(f"{high:.2g}")),
        unit="MiB",
        step=float(f"{high / 200:.1g}"),
        tolerance=RIGHT * mib,
        digits=3,
        mistakes=mistakes,
    )


async def longest(shown: Shown) -> Truth:
    """The longest text that fits into 8 GB."""
    of = truths.setup(shown)
    budget = round(_gigabytes(shown) * 1e9)
    fit = longest_fit(of.config, budget, of.workload)
    if not fit.n:
        raise HeadlightError(words.NOTHING_FITS.format(bytes=f"{fit.next_bytes:,}"))
    table = f"{of.config.n_ctx:,} rows of positions, " if of.config.has_position_table else ""
    running, flash, alone = (
        longest_fit(of.config, budget, changed).n
        for changed in (
            replace(of.workload, training=False),
            replace(of.workload, attention="flash"),
            replace(of.workload, batch=1),
        )
    )
    try:
        counted = await to_thread(longest_fit, of.config, budget, of.workload, counted="alive")
        alive = f"; by what is alive at once {counted.n:,} fit, {counted.n + 1:,} do not"
    except ConfigError:  # recomputed or dropped: the bound is all there is
        alive = ""
    return truths.dragging(
        f"{budget / GIB:.3g} GiB, a batch of {of.batch}: how long may the texts be when it learns, by an upper bound on what it takes?",
        f"By an upper bound {fit.n:,} takes {fit.bytes:,} bytes, {fit.n + 1:,} would take {fit.next_bytes:,}{alive}. "
        f"To run it alone: {running:,} tokens; with fused attention: {flash:,}.",
        words.FOOTER_COUNTED.format(
            what=languages.said(
                f"{of.title}, batch {of.batch}, {table}{of.dtype}, {of.optimizer}, {of.attention} attention"
            )
        ),
        fit.n,
        (1, 2000),
        unit="tokens",
        step=1,
        tolerance=round(0.05 * fit.n),
        mistakes=(
            (
                running,
                "That is to run it.",
                f"{running:,} tokens fit where nothing is kept for the way back. Here it learns.",
            ),
            (
                flash,
                "That is fused attention.",
                f"{flash:,} tokens fit where no map is ever written down. Here the maps are kept.",
            ),
            (alone, "One text alone.", f"{alone:,} tokens fit for one text. A batch of {of.batch} shares the memory."),
            (
                of.config.n_ctx,
                "That is the table.",
                f"It has {of.config.n_ctx:,} rows of positions; the memory ends elsewhere.",
            ),
        ),
    )


def _gigabytes(shown: Shown) -> float:
    """The memory that the room has a line for; 8 GiB where it has none."""
    try:
        found = float(shown.values.get("memory_budget", ""))
    except ValueError:
        return 8 * GIB / 1e9
    return found if 0.001 <= found <= 1e6 else 8 * GIB / 1e9


STEPS = (
    Step(
        title="One sentence, every shape",
        source=TRACE,
        room="shapes",
        state={"of": "run"},
        text="Every tensor of this run, from the token numbers to the last norm, in the order of the pass. q changes shape most on its way into the heads.",
        question="What is the shape of q once split into heads?",
        kind="shape",
        cover="shape",
        rows=("A1",),
        truth=split_run,
        varied={"of": "run"},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="Thirty-two sentences",
        source=TRACE,
        room="shapes",
        state={"of": "lesson-encoder", "batch": "32", "length": "50"},
        text="The lesson’s encoder reads 32 sentences of 50 tokens at once. Nothing is allocated here: the real code runs on tensors that have a shape and no numbers.",
        question="What is the shape of q after the split?",
        kind="shape",
        cover="shape",
        rows=("A1", "F4", "F8"),
        truth=q_of_many,
        varied={"batch": "16", "length": "64"},
    ),
    Step(
        title="Padding and its mask",
        source=TRACE,
        room="masks",
        state={"lab": "padding", "partner": "The dog ran.", "sentence": "1", "pad": "on"},
        text="Sentences of a batch must be equally long, so the shorter one is filled up. A mask says which keys are real, and the softmax never sees the others.",
        question="Which keys of the shorter sentence may no token look at?",
        kind="point",
        cover="padding",
        rows=("A3", "F6"),
        hint="Compare both rows of tokens: which are there only to make them equally long?",
        truth=padded_keys,
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="Predict the scores’ shape",
        source=TRACE,
        room="shapes",
        state={"of": "bert-base", "batch": "1", "length": "100"},
        text="Another model, another length: one text of 100 tokens in a model 768 wide with 12 heads. You know the rule by now.",
        question="What shape are the scores?",
        kind="shape",
        cover="shape",
        rows=("A2",),
        truth=scores_of,
        varied={"batch": "2", "length": "70"},
    ),
    Step(
        title="Five terms of one layer",
        source=TRACE,
        room="memory",
        state={**SIZES, "memory_part": "What is kept"},
        text="To learn, a layer must keep what it computed. The lesson counts five things: input, q k v, weights, the heads’ outputs, and the MLP’s hidden layer.",
        question="The largest is the MLP’s hidden layer: how much is it?",
        kind="drag",
        cover="bar",
        rows=("A4",),
        hint="It is as many times the input as d_ff is of d_model.",
        truth=five_terms,
        varied={"plan_source": "64"},
    ),
    Step(
        title="What is really kept",
        source=TRACE,
        room="memory",
        state={**SIZES, "memory_part": "What is kept"},
        text="Autograd keeps more than five things. Norms, the activation’s input and the residual sums are needed on the way back too.",
        question="How much does autograd really keep of one layer?",
        kind="drag",
        cover="headline",
        rows=("A5", "F7"),
        hint="It also keeps the numbers that go into each norm and into the activation.",
        truth=really_kept,
        varied={"plan_source": "64"},
    ),
    Step(
        title="n, and n times n",
        source=TRACE,
        room="memory",
        state={**SIZES, "memory_part": "Longer texts"},
        text="Most tensors grow in proportion to the length of the text. Scores grow with its square: every token meets every token.",
        question="At 50 tokens the scores of one layer take 2.44 MiB. And at 512?",
        kind="drag",
        cover="curve",
        rows=("A6",),
        hint="How many times as long is the text? Every token then meets as many more.",
        truth=squared,
        varied={"plan_heads": "4", "plan_kv_heads": "4"},
    ),
    Step(
        title="How long fits into 8 GB?",
        source=TRACE,
        room="memory",
        state={
            **SIZES,
            "plan_source": "5000",
            "plan_phase": "train",
            "plan_optimizer": "adam",
            "memory_part": "Longer texts",
            "memory_budget": "8.589934592",
        },
        text="Weights, gradients and Adam’s two numbers are the same for any text. What is left is for what the layers keep, and that grows with n and with n².",
        question="8 GiB, a batch of 32: how long may the texts be when it learns?",
        kind="drag",
        cover="number",
        rows=("A7",),
        hint="Compare the cards: four times the memory is about twice the tokens, since scores grow with n².",
        truth=longest,
        varied={"plan_batch": "16"},
    ),
)
