"""text_run(): a small model that learns a visitor's own text, in about a minute, from its letters or from its word pieces.

Its numbers are measured on the last tenth of the text, from which it does not learn, and beside what counting would give there.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from ..checkpoints import Loaded, ModelSpec
from ..checkpoints.build import build
from ..checkpoints.own import model_zip
from ..errors import Refused
from ..model.config import ModelConfig
from ..model.hooks import Hook, hooked
from ..model.transformer import Transformer, to_dtype
from .training import Batch, Recipe, State, make_optimiser, state_of, train, train_bpe

Unit = Literal["letters", "pieces"]

LEAST, MOST = 2_000, 1_000_000  # bytes of a text
MOST_SIGNS = 256
PIECES = 512  # of a tokenizer that is learnt with the text
STEPS, SECONDS = 300, 60.0
BATCH, LENGTH = 16, 96
RATE, WARMUP = 6e-3, 40
KEPT = 10  # one part in so many is kept aside
EVERY = 10  # steps between two frames
SAMPLES = (0, 20, 50, 100, 200, 300)
SAMPLE, TEMPERATURE = 60, 0.7
WINDOWS = 32  # of the kept part, on which a frame is measured; and as many repeated strings
REPEATED = 24  # signs of a string that comes twice
SHOWN = 24  # tokens of the map
SMOOTHED = 0.1  # added to each count
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Text:
    """A text and how it is read. Raises Refused at birth, with a sentence of what is allowed."""

    text: str
    unit: Unit = "letters"
    seed: int = 0

    def __post_init__(self) -> None:
        size = len(self.text.encode())
        if size > MOST:
            raise Refused(f"That is {size / 1e6:.1f} MB; {MOST / 1e6:.0f} MB is the most.")
        if len(self.text) < LEAST:
            raise Refused(f"That is {len(self.text):,} characters: too few to learn from. {LEAST:,} at least.")
        if self.unit == "letters" and len(set(self.text)) > MOST_SIGNS:
            raise Refused(
                f"This text has {len(set(self.text)):,} different signs; {MOST_SIGNS} are the most. Let it learn word pieces."
            )
        if (needed := bytes_needed(self)) > MOST_BYTES:
            raise Refused(f"To learn this takes {needed / 1e6:,.0f} MB, and {MOST_BYTES / 1e6:,.0f} MB is the most.")

    @cached_property
    def signs(self) -> tuple[str, ...]:
        """By id, of letters."""
        return tuple(sorted(set(self.text)))

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        return train_bpe([self.learnt], PIECES) if self.unit == "pieces" else None

    @property
    def learnt(self) -> str:
        return self.text[: len(self.text) - len(self.text) // KEPT]

    @property
    def kept(self) -> str:
        return self.text[len(self.learnt) :]

    @property
    def n_tokens(self) -> int:
        """Different ones."""
        return len(self.signs) if self.tokenizer is None else self.tokenizer.get_vocab_size()

    def ids(self, text: str) -> list[int]:
        if self.tokenizer is not None:
            return self.tokenizer.encode(text, add_special_tokens=False).ids
        number = {sign: i for i, sign in enumerate(self.signs)}
        return [number[sign] for sign in text if sign in number]

    def read(self, ids: list[int]) -> str:
        return "".join(self.signs[i] for i in ids) if self.tokenizer is None else self.tokenizer.decode(ids)

    def pieces(self, ids: list[int]) -> tuple[str, ...]:
        return tuple(self.read([i]) for i in ids)

    @cached_property
    def prompt(self) -> str:
        """The beginning of its samples: the word of four letters or more that comes most often, or its first signs."""
        words = Counter(re.findall(r"[^\W\d_]{4,12}", self.learnt))
        return f"{words.most_common(1)[0][0]} " if words else self.learnt[:6]

    @property
    def config(self) -> ModelConfig:
        return ModelConfig(
            vocab_size=self.n_tokens,
            d_model=96,
            n_heads=4,
            d_ff=384,
            n_decoder_layers=2,
            n_ctx=LENGTH,
            position="rotary",
        )

    @property
    def reader(self) -> Tokenizer:
        """The tokenizer that a model of this text has in its folder: one sign a token, or the pieces."""
        if self.tokenizer is not None:
            return self.tokenizer
        reader = Tokenizer(models.WordLevel({sign: i for i, sign in enumerate(self.signs)}))
        reader.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        reader.decoder = decoders.Fuse()
        return reader


@dataclass(frozen=True)
class Baselines:
    """Losses on the kept part, in nats a token, of guesses that need no model."""

    blind: float
    counts: float  # how often each token comes
    pairs: float  # what comes after which


@dataclass(frozen=True)
class TextPoint:
    """One step: its loss, and the seconds of training so far."""

    step: int
    loss: float
    seconds: float


@dataclass(frozen=True, eq=False)
class TextFrame:
    """The measures and the state of one step."""

    step: int
    seconds: float
    loss: float  # on the kept part
    back: tuple[tuple[float, ...], ...]  # [layer][head]: mean weight on the token before, there
    repeat: tuple[tuple[float, ...], ...]  # on what came next when this came before, in random strings that come twice
    pattern: Tensor  # [layer, head, query, key] of the first tokens of the kept part
    tokens: tuple[str, ...]  # of the pattern
    sample: str  # what it writes after Text.prompt, with the same draws each time; "" where it was not let write
    weights: State  # from which a run continues


def bytes_needed(of: Text) -> int:
    """Memory of a run, about: weights, gradients and two moments, activations that a step keeps, and the tokens of the text."""
    config = ModelConfig(
        vocab_size=len(set(of.text)) if of.unit == "letters" else PIECES,
        d_model=96, n_heads=4, d_ff=384, n_decoder_layers=2,
    )  # fmt: skip
    weights = config.vocab_size * 96 + 2 * (4 * 96 * 97 + 2 * 96 * 384 + 384 + 5 * 96) + 2 * 96
    tokens = BATCH * LENGTH
    kept = tokens * (config.vocab_size * 3 + 2 * (16 * 96 + 3 * 384 + 3 * 4 * LENGTH))
    return 4 * (4 * weights + kept) + 8 * len(of.text)


def baselines(of: Text) -> Baselines:
    """Counted on the learnt part, each count SMOOTHED, and measured on the kept one."""
    n = of.n_tokens
    learnt, kept = (torch.tensor(of.ids(text)) for text in (of.learnt, of.kept))
    single = torch.bincount(learnt, minlength=n).float() + SMOOTHED
    pairs = torch.bincount(learnt[:-1] * n + learnt[1:], minlength=n * n).view(n, n).float() + SMOOTHED
    counts = -(single / single.sum()).log()[kept].mean()
    after = -(pairs / pairs.sum(1, keepdim=True)).log()[kept[:-1], kept[1:]].mean()
    return Baselines(math.log(n), float(counts), float(after))


def text_run(
    of: Text, seconds: float = SECONDS, steps: int = STEPS, start: State | None = None
) -> Iterator[TextPoint | TextFrame]:
    """Points and frames in the order of their steps, until so many steps are done or so many seconds of training are over.

    The last frame is of the last step, and holds the state from which a second run continues. A caller that has enough takes no more.
    """
    model = build(of.config, of.seed).model
    recipe = recipe_of(of, steps)
    optimiser = make_optimiser(model, recipe)
    measured = _Measured(of)
    ids = torch.tensor(of.ids(of.learnt))
    if start is None:
        yield measured.frame(model, optimiser, 0, 0.0)
    spent, begun = 0.0, time.perf_counter()
    for done in train(model, lambda step: batch(of, ids, step), recipe, start=start, optimiser=optimiser):
        spent += time.perf_counter() - begun
        yield TextPoint(done.step, done.loss, spent)
        is_last = done.step == steps or spent >= seconds
        if is_last or done.step % EVERY == 0 or done.step in SAMPLES:
            yield measured.frame(model, optimiser, done.step, spent, writes=is_last or done.step in SAMPLES)
        if is_last:
            return
        begun = time.perf_counter()


def recipe_of(of: Text, steps: int) -> Recipe:
    return Recipe(steps=steps, learning_rate=RATE, warmup=WARMUP, seed=of.seed, mixed=False)


def batch(of: Text, ids: Tensor, step: int) -> Batch:
    """Pieces of the learnt part, from places that follow from the seed and the step."""
    drawn = torch.Generator().manual_seed(of.seed * 1_000_003 + step)
    length = min(LENGTH, len(ids) - 2)
    starts = torch.randint(len(ids) - length - 1, (BATCH,), generator=drawn)
    rows = torch.stack([ids[i : i + length + 1] for i in starts.tolist()])
    return Batch(rows, torch.ones_like(rows, dtype=torch.bool))


class _Measured:
    """The pieces of a text on which its frames are measured."""

    def __init__(self, of: Text) -> None:
        self.of = of
        kept = torch.tensor(of.ids(of.kept))
        self.length = min(LENGTH, len(kept) - 1)
        last = len(kept) - self.length - 1
        starts = [round(i * last / (WINDOWS - 1)) for i in range(WINDOWS)]
        self.windows = torch.stack([kept[i : i + self.length + 1] for i in starts])
        drawn = torch.Generator().manual_seed(of.seed)
        once = torch.randint(of.n_tokens, (WINDOWS, REPEATED), generator=drawn)
        self.twice = torch.cat([once, once], 1)

    @torch.inference_mode()
    def frame(
        self, model: Transformer, optimiser: torch.optim.Optimizer, step: int, spent: float, writes: bool = True
    ) -> TextFrame:
        assert model.head is not None
        seen, x = _patterns(model, self.windows[:, :-1])
        loss = F.cross_entropy(model.head(x).flatten(0, 1), self.windows[:, 1:].flatten())
        twice, _ = _patterns(model, self.twice)
        back = seen.diagonal(-1, -2, -1).mean((0, -1))
        # A token of the second time looks at what came after it the first time.
        repeat = twice.diagonal(1 - REPEATED, -2, -1)[..., 1:].mean((0, -1))
        state = State(step, {name: t.clone() for name, t in state_of(model, optimiser).items()})
        n = min(SHOWN, self.length)
        return TextFrame(
            step,
            spent,
            float(loss),
            tuple(tuple(map(float, row)) for row in back),
            tuple(tuple(map(float, row)) for row in repeat),
            seen[0, :, :, :n, :n].clone(),
            self.of.pieces(self.windows[0, :n].tolist()),
            write(self.of, model) if writes else "",
            state,
        )


def _patterns(model: Transformer, ids: Tensor) -> tuple[Tensor, Tensor]:
    """(weights [text, layer, head, query, key], the stream after the last layer)."""
    assert model.decoder is not None
    found: dict[int, Tensor] = {}

    def keep(layer: int) -> Hook:
        def hook(x: Tensor) -> None:
            found[layer] = x

        return hook

    layers = range(len(model.decoder.blocks))
    with hooked(model, {f"decoder.blocks.{i}.attn.hook_pattern": keep(i) for i in layers}):
        x = model.last_residual(ids)
    return torch.stack([found[i] for i in layers], 1), x


@torch.inference_mode()
def write(of: Text, model: Transformer, n: int = SAMPLE) -> str:
    """A sample of a model after the prompt: drawn at TEMPERATURE, from the same draws for every model."""
    assert model.head is not None
    drawn = torch.Generator().manual_seed(of.seed)
    ids = of.ids(of.prompt)
    begun = len(ids)
    for _ in range(n):
        logits = model.head(model.last_residual(torch.tensor([ids[-LENGTH:]]))[0, -1])
        ids.append(int(torch.multinomial((logits / TEMPERATURE).softmax(-1), 1, generator=drawn)))
    return of.read(ids[begun:])


def restored(of: Text, state: State) -> Transformer:
    """The model of a frame."""
    model = build(of.config, of.seed).model
    weights = {name.removeprefix("model."): x for name, x in state.tensors.items() if name.startswith("model.")}
    model.load_state_dict(weights, strict=False)
    return model


# the model of a text among others

NAME = re.compile(r"trained-text-([a-z2-7]{12})", re.ASCII)
TITLE = re.compile(r"Trained text ([a-z2-7]{12})", re.ASCII)


def key_of(name: str) -> str | None:
    """The key of a model by its id or its title, as described() gives them; None for any other."""
    found = NAME.fullmatch(name) or TITLE.fullmatch(name)
    return None if found is None else found[1]


def described(key: str) -> ModelSpec:
    """The model of a visitor's text, as far as its key says anything of it: of its text, nothing."""
    return ModelSpec(
        id=f"trained-text-{key}",
        title=f"Trained text {key}",
        family="headlight",
        source="trained",
        location="",
        licence="as the text that it learnt",
        note="A small model of a text of yours: 2 layers of 4 heads.",
    )


def opened(
    of: Text, state: State, key: str, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32
) -> Loaded:
    """The model of a frame with its tokenizer, as load() gives a shipped one."""
    made = build(of.config, of.seed)
    return replace(
        made,
        spec=replace(described(key), n_params=made.spec.n_params),
        model=to_dtype(restored(of, state), dtype).to(device).eval().requires_grad_(False),
        tokenizer=of.reader,
        device=torch.device(device),
        dtype=dtype,
    )


def archive(of: Text, state: State, loss: float) -> bytes:
    """A zip of the model of a frame, which core.load reads unpacked: config, weights, tokenizer, recipe, card. The text is not in it."""
    recipe = {"step": state.step, "batch": BATCH, "length": LENGTH, "unit": of.unit, **asdict(recipe_of(of, STEPS))}
    card = (
        f"# A text of {len(of.text):,} characters, step {state.step}\n\n"
        f"Loss on its last tenth, from which it did not learn: {loss:.4f} nats. "
        f"Counts of pairs have {baselines(of).pairs:.4f} there.\n"
    )
    return model_zip(restored(of, state), recipe, card, tokenizer=of.reader, pad_id=None)
