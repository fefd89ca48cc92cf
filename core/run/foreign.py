"""Base of runs that core.model did not compute: they have attentions, and refuse questions about the rest of the model.

One kind is wrapped (core.run.wrapped): a model of transformers, which has queries and keys and can be run again. The other is
made of attention weights (core.run.from_attentions), and nothing can be run again. Another source of runs subclasses
ForeignModel, whose run() returns a ForeignRecord.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NoReturn, Self, cast

from torch import Tensor

from ..checkpoints import Loaded
from ..edits import Intervention
from ..errors import HeadlightError
from ..model.config import ModelConfig
from ..model.hooks import Hook
from .attention import AttentionRecord
from .recorder import NonFinite, check_positions
from .request import Prompt
from .trace_record import TraceRecord

Stack = Literal["encoder", "decoder"]
Site = Literal["attn", "cross_attn"]


@dataclass(frozen=True)
class Origin:
    """The source of a foreign run, and what is not known of such a run."""

    name: str  # of the function that made it
    refusal: Callable[[str], str] = field(compare=False)  # what cannot be read from the run -> a sentence that says so
    unknown: tuple[str, ...]  # everything that cannot be read from it, a line each

    def refuse(self, what: str) -> NoReturn:
        """Raises Refused: `what` cannot be read from the run."""
        raise HeadlightError(self.refusal(what))


class StandIn:
    """Takes the place of a part of a model: every attribute that it does not have raises Refused."""

    missing = "the inside of the model ({name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "origin":
            raise AttributeError(name)
        origin: Origin = self.origin
        origin.refuse(self.missing.format(name=name))


@dataclass(frozen=True, eq=False)
class ForeignTransformer(StandIn):
    """Takes the place of a Transformer: tells whether it has an encoder, a decoder and a head."""

    origin: Origin
    config: ForeignConfig
    head: Any = None

    @property
    def encoder(self) -> Literal[True] | None:
        return True if self.config.n_encoder_layers else None

    @property
    def decoder(self) -> Literal[True] | None:
        return True if self.config.n_decoder_layers else None


@dataclass(frozen=True, kw_only=True)
class ForeignConfig:
    """The known part of a model's shape. Anything else that ModelConfig has raises Refused."""

    kind: Literal["encoder", "decoder", "encoder-decoder"]
    n_encoder_layers: int
    n_decoder_layers: int

    @property
    def stacks(self) -> tuple[tuple[Stack, int], ...]:
        both: tuple[tuple[Stack, int], ...] = (("encoder", self.n_encoder_layers), ("decoder", self.n_decoder_layers))
        return tuple((name, n) for name, n in both if n)

    @property
    def causal(self) -> bool:
        return self.n_decoder_layers > 0

    def __getattr__(self, name: str) -> Any:
        if name in CONFIG_NAMES:
            self.refuse(f"the model's {name}")
        raise AttributeError(name)

    def refuse(self, what: str) -> NoReturn:
        """Raises Refused: `what` is not known."""
        raise NotImplementedError


CONFIG_NAMES = {f.name for f in fields(ModelConfig)} | {name for name in vars(ModelConfig) if not name.startswith("_")}


class NoWeights:
    """Takes the place of a mark of weights where there are none that could change."""

    def check(self) -> None:
        pass


@dataclass(frozen=True, eq=False, repr=False)
class ForeignPass(StandIn):
    """Takes the place of a Pass: texts and edits. A subclass that can run again adds how."""

    missing = "the pass of the model between its attentions ({name})"

    loaded: ForeignModel
    prompt: Prompt
    interventions: tuple[Intervention, ...] = ()
    edits: Mapping[str, Hook] = field(default_factory=dict)
    weights: Any = field(default_factory=NoWeights)  # with check(), which raises Outdated if they have changed

    @property
    def origin(self) -> Origin:
        return self.loaded.origin

    @property
    def edited(self) -> frozenset[str]:
        return frozenset(self.edits)

    def of(self, text: int) -> Self:
        """The same over one text of the batch, with its padding."""
        return replace(self, prompt=self.prompt.of(text))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ForeignModel(Loaded):
    """Takes the place of a loaded model."""

    origin: Origin
    no_text: str = ""  # why it cannot be run on a text

    @property
    def cannot(self) -> tuple[str, ...]:
        """The things that are not known of a run of this model, a line each."""
        return self.origin.unknown

    def refuse(self, what: str) -> NoReturn:
        """Raises Refused: `what` cannot be read from a run of this model."""
        self.origin.refuse(what)

    def run(
        self, prompt: Prompt, interventions: tuple[Intervention, ...], watch: Callable[[Any], object]
    ) -> ForeignRecord:
        """The run of these texts, as core.run.trace.trace_tokens() returns it."""
        self.refuse("another run")


@dataclass(frozen=True, eq=False, repr=False)
class ForeignRecord(TraceRecord):
    """A run with attentions, in which everything that is not known raises Refused."""

    @property
    def cannot(self) -> tuple[str, ...]:
        """The things that are not known of this run, a line each."""
        return cast(ForeignModel, self.loaded).cannot

    def require_model(self, what: str) -> NoReturn:
        """Raises Refused: `what` cannot be read from this run."""
        cast(ForeignModel, self.loaded).refuse(what)

    def __getitem__(self, name: str) -> AttentionRecord | Tensor:
        """An attention by its name, or what activation() returns. Raises KeyError as that does."""
        return next((record for record in self.attention if record.name == name), None) or self.activation(name)

    def activation(self, point: str, positions: Sequence[int] | None = None) -> Tensor:
        """q, k, v, z, scores or pattern of an attention, such as decoder.blocks.3.attn.hook_pattern.

        Raises KeyError for an attention that the model does not have, Refused for anything that is not known, and
        IndexError.
        """
        name, _, kind = point.rpartition(".")
        record = next((record for record in self.attention if record.name == name), None)
        if record is None:
            if point.startswith(("encoder.", "decoder.", "head.")) and not name.endswith("attn"):
                self.require_model(f"the point {point!r}")
            near = ", ".join(record.name for record in self.records[:2])
            raise KeyError(
                f"there is no attention {name or point!r}; there are {near} and so on, and run.cannot lists what else is not known"
            )
        rows = check_positions(positions, record.n_key if kind in ("hook_k", "hook_v") else record.n_query)
        if kind in ("hook_q", "hook_k", "hook_v"):
            return getattr(record, kind[-1])[:, rows].transpose(0, 1)
        if kind == "hook_z":
            return record.z(queries=rows).transpose(0, 1)
        if kind in ("hook_scores", "hook_pattern"):
            return getattr(record, kind.removeprefix("hook_"))(queries=rows)
        self.require_model(f"the point {point!r}")

    def _first_non_finite(
        self, values: Iterable[tuple[AttentionRecord, Tensor]], point: str, what: str
    ) -> NonFinite | None:
        """The first of these tensors [head, query, …] with NaN or infinity, and its first such query."""
        for record, x in values:
            bad = ~x.isfinite().all(-1).all(0)  # [query]
            if bool(bad.any()):
                at = int(bad.int().argmax())
                kind: Literal["nan", "inf"] = "nan" if bool(x[:, at].isnan().any()) else "inf"
                return NonFinite(record.stack, record.layer, f"{record.name}.{point}", what, kind, at)
        return None


def attention_name(stack: str, layer: int, site: str) -> str:
    """The name of an attention, as in a Transformer."""
    return f"{stack}.blocks.{layer}.{site}"
