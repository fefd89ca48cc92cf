"""Lesson 1, Attention: from three tokens to many heads."""

from __future__ import annotations

import math

from app import languages
from app.rooms.lessons import small, truths, words
from app.rooms.lessons.step import Candidate, Shown, Step, Truth
from app.session.words import EXAMPLE
from core.edits import Intervention, MaskAfterSoftmax, NoScale, SetMask
from core.errors import HeadlightError
from core.service import MapTransform

SCRATCH, COURSE, ORDER = "Attention from scratch", "The course", "Positions and the encoder"
FOLLOWED = (0, 2, 12)  # sentence, token and feature of the number that the reshape is asked about: the 13th of 24


async def every_number(_: Shown) -> Truth:
    """The first number of the output of three tokens: Σ weight · v."""
    weights, column, output = small.one_head()
    terms = " + ".join(f"{w:.4f} · {v:.4f}" for w, v in zip(weights, column, strict=True))
    printed = " ".join(f"{w:.4f}"[1:] for w in weights)
    undivided, by_d, shares = small.wrong_softmaxes()
    return truths.dragging(
        "The first row of weights times the first column of V: what is output[0][0]?",
        f"Each weight times its value, added up: {terms} = {output:.4f}.".replace("+ -", "− ").replace("· -", "· −"),
        words.FOOTER_SMALL.format(what=languages.said("3 tokens of 4 numbers")),
        output,
        (-1, 1),
        step=0.01,
        tolerance=0.005,
        digits=4,
        mistakes=(
            (
                _mix(undivided, column),
                "Nothing was divided.",
                f"{_row(undivided)} is the softmax of the scores as they are: the gaps are still √4 = 2 times too wide.",
            ),
            (_mix(by_d, column), "Divided by d, not by √d.", f"{_row(by_d)} is the softmax of the scores ÷ 4."),
            (
                _mix(shares, column),
                "Shares, but no softmax.",
                f"{_row(shares)} are the divided scores, each as a share of their sum.",
            ),
            (
                sum(column) / len(column),
                "Every value counted alike.",
                f"{sum(column) / len(column):.4f} is the mean of the column: every weight would be 1 ÷ 3.",
            ),
            (sum(column), "Nothing was weighed.", f"{sum(column):.4f} is the sum of the column, without the weights."),
        ),
        slip=f"The lesson prints .3505 .2858 .3637 for this row of weights; its own code gives {printed}.",
    )


def _mix(weights: list[float], column: list[float]) -> float:
    return sum(w * v for w, v in zip(weights, column, strict=True))


def _row(weights: list[float]) -> str:
    return ", ".join(f"{w:.2f}" for w in weights)


async def it_looks(shown: Shown) -> Truth:
    """The arg-max of a row."""
    return await truths.row(
        shown,
        "Which word will {word} take most from?",
        "The softmax turned the scores of this row into shares of one whole; the best key has the largest share.",
    )


async def mixture(_: Shown) -> Truth:
    """softmax([112, 96] / √64), beside what three mistakes would give."""
    raw, d_head = (112.0, 96.0), 64
    scores = [score / math.sqrt(d_head) for score in raw]
    true, undivided = _softmax(scores), _softmax(list(raw))
    mistakes = (undivided, (scores[0] / sum(scores), scores[1] / sum(scores)), (0.5, 0.5))
    options = {_mixed(pair): pair == true for pair in (mistakes[1], true, mistakes[0], mistakes[2])}
    root = math.sqrt(d_head)
    return truths.choosing(
        "Two keys match with 112 and 96, and d_head is 64. What is the output?",
        f"112 ÷ 8 = 14 and 96 ÷ 8 = 12; e¹⁴ and e¹² share the whole as {true[0]:.4f} and {true[1]:.4f}.",
        words.FOOTER_WORKED.format(what=languages.said("the softmax of 14 and 12")),
        options,
        wrong=(
            (
                "Shares, but no softmax.",
                f"{scores[0]:.0f} and {scores[1]:.0f} were made shares of their sum, {sum(scores):.0f}. A softmax raises e to them first.",
            ),
            ("", ""),
            (
                "Nothing was divided.",
                f"This is the softmax of {raw[0]:.0f} and {raw[1]:.0f} as they are. Their gap is still √{d_head} = {root:.0f} times too wide.",
            ),
            (
                "Both counted alike.",
                f"Halves are for two keys that match alike. These are {scores[0] - scores[1]:.0f} apart once they are divided.",
            ),
        ),
    )


def _softmax(scores: list[float]) -> tuple[float, float]:
    exponentials = [math.exp(score - max(scores)) for score in scores]
    return exponentials[0] / sum(exponentials), exponentials[1] / sum(exponentials)


def _mixed(weights: tuple[float, float]) -> str:
    return f"{weights[0]:.2f} v₁ + {weights[1]:.2f} v₂"


async def undivided(shown: Shown) -> Truth:
    """The bits of an average row without the division by √d."""
    facts = truths.run(shown)
    if max(site.n_key for site in facts.sites) < 2:
        raise HeadlightError(words.ONE_TOKEN)
    other = await truths.changed(shown, facts, (NoScale(),))
    change = await shown.service.answer_change(facts.key, other)
    if change.entropy is None:
        raise HeadlightError(words.ONE_TOKEN)
    before, after = change.entropy
    most = math.log2(max(site.n_key for site in facts.sites))
    return truths.dragging(
        f"An average row has {before:.2f} bits of choice. How many without the division by √{facts.config.d_head}?",
        f"Undivided scores lie √{facts.config.d_head} times as far apart, and the softmax gives nearly all to the largest.",
        words.FOOTER_RUN.format(what=languages.said("every head, with the division and without")),
        after,
        (0, max(1, math.ceil(most))),
        unit="bits",
        step=0.05,
        tolerance=0.25,
        digits=2,
        mistakes=(
            (before, "That is the run as it is.", f"{before:.2f} bits is an average row with the division."),
            (
                most,
                "Every key alike.",
                f"{most:.2f} bits is the most there can be: a row that gives every key the same.",
            ),
            (0, "One key alone.", "0 bits is a row that gives all to one key. Not every row does."),
            (
                before / math.sqrt(facts.config.d_head),
                "The bits were divided.",
                "The scores are divided by √d. Entropy does not follow in proportion.",
            ),
            (
                before * math.sqrt(facts.config.d_head),
                "The bits were multiplied.",
                "The scores lie farther apart. Entropy does not follow in proportion.",
            ),
        ),
    )


async def transposed(_: Shown) -> Truth:
    """What .T makes of a batch of keys."""
    keys, shape = small.keys()
    own = " × ".join(map(str, keys))
    return truths.shaping(
        f"K is {own}: two sentences of three tokens of four numbers. What is the shape of K.T?",
        "All axes are reversed, the batch too. transpose(-2, -1) transposes each sentence: [2, 4, 3].",
        words.FOOTER_SMALL.format(what=languages.said("K of the batch")),
        shape,
        keys,
        (
            (list(keys), "That is K itself.", f"K is {own}, and .T does change its shape."),
            (
                [keys[0], keys[2], keys[1]],
                "Each sentence by itself.",
                "That is transpose(-2, -1), which leaves the batch where it is. .T does not know of a batch.",
            ),
            (
                [keys[1], keys[0], keys[2]],
                "Only the first two axes.",
                "That is transpose(0, 1). .T moves more than two.",
            ),
        ),
    )


async def look_back(shown: Shown) -> Truth:
    """Every key that a row of a causal mask may look at."""
    facts = truths.run(shown)
    of = truths.site(shown, facts)
    _, layer, head, query = truths.record_of(shown, of)
    if of.n_key < 2:
        raise HeadlightError(words.ONE_TOKEN)
    key = await truths.changed(shown, facts, _mask(shown, of.id))
    found = await shown.service.row(key, MapTransform(of.records[layer], head), query)
    queries, keys = facts.tokens_of(of.records[layer])
    return truths.marking(
        f"Row {query} is {truths.said(queries.labels[query])}. Which keys may it see?",
        "A token may see itself and what stands before it; what comes later is to be written and must not be read.",
        words.FOOTER_ROW.format(layer=layer, head=head, row=query),
        ((label, i, not found.reasons[i] and not keys.padding[i]) for i, label in enumerate(keys.labels)),
        mistakes=[
            (
                (),
                "The other way round.",
                "These are the keys that are hidden. True may look here; in PyTorch’s attn_mask True is hidden.",
            ),
            *(
                (
                    (i,),
                    "That one is written later.",
                    f"{truths.said(label)} stands at {i}, and row {query} is asked what comes at {query + 1}.",
                )
                for i, label in enumerate(keys.labels)
                if i > query and not keys.padding[i]
            ),
        ],
        slip="A lesson’s comment says “True where we should attend” beside a mask that is True where we must not. Here True may look.",
    )


def _mask(shown: Shown, site: str) -> tuple[Intervention, ...]:
    """What Masks has in place of the model's own mask."""
    kind = shown.values.get("mask", "model")
    return (SetMask("causal"),) if kind == "causal" and site != "cross" else ()


async def masked_late(shown: Shown) -> Truth:
    """What a row sums to if its mask comes after the softmax."""
    facts = truths.run(shown)
    of = truths.site(shown, facts)
    record, layer, head, query = truths.record_of(shown, of)
    edits = (*_mask(shown, of.id), MaskAfterSoftmax())
    found = await shown.service.row(await truths.changed(shown, facts, edits), MapTransform(record, head), query)
    word = truths.said(facts.tokens_of(record)[0].labels[query])
    total, seen = float(found.values.sum()), sum(not why for why in found.reasons)
    if not any(found.reasons):
        raise HeadlightError(
            words.ONE_KEY.format(word=word) if of.n_key < 2 else words.NOTHING_HIDDEN.format(word=word)
        )
    return truths.dragging(
        f"Masked after the softmax, what do the weights of {word} add up to?",
        "The softmax had given the rest to what is hidden, and the mask then took it away. Masked before, a row adds up to 1.",
        words.FOOTER_ROW.format(layer=layer, head=head, row=query),
        total,
        (0, 1),
        step=0.01,
        tolerance=0.05,
        digits=2,
        mistakes=(
            (
                1,
                "That is a mask before the softmax.",
                "A row adds up to 1 where the softmax shares out what the mask has left.",
            ),
            (1 - total, "That is what was taken.", "It is the weight of what is hidden. The question is what is left."),
            (
                seen / of.n_key,
                "Counted, not weighed.",
                f"{seen} of {of.n_key} keys may be seen, but the softmax did not give every key the same.",
            ),
            (0, "Nothing would be left.", "The mask takes what is hidden. A key that may be seen keeps its weight."),
        ),
        slip="A lesson prints .2689 .7311 for a masked row whose scores give .1886 .8114.",
    )


async def where_it_lands(_: Shown) -> Truth:
    """Which head gets a number of the fused projection, and where in it."""
    width = small.HEADS * small.WIDTH
    token, feature = FOLLOWED[1:]
    part, inner = divmod(feature, width)
    true = (part, *small.landing(*FOLLOWED))
    return truths.pointing(
        f"Number {feature + 1} of {3 * width} of token {token}: in which head does it land, and where?",
        f"Numbers {width + 1} to {2 * width} are K. Of these it is number {inner + 1}, and each head has {small.WIDTH}.",
        words.FOOTER_SMALL.format(what=languages.said("one number followed through split, view and transpose")),
        truths.Candidates(
            [_landing((p, h, j), true) for p in range(3) for h in range(small.HEADS) for j in range(small.WIDTH)],
            "part, head, number",
            "plain",
        ),
        mistakes=[
            ((p, h, j), *_missed((p, h, j), true))
            for p in range(3)
            for h in range(small.HEADS)
            for j in range(small.WIDTH)
        ],
    )


def _missed(at: tuple[int, int, int], true: tuple[int, int, int]) -> tuple[str, str]:
    """The first thing wrong of a place: its part, else its head, else its number."""
    width = small.HEADS * small.WIDTH
    if at[0] != true[0]:
        return (
            "The wrong third.",
            f"The {3 * width} numbers are three times {width}: Q, K and V, in this order, counted from 1.",
        )
    if at[1] != true[1]:
        return (
            "The right third, the wrong head.",
            f"Each head has {small.WIDTH} of its {width} numbers, head 0 the first.",
        )
    return "The right head, the wrong place.", "The first number of a head is number 1."


def _landing(at: tuple[int, int, int], true: tuple[int, int, int]) -> Candidate:
    part, head, place = at
    return Candidate(f"{'QKV'[part]} of head {head}, number {place + 1}", at, float(at == true))


STEPS = (
    Step(
        title="Three tokens, every number",
        source=SCRATCH,
        room="step",
        state={"page": "one", "at": "output"},
        text="Three tokens of four numbers each go through one head. Every number is here: scores, ÷ √d, softmax. The output is a sum of values, each times its weight.",
        question="The first row of weights times the first column of V: what is output[0][0]?",
        kind="drag",
        cover="number",
        rows=("C1", "F14", "F18"),
        truth=every_number,
    ),
    Step(
        title="Where does a word look?",
        source=ORDER,
        room="explore",
        state={"layer": "3", "head": "1", "query": "10"},
        text="Every token asks a question: its query. Every token carries a label: its key. Where the two agree, it takes.",
        question="Which word will the framed one take most from?",
        kind="point",
        cover="row",
        rows=("D3",),
        truth=it_looks,
        varied={"query": "7"},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="The output is a mixture",
        source=COURSE,
        room="step",
        state={"at": "z", "layer": "3", "head": "1", "query": "10"},
        text="A head writes no word and copies no word. It adds up the values of all keys, each as much as its weight says.",
        question="Two keys match with 112 and 96, and d_head is 64. What is the output?",
        kind="choose",
        cover="",
        rows=("E11", "F15"),
        truth=mixture,
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="Divide by √d",
        source=COURSE,
        room="whatif",
        state={"edits": "noscale", "pick": "off"},
        text="q·k is a sum of d products, so it spreads with d. Divided by √d it spreads alike at every width. Here is a run without the division.",
        question="How many bits of choice does an average row have without it?",
        kind="drag",
        cover="number",
        rows=("E1",),
        truth=undivided,
        varied={"edits": "noscale"},
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="The batch, and .T",
        source=SCRATCH,
        room="step",
        state={"page": "batch"},
        text="Two sentences at once: a batch. The scores need K on its side, sentence by sentence. In PyTorch .T looks like the way to do it.",
        question="K is 2 × 3 × 4. What is the shape of K.T?",
        kind="shape",
        cover="shape",
        rows=("C2",),
        truth=transposed,
    ),
    Step(
        title="Look back only",
        source=SCRATCH,
        room="masks",
        state={"lab": "paint", "site": "decoder", "mask": "causal", "layer": "1", "head": "1", "query": "1"},
        text="A model that writes must not see what it is to write. Its mask hides the future before the softmax, so that the row still sums to 1.",
        question="Which keys may row 1 see?",
        kind="point",
        cover="row",
        rows=("C3", "F14"),
        hint="Think of the moment when the next word is written: what is on the page by then?",
        truth=look_back,
        varied={"query": "2"},
        model="storyteller",
        sentence="Once upon a time",
    ),
    Step(
        title="Mask before the softmax",
        source=COURSE,
        room="masks",
        state={
            "lab": "paint",
            "site": "decoder",
            "mask": "causal",
            "when": "after",
            "layer": "1",
            "head": "1",
            "query": "1",
        },
        text="The same mask, one step later: the softmax shares out the whole row first, and then what is hidden becomes 0.",
        question="What do the weights of row 1 add up to now?",
        kind="drag",
        cover="number",
        rows=("E2", "F14"),
        hint="Take e to the power of each score. How much of their sum have the keys that may be seen?",
        truth=masked_late,
        varied={"query": "2"},
        model="storyteller",
        sentence="Once upon a time",
    ),
    Step(
        title="One big matrix, many heads",
        source=SCRATCH,
        room="step",
        state={"page": "reshape"},
        text="One product makes Q, K and V of two heads at once: 24 numbers for each token. Then split, view and transpose only rename places.",
        question="Number 13 of 24: in which head does it land, and where?",
        kind="point",
        cover="cell",
        rows=("C4", "F3", "F13"),
        hint="Count in thirds first: Q, K, V. Each third is then cut into two heads.",
        truth=where_it_lands,
    ),
)
