"""A text from layer to layer: how peaked attention is, and whether a gradient finds its way back."""

from __future__ import annotations

from asyncio import to_thread
from itertools import pairwise
from typing import Literal

from app import languages
from app.kit.numbers import scientific
from app.rooms.lessons import small, truths, words
from app.rooms.lessons.step import Shown, Step, Truth
from app.session.words import EXAMPLE
from core.errors import HeadlightError

COURSE, PAIR = "The course", "Encoder and decoder"
NAMES: dict[tuple[Literal["pre", "post", "none"], bool], str] = {
    ("pre", True): "Pre-LN, with the residual connection",
    ("pre", False): "Pre-LN, without it",
    ("post", False): "Post-LN, without it",
    ("none", True): "no norms, with the residual connection",
    ("none", False): "no norms, without it",
}
GONE = 1e-6  # of the gradient at the last layer: next to nothing


async def way_back(_: Shown) -> Truth:
    """In which fresh stacks next to nothing of the gradient comes to the first layer."""
    found = {which: await to_thread(small.depth, *which) for which in NAMES}
    kept = {which: stack.gradient[0] / stack.gradient[-1] for which, stack in found.items()}
    apart = found["pre", True].alike[-1]
    one, two = found["pre", False].alike[-1], found["post", False].alike[-1]
    layers = len(found["pre", True].gradient) - 1
    lowest = min(share for which, share in kept.items() if which[0] != "none")
    return truths.choosing(
        f"{layers} fresh layers. In which does next to nothing of the gradient reach the first one? Choose all that apply.",
        f"Of its length at the last layer the first one gets {scientific(kept['none', False])} with neither norm nor residual connection, and with "
        f"norms at least {lowest:.2f}. But the mean cosine of two words after the last layer is {apart:.2f} in Pre-LN, and without the residual connection {one:.2f}, in Post-LN {two:.2f}. A cosine of 1 says that all words have become one.",
        words.FOOTER_WORKED.format(
            what=languages.said(f"{layers} layers of attention and MLP, width 64, fresh weights")
        ),
        {NAMES[which]: share < GONE for which, share in kept.items()},
        all_of=True,
        wrong=[
            (
                "One of these keeps its gradient.",
                f"The first layer gets {share:.2g} of the length at the last one: {NAMES[which]}.",
            )
            for which, share in kept.items()
        ],
        slip="A lesson says that gradients vanish without the residual connection. In a stack with norms they keep their size.",
    )


async def peaked(shown: Shown) -> Truth:
    """Whether attention is more peaked in later layers, on this text."""
    facts = truths.run(shown)
    of = truths.site(shown, facts)
    found = (await shown.service.measures(facts.key, of.id)).values["entropy"]
    bits = [[value for value in heads if value is not None] for heads in found]
    if len(bits) < 2 or not all(bits) or of.n_key < 2:
        raise HeadlightError(words.ONE_TOKEN)
    layers = [sum(heads) / len(heads) for heads in bits]
    half = len(layers) // 2
    early, late = sum(layers[:half]) / half, sum(layers[-half:]) / half
    falls = all(b < a for a, b in pairwise(layers))
    wider = next((i for i in range(1, len(layers)) if layers[i] >= layers[i - 1]), 1)
    return truths.choosing(
        "“Early layers spread their attention, later ones focus.” Is it so on this text?",
        f"Bits of an average row by layer: {', '.join(f'{mean:.2f}' for mean in layers)}. The first {half} layers have {early:.2f}, the last {half} "
        f"{late:.2f}; more bits are a wider spread. It is a question for each model and text.",
        words.FOOTER_RUN.format(
            what=languages.said(f"{truths.SITES[of.id]}, the mean entropy of the rows of every head")
        ),
        {
            "Yes: each layer is more peaked than the one before": falls,
            "On the whole: the later half is more peaked, not each layer": late < early and not falls,
            "No: the later half is spread as widely, or more": late >= early,
        },
        wrong=(
            (
                "Not at every layer.",
                f"Layer {wider} has {layers[wider]:.2f} bits, the one before it {layers[wider - 1]:.2f}.",
            ),
            ("Not on this text.", f"The first {half} layers have {early:.2f} bits. Compare the last {half}."),
            ("Not on this text.", f"The last {half} layers have {late:.2f} bits. Compare the first {half}."),
        ),
    )


STEPS = (
    Step(
        title="A straight way back",
        source=PAIR,
        room="step",
        state={"at": "add1", "layer": "3", "head": "1", "query": "10"},
        text="At this plus sign the stream passes the sublayer by. On the way back the gradient comes through unchanged: its factor is 1 + ∂f/∂x, layer by layer.",
        question="In which stack of fresh layers does next to nothing of the gradient reach the first one? Choose all that apply.",
        kind="choose",
        cover="",
        rows=("F2",),
        truth=way_back,
        model="minilm",
        sentence=EXAMPLE,
    ),
    Step(
        title="Early and late layers",
        source=COURSE,
        room="explore",
        state={"metric": "entropy", "layer": "3", "head": "1", "query": "10"},
        text="How widely a row spreads is its entropy: 0 bits where it looks at one key, more the more keys share it. Here it is of every head.",
        question="“Early layers spread their attention, later ones focus.” Is it so on this text?",
        kind="choose",
        cover="heads",
        rows=("F23",),
        truth=peaked,
        varied={"query": "7"},
        model="minilm",
        sentence=EXAMPLE,
    ),
)
