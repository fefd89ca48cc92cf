"""The card beside every model that ships: what it is, what it was trained on and how, what was measured, what its heads do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from core import load
from core.checkpoints import Loaded
from core.learn.tasks import HELD_OUT_ONE_IN, TASKS
from scripts.train_tasks import BATCH, PLANS


@dataclass(frozen=True)
class Row:
    """One number by name; form is how it is written out."""

    name: str
    value: float
    form: str

    def __str__(self) -> str:
        return format(self.value, self.form)


@dataclass(frozen=True, eq=False)
class Result:
    """What was measured: numbers, what each head does [layer, head] by name, and texts that the model wrote by prompt."""

    rows: tuple[Row, ...]
    heads: dict[str, Tensor] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    along: dict[int, float] = field(default_factory=dict)  # share of problems solved, by step of the training


@dataclass(frozen=True, kw_only=True)
class About:
    """The words of a card that no measurement gives."""

    note: str
    data: str
    batches: tuple[str, ...]  # of each phase of the training
    measured: str
    heads: str
    weaknesses: str
    script: str


STORYTELLER = About(
    note="Goes on with a story in the manner of a hundred-year-old children's book.",
    data="""28 children's books from Project Gutenberg (from Alice's Adventures in Wonderland to Treasure Island; the numbers of
the books are in the file's headings), all in the public domain in the United States. Held out, and never read: Through
the Looking-Glass and The Magic of Oz. Two authors of the held-out books are among those read, with other books. Byte-level
BPE of 6,144 tokens, made from the books that are read.""",
    batches=(
        "8 windows of 256 tokens, each from the start of a paragraph on; in every other batch one window is random tokens "
        "said twice, of which only the second time is learnt from",
        "8 windows of 128 tokens, six of them random tokens said again and again (3 to 60 of them, from ever more of the "
        "vocabulary). It is a drill for induction, which stories alone teach only after many more of them",
        "8 windows of 256 tokens, one of them said again and again as in the drill, which had pushed the stories aside",
        "the same, once more",
    ),
    measured="""On both held-out books, every token once, foretold from 127 to 254 tokens before it (fewer at the start of a book).
The baselines count the same tokens of the same 28 books.""",
    heads="""Mean weights on 8 sequences of 50 random tokens said twice behind `<s>`: an induction head looks at what followed the
earlier copy of the current token; a previous-token head looks one token back. Before the drill
the best induction head had 0.03: what is seen here was taught on random tokens said again and again, and not by stories. It cost
perplexity, which was 61.7 before the drill.""",
    weaknesses="""It has read twelve megabytes about three times over and knows no world but that of its books: names and plots drift, facts
are made up, and the manners and prejudices of its authors' time are in it. It was trained on 256 tokens and gets worse
beyond them. Not for anything but looking at how attention works.""",
    script="train_storyteller",
)

TRANSLATOR = About(
    note="Translates German captions of pictures into English.",
    data="""Multi30k, task 1 (Elliott et al. 2016, arXiv:1605.00459; github.com/multi30k/dataset): 29,000 captions of Flickr
pictures with their translations. The captions come from Flickr30k, whose authors offer them for research and education
that is not commercial; the corpus itself is not part of this repository. Tested on test_2016_flickr (1,000 pairs).
One recipe was trained, once, so nothing was chosen on the validation pairs. One byte-level BPE of 6,000 tokens for both languages, made from the training pairs.""",
    batches=("128 pairs of similar length",),
    measured="""BLEU by sacrebleu with its default settings, on text as it was written. Alignment on the 20 captions in
`scripts/alignment.py`, which were written and aligned by hand for this purpose and are in no corpus: the share of their English content
words whose largest cross-attention, at the place that writes the word, is on the German word that it translates; `</s>`
competes. The decoder reads the hand-made translation.""",
    heads="The same share for every head alone.",
    weaknesses="""It has seen captions and nothing else: people, dogs, sports and streets, in the present tense. Other German comes
out as a caption of something. It knows no long sentences and never learnt to leave a name alone.""",
    script="train_translator",
)


def task_about(name: str) -> About:
    plan = PLANS[name]
    task = TASKS[plan.task]
    return About(
        note=plan.note,
        data=f"""Drawn by `core/learn/tasks.py` ({task.title.lower()}), so there is no origin to credit; under this repository's licence. Held out:
every problem whose key has a CRC-32 divisible by {HELD_OUT_ONE_IN}, whatever the seed. Symbols: `{task.symbols}`.""",
        batches=(f"{BATCH} problems",),
        measured="On 1,000 held-out problems; along the way on 200.",
        heads="""The weight that lies on tokens equal to the one about to be written, mean over the answers of 100 held-out problems:
1.00 is a head that always looks at what comes next.""",
        weaknesses="It knows its symbols and nothing else, and lengths only up to those of its training "
        f"(at most {task.n_ctx} tokens in all).",
        script=f"train_tasks {name}",
    )


def about(name: str) -> About:
    return {"storyteller": STORYTELLER, "translator": TRANSLATOR}.get(name) or task_about(name)


def card(name: str, folder: Path, result: Result) -> str:
    """The text of card.md for a model in its folder, whose recipe.json says how it was trained."""
    words, loaded = about(name), load(folder)
    facts = json.loads((folder / "recipe.json").read_text("utf-8"))
    parts = [
        f"# {name}",
        f"{words.note} {shape_in_words(loaded)}",
        f"## Data\n\n{words.data}",
        f"## Training\n\n{recipe_in_words(words, facts)}",
        f"## Measured\n\n{words.measured}\n\n{table(result)}",
    ]
    if result.along:
        steps = "\n".join(f"| {step} | {share:.1%} |" for step, share in result.along.items())
        parts.append(f"Whole answers right along the way:\n\n| step | right |\n|---|---|\n{steps}")
    if result.heads:
        tables = "\n\n".join(f"{what}:\n\n{head_table(shares)}" for what, shares in result.heads.items())
        parts.append(f"## What the heads do\n\n{words.heads}\n\n{tables}")
    if result.texts:
        lines = "\n".join(f"* {prompt} → {' '.join(text.split())}" for prompt, text in result.texts.items())
        parts.append(f"## What it writes\n\n{lines}")
    parts.append(f"## Weaknesses\n\n{words.weaknesses}")
    return "\n\n".join(parts) + "\n"


def shape_in_words(loaded: Loaded) -> str:
    c = loaded.config
    layers = " and ".join(
        f"{'an' if what == 'encoder' else 'a'} {what} of {n} layers"
        for what, n in (("encoder", c.n_encoder_layers), ("decoder", c.n_decoder_layers))
        if n
    )
    return (
        f"{layers[0].upper()}{layers[1:]}, {c.n_heads} heads of {c.d_head}, d_model {c.d_model}, d_ff {c.d_ff}: "
        f"{loaded.spec.n_params:,} parameters; {c.position} positions, {c.norm_order}-norm, {c.activation}. Matrices are stored as "
        "int8 with a scale for each row; everything below was measured on these rounded numbers."
    )


def recipe_in_words(words: About, facts: dict[str, Any]) -> str:
    phases = [
        f"{r['steps']:,} steps of {batch}: {rates(r)}" for r, batch in zip(facts["phases"], words.batches, strict=True)
    ]
    r = facts["phases"][0]
    extra = "".join(f", {what.replace('_', ' ')} {r[what]}" for what in ("dropout", "label_smoothing") if r[what])
    mixed = "bfloat16 where the hardware multiplies it, float32 weights" if r["mixed"] else "float32"
    return "\n\n".join(
        [
            *phases,
            f"AdamW (β {r['beta1']}, {r['beta2']}; weight decay {r['weight_decay']}); gradients clipped to {r['clip']}{extra}; {mixed};\n"
            f"seed {r['seed']}. {facts['hardware']}, {duration(facts['seconds'])} by the clock.\n"
            f"`python -m scripts.{words.script}` trains it again.",
        ]
    )


def rates(recipe: dict[str, Any]) -> str:
    return (
        f"learning rate {recipe['learning_rate']} after {recipe['warmup']} steps of warm-up, then a cosine down to "
        f"{recipe['final_share']:.0%} of it."
    )


def duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def table(result: Result) -> str:
    return "| what | value |\n|---|---|\n" + "\n".join(f"| {row.name} | {row} |" for row in result.rows)


def head_table(shares: Tensor) -> str:
    """[layer, head] as Markdown."""
    header = f"| layer | {' | '.join(f'head {head}' for head in range(shares.shape[1]))} |"
    rows = (f"| {layer} | {' | '.join(f'{x:.2f}' for x in row)} |" for layer, row in enumerate(shares.tolist()))
    return "\n".join([header, "|---|" + "---|" * shares.shape[1], *rows])


def printed(name: str, result: Result, seconds: float) -> str:
    """For a terminal."""
    width = max(len(row.name) for row in result.rows)
    lines = [f"{name} ({seconds:.0f} s)", *(f"  {row.name:{width}}  {row}" for row in result.rows)]
    for what, shares in result.heads.items():
        lines += [f"  {what}, by layer:", *(f"    {' '.join(f'{x:.2f}' for x in row)}" for row in shares.tolist())]
    lines += [f"  {prompt}\n    {text.strip()}" for prompt, text in result.texts.items()]
    return "\n".join(lines)
