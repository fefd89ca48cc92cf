"""Edit: what every kind of edit has in common, the register of all kinds, and where in a model an edit applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, partial
from itertools import groupby
from typing import Any, ClassVar, Protocol, get_type_hints

import torch
from torch import Tensor

from ..errors import InterventionError
from ..model.hooks import Hook, compose_hooks
from ..model.mask_edits import Painted, Region, check_size, painted
from ..model.rules import ScoreRule
from ..model.transformer import Transformer
from .fields import Kind, Site, StackName


class Intervention(Protocol):
    """Anything that says which hooks it sets in a model. Only kinds of Edit can be written into a link."""

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        """By the names of hook points. Raises InterventionError where this model has no place for it."""
        ...


KINDS: dict[str, type[Edit]] = {}  # by the word that names a kind in a link


@dataclass(frozen=True, repr=False)
class Edit:
    """A frozen, hashable record that says what to change. A new kind is one class with a `word` and annotated fields."""

    word: ClassVar[str]

    def __init_subclass__(cls, word: str = "") -> None:
        if word:
            cls.word = word
            KINDS[word] = cls

    def __post_init__(self) -> None:
        for name, kind in kinds_of(type(self)).items():
            value = getattr(self, name)
            if value is not None or not may_be_none(type(self), name):
                object.__setattr__(self, name, kind.kept(value, f"{name} of {type(self).__name__}"))

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        """By the names of hook points. Raises InterventionError where this model has no place for it."""
        raise NotImplementedError

    @property
    def sees_ahead(self) -> bool:
        """Whether what it does to one token depends on later ones, so that a text with it cannot be read in chunks."""
        return False

    def __repr__(self) -> str:
        """The call that makes it: what has no default by position, the rest by name and only where it differs."""
        parts = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is MISSING:
                parts.append(_spelled(value))
            elif value != field.default:
                parts.append(f"{field.name}={_spelled(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


@cache
def kinds_of(edit: type[Edit]) -> Mapping[str, Kind]:
    """Allowed values of each field, in the order of the fields."""
    hints = get_type_hints(edit, include_extras=True)
    return {field.name: hints[field.name].__metadata__[0] for field in fields(edit)}


def may_be_none(edit: type[Edit], name: str) -> bool:
    """Whether a field need not be said: its default is None."""
    return next(field.default for field in fields(edit) if field.name == name) is None


def _spelled(value: Any) -> str:
    """A run of one place as that place, and a single run without its tuple."""
    if not isinstance(value, tuple):
        return repr(value.start if isinstance(value, range) and len(value) == 1 else value)
    if len(value) == 1 and isinstance(value[0], range):
        return _spelled(value[0])
    return f"({', '.join(map(_spelled, value))}{',' if len(value) == 1 else ''})"


@dataclass(frozen=True, eq=False)
class Paint:
    """Hook that paints regions over the mask of a rule."""

    regions: tuple[Region, ...]
    n_heads: int

    def __call__(self, rule: ScoreRule) -> ScoreRule:
        return _painter(self.regions, painted(self.regions, self.n_heads))(rule)


def _painter(regions: tuple[Region, ...], layers: tuple[Painted, ...]) -> Callable[[ScoreRule], ScoreRule]:
    """A hook of rules that lays what the regions were compiled to over their mask."""
    last_query = max(region.last_query for region in regions)
    last_key = max(region.last_key for region in regions)

    def paint(rule: ScoreRule) -> ScoreRule:
        for name, n, last in (("query", rule.mask.n_query, last_query), ("key", rule.mask.n_key, last_key)):
            if last >= n:
                raise InterventionError(
                    f"There is no {name} {last} to edit: this text has positions 0 to {n - 1}. "
                    "Leave out what lies beyond, or give a longer text."
                )
        return replace(rule, mask=replace(rule.mask, edits=(*rule.mask.edits, *layers)))

    return paint


@dataclass(frozen=True, eq=False)
class Move:
    """A hook of positions [batch or 1, pos]. `to` is given the places of a text's real tokens, in their order, [token].

    Tokens that positions do not count have -1, and keep it.
    """

    to: Callable[[Tensor], Tensor]

    def __call__(self, positions: Tensor) -> Tensor:
        return _moved((self,), positions)


def _moved(moves: Sequence[Move], positions: Tensor) -> Tensor:
    """Every real token has a place of its own before the first move, and padding repeats one of them. So it is known then
    which token is which, on whichever side the padding is, and stays known when several have come to one place."""
    rows = []
    for row in positions:
        counted = row >= 0
        places, which = row[counted].unique(return_inverse=True)
        for move in moves:
            places = move.to(places)
        rows.append(row.masked_scatter(counted, places[which]))
    return torch.stack(rows)


def hooks_of(model: Transformer, interventions: Iterable[Intervention]) -> dict[str, Hook]:
    """The hooks of all interventions, in their order: one for each point.

    Neighbours that paint one mask are compiled together, once for all layers that they paint alike, and neighbours that move
    tokens tell these apart once. Raises InterventionError where the model has no place for one, and TooLarge where masks
    have too many parts.
    """
    by_point: dict[str, list[Hook]] = {}
    for intervention in interventions:
        for point, hook in intervention.hooks(model).items():
            by_point.setdefault(point, []).append(hook)
    known: dict[tuple[int, ...], Hook] = {}
    size = 0

    def together(regions: tuple[Region, ...]) -> Hook:
        key = tuple(map(id, regions))
        if key not in known:
            layers = painted(regions, model.config.n_heads)
            nonlocal size
            size += sum(layer.nbytes for layer in layers)
            check_size(size)
            known[key] = _painter(regions, layers)
        return known[key]

    def merged(hooks: list[Hook]) -> Iterator[Hook]:
        for kind, some in groupby(hooks, key=type):
            if kind is Paint:
                yield together(tuple(region for paint in some if isinstance(paint, Paint) for region in paint.regions))
            elif kind is Move:
                yield partial(_moved, [move for move in some if isinstance(move, Move)])
            else:
                yield from some

    return {point: compose_hooks(*merged(hooks)) for point, hooks in by_point.items()}


def stacks_of(model: Transformer, stack: StackName | None) -> list[StackName]:
    """The stacks that are meant: one, or (None) all that the model has."""
    names: list[StackName] = [name for name, _ in model.config.stacks]
    if stack is not None and stack not in names:
        raise InterventionError(f"This model has no {stack}; it has: {', '.join(names)}.")
    return names if stack is None else [stack]


def one_stack_of(model: Transformer, stack: StackName | None, what: str) -> StackName:
    """The stack that is meant. Raises InterventionError where None could be either of two, saying of what."""
    names = stacks_of(model, stack)
    if len(names) > 1:
        raise InterventionError(f"This model reads two texts: say whose {what} are meant, encoder or decoder.")
    return names[0]


def attentions_of(model: Transformer, stack: StackName | None, layer: int | None, site: Site | None) -> list[str]:
    """The module paths of the attentions that are meant; at least one, or an InterventionError."""
    n_layers: dict[str, int] = dict(model.config.stacks)
    crossed = model.encoder is not None
    found = [
        f"{name}.blocks.{i}.{its_site}"
        for name in stacks_of(model, stack)
        for i in range(n_layers[name])
        for its_site in ("attn", *(["cross_attn"] if name == "decoder" and crossed else []))
        if layer in (None, i) and site in (None, its_site)
    ]
    if not found:
        layers = ", ".join(f"{name} layers 0 to {n - 1}" for name, n in model.config.stacks)
        raise InterventionError(
            f"There is no {site or 'attention'} in {stack or 'any'} layer {'' if layer is None else layer}; "
            f"this model has {layers}."
        )
    return found


def check_head(model: Transformer, head: int | None) -> None:
    """Raises InterventionError for a head that the model does not have; None means all."""
    if head is not None and not 0 <= head < model.config.n_heads:
        raise InterventionError(f"There is no head {head}: this model's heads are 0 to {model.config.n_heads - 1}.")
