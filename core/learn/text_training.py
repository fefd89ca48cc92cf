"""text_run(): training of a small model on a user's own text, by character or by word piece, in about a minute.

Its losses are measured on the last tenth of the text, which is held out, next to those of n-gram baselines.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from ..checkpoints import Loaded, ModelSpec
from ..checkpoints.from_config import build
from ..checkpoints.native_format import TokenIds, model_zip
from ..errors import HeadlightError
from ..model.config import ModelConfig
from ..model.hooks import Hook, hooked
from ..model.transformer import Transformer, to_dtype
from .training import Batch, Recipe, RunState, make_optimiser, state_of, train, train_bpe

Unit = Literal["letters", "pieces"]

LEAST, MOST = 2_000, 1_000_000  # bytes of a text
MAX_SIGNS = 256
PIECES = 512  # vocabulary of a tokenizer trained on the text
STEPS, SECONDS = 300, 60.0
BATCH, LENGTH = 16, 96
RATE, WARMUP = 6e-3, 40
KEPT = 10  # one tenth of the text is held out
EVERY = 10  # steps between two frames
SAMPLES = (0, 20, 50, 100, 200, 300)
SAMPLE, TEMPERATURE = 60, 0.7
WINDOWS = 32  # windows of the held-out part for the loss of a frame, and the same number of repeated strings
REPEATED = 24  # tokens of a string that is repeated
SHOWN = 24  # tokens of the attention map
SMOOTHED = 0.1  # added to each count
MAX_BYTES = 1 << 30
SHAPE: dict[str, Any] = {"d_model": 96, "n_heads": 4, "d_ff": 384, "n_decoder_layers": 2}


@dataclass(frozen=True)
class Text:
    """A text and its tokenization. Raises Refused for an unsuitable text, with the allowed range."""

    text: str
    unit: Unit = "letters"
    seed: int = 0

    def __post_init__(self) -> None:
        size = len(self.text.encode())
        if size > MOST:
            raise HeadlightError(f"That is {size / 1e6:.1f} MB; {MOST / 1e6:.0f} MB is the most.")
        if len(self.text) < LEAST:
            raise HeadlightError(f"That is {len(self.text):,} characters: too few to learn from. {LEAST:,} at least.")
        if self.unit == "letters" and len(set(self.text)) > MAX_SIGNS:
            raise HeadlightError(
                f"This text has {len(set(self.text)):,} different signs; {MAX_SIGNS} are the most. Let it learn word pieces."
            )
        if (needed := bytes_needed(self)) > MAX_BYTES:
            raise HeadlightError(
                f"To learn this takes {needed / 1e6:,.0f} MB, and {MAX_BYTES / 1e6:,.0f} MB is the most."
            )

    @cached_property
    def signs(self) -> tuple[str, ...]:
        """The characters by token id."""
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
        """Vocabulary size."""
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
        """The start of its samples: the most frequent word of at least four letters, or the first characters."""
        words = Counter(re.findall(r"[^\W\d_]{4,12}", self.learnt))
        return f"{words.most_common(1)[0][0]} " if words else self.learnt[:6]

    @property
    def config(self) -> ModelConfig:
        return ModelConfig(vocab_size=self.n_tokens, **SHAPE, n_ctx=LENGTH, position="rotary")

    @property
    def reader(self) -> Tokenizer:
        """The tokenizer saved with a model of this text: one character per token, or word pieces."""
        if self.tokenizer is not None:
            return self.tokenizer
        reader = Tokenizer(models.WordLevel({sign: i for i, sign in enumerate(self.signs)}))
        reader.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        reader.decoder = decoders.Fuse()
        return reader


@dataclass(frozen=True)
class Baselines:
    """Losses of models without parameters on the held-out part, in nats per token."""

    blind: float  # uniform
    counts: float  # unigram
    pairs: float  # bigram


@dataclass(frozen=True)
class TextPoint:
    """One step: its loss, and the training time so far."""

    step: int
    loss: float
    seconds: float


@dataclass(frozen=True, eq=False)
class TextFrame:
    """Measures and state of one step."""

    step: int
    seconds: float
    loss: float  # on the held-out part
    back: tuple[tuple[float, ...], ...]  # [layer][head]: mean weight on the previous token, there
    repeat: tuple[
        tuple[float, ...], ...
    ]  # induction score: weight on the token after an earlier copy, in repeated random strings
    pattern: Tensor  # [layer, head, query, key] of the first tokens of the held-out part
    tokens: tuple[str, ...]  # of the pattern
    sample: str  # continuation of Text.prompt, with the same random numbers each time; "" if not sampled
    weights: RunState  # from which a run can continue


def bytes_needed(of: Text) -> int:
    """Approximate memory of a run: weights, gradients and two moments, activations of a step, and the tokens of the text."""
    config = ModelConfig(vocab_size=len(set(of.text)) if of.unit == "letters" else PIECES, **SHAPE)
    weights = config.vocab_size * 96 + 2 * (4 * 96 * 97 + 2 * 96 * 384 + 384 + 5 * 96) + 2 * 96
    tokens = BATCH * LENGTH
    activations = tokens * (config.vocab_size * 3 + 2 * (16 * 96 + 3 * 384 + 3 * 4 * LENGTH))
    return 4 * (4 * weights + activations) + 8 * len(of.text)


def baselines(of: Text) -> Baselines:
    """Count on the training part, with SMOOTHED added to each count, and measure on the held-out part."""
    n = of.n_tokens
    learnt, kept = (torch.tensor(of.ids(text)) for text in (of.learnt, of.kept))
    single = torch.bincount(learnt, minlength=n).float() + SMOOTHED
    pairs = torch.bincount(learnt[:-1] * n + learnt[1:], minlength=n * n).view(n, n).float() + SMOOTHED
    unigram = -(single / single.sum()).log()[kept].mean()
    bigram = -(pairs / pairs.sum(1, keepdim=True)).log()[kept[:-1], kept[1:]].mean()
    return Baselines(math.log(n), float(unigram), float(bigram))


def text_run(
    of: Text, seconds: float = SECONDS, steps: int = STEPS, start: RunState | None = None
) -> Iterator[TextPoint | TextFrame]:
    """Yield points and frames in the order of their steps, until `steps` steps or `seconds` of training are over.

    The last frame is that of the last step, with the state from which a second run can continue. To stop early, stop reading.
    """
    model = build(of.config, of.seed).model
    recipe = recipe_of(of, steps)
    optimiser = make_optimiser(model, recipe)
    evaluation = _Evaluation(of)
    ids = torch.tensor(of.ids(of.learnt))
    if start is None:
        yield evaluation.frame(model, optimiser, 0, 0.0)
    spent, resumed = 0.0, time.perf_counter()
    for done in train(model, lambda step: batch(of, ids, step), recipe, start=start, optimiser=optimiser):
        spent += time.perf_counter() - resumed
        yield TextPoint(done.step, done.loss, spent)
        is_last = done.step == steps or spent >= seconds
        if is_last or done.step % EVERY == 0 or done.step in SAMPLES:
            yield evaluation.frame(model, optimiser, done.step, spent, writes=is_last or done.step in SAMPLES)
        if is_last:
            return
        resumed = time.perf_counter()


def recipe_of(of: Text, steps: int) -> Recipe:
    return Recipe(steps=steps, learning_rate=RATE, warmup=WARMUP, seed=of.seed, mixed=False)


def batch(of: Text, ids: Tensor, step: int) -> Batch:
    """Windows of the training part, at positions that depend on the seed and the step."""
    generator = torch.Generator().manual_seed(of.seed * 1_000_003 + step)
    length = min(LENGTH, len(ids) - 2)
    starts = torch.randint(len(ids) - length - 1, (BATCH,), generator=generator)
    rows = torch.stack([ids[i : i + length + 1] for i in starts.tolist()])
    return Batch(rows, torch.ones_like(rows, dtype=torch.bool))


class _Evaluation:
    """The parts of a text on which its frames are evaluated."""

    def __init__(self, of: Text) -> None:
        self.of = of
        kept = torch.tensor(of.ids(of.kept))
        self.length = min(LENGTH, len(kept) - 1)
        last = len(kept) - self.length - 1
        starts = [round(i * last / (WINDOWS - 1)) for i in range(WINDOWS)]
        self.windows = torch.stack([kept[i : i + self.length + 1] for i in starts])
        generator = torch.Generator().manual_seed(of.seed)
        once = torch.randint(of.n_tokens, (WINDOWS, REPEATED), generator=generator)
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
        # Weight of a token of the repetition on the token after its first occurrence.
        repeat = twice.diagonal(1 - REPEATED, -2, -1)[..., 1:].mean((0, -1))
        state = RunState(step, {name: t.clone() for name, t in state_of(model, optimiser).items()})
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
    """Return (weights [text, layer, head, query, key], the residual stream after the last layer)."""
    assert model.decoder is not None
    points = [f"decoder.blocks.{i}.attn.hook_pattern" for i in range(len(model.decoder.blocks))]
    seen: dict[str, Tensor] = {}
    hooks: dict[str, Hook] = {point: partial(seen.__setitem__, point) for point in points}
    with hooked(model, hooks):
        x = model.last_residual(ids)
    return torch.stack([seen[point] for point in points], 1), x


@torch.inference_mode()
def write(of: Text, model: Transformer, n: int = SAMPLE) -> str:
    """Sample after the prompt at TEMPERATURE, with the same random numbers for every model."""
    assert model.head is not None
    generator = torch.Generator().manual_seed(of.seed)
    ids = of.ids(of.prompt)
    n_prompt = len(ids)
    for _ in range(n):
        logits = model.head(model.last_residual(torch.tensor([ids[-LENGTH:]]))[0, -1])
        ids.append(int(torch.multinomial((logits / TEMPERATURE).softmax(-1), 1, generator=generator)))
    return of.read(ids[n_prompt:])


def restored(of: Text, state: RunState) -> Transformer:
    """The model of a frame."""
    model = build(of.config, of.seed).model
    weights = {name.removeprefix("model."): x for name, x in state.tensors.items() if name.startswith("model.")}
    model.load_state_dict(weights, strict=False)
    return model


# The model of a text in the list of models.

NAME = re.compile(r"trained-text-([a-z2-7]{12})", re.ASCII)
TITLE = re.compile(r"Trained text ([a-z2-7]{12})", re.ASCII)


def key_of(name: str) -> str | None:
    """Parse the key of a model from its id or title, as in parse_config(); None for any other."""
    found = NAME.fullmatch(name) or TITLE.fullmatch(name)
    return None if found is None else found[1]


def described(key: str) -> ModelSpec:
    """Describe the model of a user's text by its key. The description contains nothing of the text."""
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
    of: Text, state: RunState, key: str, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32
) -> Loaded:
    """The model of a frame with its tokenizer, as from load()."""
    made = build(of.config, of.seed)
    return replace(
        made,
        spec=replace(described(key), n_params=made.spec.n_params),
        model=to_dtype(restored(of, state), dtype).to(device).eval().requires_grad_(False),
        tokenizer=of.reader,
        device=torch.device(device),
        dtype=dtype,
    )


def archive(of: Text, state: RunState, loss: float) -> bytes:
    """A zip of the model of a frame without its text: config, weights, tokenizer, recipe, card. Unpacked, core.load() reads it."""
    recipe = {"step": state.step, "batch": BATCH, "length": LENGTH, "unit": of.unit, **asdict(recipe_of(of, STEPS))}
    card = (
        f"# A text of {len(of.text):,} characters, step {state.step}\n\n"
        f"Loss on its last tenth, from which it did not learn: {loss:.4f} nats. "
        f"Counts of pairs have {baselines(of).pairs:.4f} there.\n"
    )
    return model_zip(restored(of, state), recipe, card, tokenizer=of.reader, ids=TokenIds(pad=None))
