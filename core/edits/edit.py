"""Edit: the base of all edits with its kinds of fields, the hooks of several edits together, and edits as text in links."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, partial
from itertools import groupby
from typing import Annotated, Any, ClassVar, Literal, Protocol, get_type_hints

import torch
from torch import Tensor

from ..errors import InterventionError
from ..model.custom_mask import Cells, Painted, Region, Spans, apply_regions, check_size
from ..model.hooks import Hook, compose_hooks
from ..model.rules import ScoreRule
from ..model.transformer import Transformer

HIGHEST = 10**9  # largest layer, head, token or seed
MAX_PLACES = 1 << 20  # positions in a list


class Kind(Protocol):
    """One kind of field."""

    form: str  # an example of its format in a link, for error messages

    def kept(self, value: Any, name: str) -> Any:
        """The normalised value. Raises InterventionError, naming the field."""
        ...

    def text_of(self, value: Any) -> str:
        """A normalised value in the format of a link."""
        ...

    def read(self, token: str) -> Any:
        """The value of a token of a link; None if it is of another kind. Raises InterventionError."""
        ...


@dataclass(frozen=True)
class Word:
    """One of a few words; `words` maps each to its value."""

    words: Mapping[str, Any]

    @property
    def form(self) -> str:
        return " or ".join(self.words)

    def kept(self, value: Any, name: str) -> Any:
        for known in self.words.values():
            if type(value) is type(known) and value == known:
                return known
        allowed = ", ".join(map(repr, self.words.values()))
        raise InterventionError(f"{name} cannot be {shown(value)}. It is one of {allowed}.")

    def text_of(self, value: Any) -> str:
        return next(word for word, known in self.words.items() if known == value)

    def read(self, token: str) -> Any:
        return self.words.get(token)


@dataclass(frozen=True)
class Whole:
    """An integer after `letter`, at least `lowest`."""

    letter: str = ""
    lowest: int = 0

    @property
    def form(self) -> str:
        return f"{self.letter}3"

    def kept(self, value: Any, name: str) -> int:
        return _whole(value, name, self.lowest)

    def text_of(self, value: int) -> str:
        return f"{self.letter}{value}"

    def read(self, token: str) -> int | None:
        return int(token[len(self.letter) :]) if re.fullmatch(rf"{self.letter}-?[0-9]{{1,12}}", token) else None


@dataclass(frozen=True)
class Number:
    """A finite number above `above`."""

    above: float = -math.inf
    form: str = "0.5"

    def kept(self, value: Any, name: str) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if isinstance(value, (str, bool)) or not self.above < number < math.inf:
            above = "" if self.above == -math.inf else f" above {self.above:g}"
            raise InterventionError(f"{name} must be a finite number{above}; {shown(value)} is not. Try 0.5 or 2.")
        return number

    def text_of(self, value: float) -> str:
        return repr(value).removesuffix(".0").replace("+", "")  # a + in a link means a space

    def read(self, token: str) -> float | None:
        number = re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?", token)
        return float(token) if number else None


@dataclass(frozen=True)
class Several:
    """Positions as runs of neighbours: an int, a range, a slice with both ends, or several of them."""

    letter: str

    @property
    def form(self) -> str:
        return f"{self.letter}3 or {self.letter}2-5.9"

    def kept(self, value: Any, name: str) -> Spans:
        return _spans(value, name)

    def text_of(self, value: Spans) -> str:
        return self.letter + ".".join(map(_run, value))

    def read(self, token: str) -> Spans | None:
        if not re.fullmatch(rf"{self.letter}[0-9][0-9.-]*", token):
            return None
        return tuple(_run_of(part, token) for part in token[len(self.letter) :].split("."))


@dataclass(frozen=True)
class SingleCells:
    """Cells (query, key); the key may be several positions, as in Several."""

    form: str = "11x3 or 11x3.12x3-5"

    def kept(self, value: Any, name: str) -> Cells:
        rows: dict[int, list[range]] = {}
        for cell in _each(value, name):
            pair = cell if isinstance(cell, (tuple, list)) else ()
            if len(pair) != 2:
                raise InterventionError(f"{name} holds {shown(cell)}, which is no cell. A cell is (query, key).")
            rows.setdefault(_whole(pair[0], f"A query of {name}"), []).extend(_spans(pair[1], f"A key of {name}"))
        return tuple((query, run) for query in sorted(rows) for run in _merged(rows[query]))

    def text_of(self, value: Cells) -> str:
        return ".".join(f"{query}x{_run(keys)}" for query, keys in value)

    def read(self, token: str) -> Cells | None:
        if not re.fullmatch(r"[0-9]+x[0-9][0-9x.-]*", token):
            return None
        cells = []
        for part in token.split("."):
            query, _, keys = part.partition("x")
            cells.append((_digits(query, token), _run_of(keys, token)))
        return tuple(cells)


@dataclass(frozen=True)
class Distances:
    """(first, last) of key − query. At most one of them is None, for no limit."""

    form: str = "d1.. or d-3..3"

    def kept(self, value: Any, name: str) -> tuple[int | None, int | None]:
        if not isinstance(value, (tuple, list)) or len(value) != 2 or (value[0] is None and value[1] is None):
            raise InterventionError(f"{name} are (first, last), and one may be None, not {shown(value)}.")
        first, last = (None if end is None else _whole(end, f"An end of {name}", -HIGHEST) for end in value)
        if first is not None and last is not None and first > last:
            raise InterventionError(f"{name} go from {first} to {last}, which is nothing. Give the lower one first.")
        return first, last

    def text_of(self, value: tuple[int | None, int | None]) -> str:
        first, last = ("" if end is None else str(end) for end in value)
        return f"d{first}..{last}"

    def read(self, token: str) -> tuple[int | None, int | None] | None:
        match = re.fullmatch(r"d(-?[0-9]{1,12})?\.\.(-?[0-9]{1,12})?", token)
        return tuple(None if end is None else int(end) for end in match.groups()) if match else None  # type: ignore[return-value]


@dataclass(frozen=True)
class Places:
    """A list of positions in the order of the tokens. Runs that rise by one are written as 0-7."""

    form: str = "0-3.5.4"

    def kept(self, value: Any, name: str) -> tuple[int, ...]:
        places: list[int] = []
        for part in _each(value, name):
            if isinstance(part, range):
                if len(part) > MAX_PLACES - len(places):
                    raise InterventionError(f"{name} has more than {MAX_PLACES:,} positions, which is the most.")
                places.extend(_whole(place, f"A position of {name}") for place in part)
            else:
                places.append(_whole(part, f"A position of {name}"))
        if not 0 < len(places) <= MAX_PLACES:
            raise InterventionError(
                f"{name} has {len(places):,} positions. Give 1 to {MAX_PLACES:,}, one for each token."
            )
        return tuple(places)

    def text_of(self, value: tuple[int, ...]) -> str:
        runs: list[range] = []
        for place in value:
            if runs and place == runs[-1].stop:
                runs[-1] = range(runs[-1].start, place + 1)
            else:
                runs.append(range(place, place + 1))
        return ".".join(map(_run, runs))

    def read(self, token: str) -> tuple[range, ...] | None:
        return (
            tuple(_run_of(part, token) for part in token.split(".")) if re.fullmatch(r"[0-9][0-9.-]*", token) else None
        )


def _whole(value: Any, name: str, lowest: int = 0) -> int:
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not lowest <= number <= HIGHEST:
        raise InterventionError(f"{name} must be a whole number from {lowest:,} to {HIGHEST:,}, not {shown(value)}.")
    return number


def _each(value: Any, name: str) -> Iterable[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InterventionError(f"{name} must be a list, not {shown(value)}.")
    return value


def _spans(value: Any, name: str) -> Spans:
    """Any spelling of several positions as sorted runs that do not touch."""
    if isinstance(value, slice):
        if value.stop is None or value.step not in (None, 1):
            raise InterventionError(f"{name} can be a slice with an end and without steps, not {shown(value)}.")
        value = range(value.start or 0, value.stop)
    several = isinstance(value, Iterable) and not isinstance(value, range)
    runs = [run for part in (_each(value, name) if several else [value]) for run in _runs(part, name)]
    if not runs:
        raise InterventionError(f"{name} is empty. Name at least one place, or leave it out to mean all.")
    return _merged(runs)


def _runs(part: Any, name: str) -> Iterable[range]:
    """One position, or a range of them, as runs of neighbours."""
    if not isinstance(part, range):
        position = _whole(part, name)
        return [range(position, position + 1)]
    if part and part.step == 1:
        return [range(_whole(part.start, name), _whole(part.stop - 1, name) + 1)]
    if len(part) > MAX_PLACES:
        raise InterventionError(f"{name} has {len(part):,} places, and {MAX_PLACES:,} is the most.")
    return [range(position, position + 1) for position in (_whole(p, name) for p in part)]


def _merged(runs: Iterable[range]) -> Spans:
    merged: list[range] = []
    for run in sorted(runs, key=lambda run: (run.start, run.stop)):
        if merged and run.start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, run.stop))
        else:
            merged.append(range(run.start, run.stop))
    return tuple(merged)


def _run(span: range) -> str:
    return str(span.start) if len(span) == 1 else f"{span.start}-{span.stop - 1}"


def _run_of(part: str, token: str) -> range:
    first, dash, last = part.partition("-")
    start = _digits(first, token)
    stop = _digits(last, token) if dash else start
    if stop < start:
        raise InterventionError(f"“{short(token)}” goes from {start} to {stop}. Write the lower number first.")
    return range(start, stop + 1)


def _digits(text: str, token: str) -> int:
    if not re.fullmatch("[0-9]{1,12}", text):
        raise InterventionError(f"“{short(token)}” is no list of places. Write it like 3, 2-5 or 2-5.9.")
    return int(text)


def short(text: str) -> str:
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= 40 else text[:40] + "…"


def shown(value: Any) -> str:
    return short(repr(value))


StackName = Literal["encoder", "decoder"]
Site = Literal["attn", "cross_attn"]

_STACKS = Word({"encoder": "encoder", "decoder": "decoder"})
_SITES = Word({"self": "attn", "cross": "cross_attn"})

AnyStack = Annotated[StackName | None, _STACKS]
OneStack = Annotated[StackName, _STACKS]
AnySite = Annotated[Site | None, _SITES]
OneSite = Annotated[Site, _SITES]
AnyLayer = Annotated[int | None, Whole("L")]
OneLayer = Annotated[int, Whole("L")]
AnyHead = Annotated[int | None, Whole("H")]
OneHead = Annotated[int, Whole("H")]


class Intervention(Protocol):
    """Protocol for objects that provide hooks. Only subclasses of Edit can be stored in a link."""

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        """Hooks by the names of their hook points. Raises InterventionError if the edit does not apply to this model."""
        ...


KINDS: dict[str, type[Edit]] = {}  # by the word of the kind in links


@dataclass(frozen=True, repr=False)
class Edit:
    """A frozen, hashable description of a change. A new kind is a subclass with a `word` and annotated fields."""

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
        """Hooks by the names of their hook points. Raises InterventionError if the edit does not apply to this model."""
        raise NotImplementedError

    @property
    def sees_ahead(self) -> bool:
        """True if its effect on a token depends on later tokens, so that the text cannot be read in chunks."""
        return False

    def __repr__(self) -> str:
        """The constructor call: required fields by position, others by name if they differ from the default."""
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
    """True if the default of the field is None."""
    return next(field.default for field in fields(edit) if field.name == name) is None


def _spelled(value: Any) -> str:
    """repr() of a value, with a run of one position as an int, and a single run without its tuple."""
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
        return _painter(self.regions, apply_regions(self.regions, self.n_heads))(rule)


def _painter(regions: tuple[Region, ...], layers: tuple[Painted, ...]) -> Callable[[ScoreRule], ScoreRule]:
    """A hook of rules that applies the compiled regions to the mask."""
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
    """A hook of positions [batch or 1, pos]. `to` receives the positions [token] of a text's real tokens, in order.

    Tokens without a position have -1, which does not change.
    """

    to: Callable[[Tensor], Tensor]

    def __call__(self, positions: Tensor) -> Tensor:
        return _apply_moves((self,), positions)


def _apply_moves(moves: Sequence[Move], positions: Tensor) -> Tensor:
    """Before the first move, every real token has a unique position, and padding repeats one of them.

    Tokens are therefore identified once, for padding on either side, and remain so when moves give several the same position.
    """
    rows = []
    for row in positions:
        counted = row >= 0
        moved, token = row[counted].unique(return_inverse=True)
        for move in moves:
            moved = move.to(moved)
        rows.append(row.masked_scatter(counted, moved[token]))
    return torch.stack(rows)


def hooks_of(model: Transformer, interventions: Iterable[Intervention]) -> dict[str, Hook]:
    """The hooks of all interventions, in their order, composed into one for each hook point.

    Consecutive edits of a mask are compiled together, once for all layers with the same edits, and consecutive moves identify tokens
    once. Raises InterventionError if an intervention does not apply to the model, and TooLarge if masks have too many parts.
    """
    by_point: dict[str, list[Hook]] = {}
    for intervention in interventions:
        for point, hook in intervention.hooks(model).items():
            by_point.setdefault(point, []).append(hook)
    compiled: dict[tuple[int, ...], Hook] = {}
    size = 0

    def together(regions: tuple[Region, ...]) -> Hook:
        key = tuple(map(id, regions))
        if key not in compiled:
            layers = apply_regions(regions, model.config.n_heads)
            nonlocal size
            size += sum(layer.nbytes for layer in layers)
            check_size(size)
            compiled[key] = _painter(regions, layers)
        return compiled[key]

    def merged(hooks: list[Hook]) -> Iterator[Hook]:
        for kind, some in groupby(hooks, key=type):
            if kind is Paint:
                yield together(tuple(region for paint in some if isinstance(paint, Paint) for region in paint.regions))
            elif kind is Move:
                yield partial(_apply_moves, [move for move in some if isinstance(move, Move)])
            else:
                yield from some

    return {point: compose_hooks(*merged(hooks)) for point, hooks in by_point.items()}


def stacks_of(model: Transformer, stack: StackName | None) -> list[StackName]:
    """The stack of this name, or all stacks of the model (None)."""
    names: list[StackName] = [name for name, _ in model.config.stacks]
    if stack is not None and stack not in names:
        raise InterventionError(f"This model has no {stack}; it has: {', '.join(names)}.")
    return names if stack is None else [stack]


def one_stack_of(model: Transformer, stack: StackName | None, what: str) -> StackName:
    """The stack of this name, or the only one (None). Raises InterventionError, naming `what`, if the model has two."""
    names = stacks_of(model, stack)
    if len(names) > 1:
        raise InterventionError(f"This model reads two texts: say whose {what} are meant, encoder or decoder.")
    return names[0]


def attentions_of(model: Transformer, stack: StackName | None, layer: int | None, site: Site | None) -> list[str]:
    """The module paths of the selected attentions. Raises InterventionError if there are none."""
    n_layers: dict[str, int] = dict(model.config.stacks)
    crossed = model.encoder is not None
    attentions = [
        f"{name}.blocks.{i}.{its_site}"
        for name in stacks_of(model, stack)
        for i in range(n_layers[name])
        for its_site in ("attn", *(["cross_attn"] if name == "decoder" and crossed else []))
        if layer in (None, i) and site in (None, its_site)
    ]
    if not attentions:
        layers = ", ".join(f"{name} layers 0 to {n - 1}" for name, n in model.config.stacks)
        raise InterventionError(
            f"There is no {site or 'attention'} in {stack or 'any'} layer {'' if layer is None else layer}; "
            f"this model has {layers}."
        )
    return attentions


def rule_hooks(edit: Any, model: Transformer, change: Callable[[ScoreRule], ScoreRule]) -> Mapping[str, Hook]:
    """Hooks that change the rules of the attentions that the fields stack, layer and site of an edit select."""
    return {f"{name}.hook_rule": change for name in attentions_of(model, edit.stack, edit.layer, edit.site)}


def check_head(model: Transformer, head: int | None) -> None:
    """Raises InterventionError for a head that the model does not have. None means all heads."""
    if head is not None and not 0 <= head < model.config.n_heads:
        raise InterventionError(f"There is no head {head}: this model's heads are 0 to {model.config.n_heads - 1}.")


MAX_CHARACTERS = (
    4_000  # of the edits in a link, which leaves room for the rest of the URL within the limits of servers and browsers
)
MAX_EDITS = 500


def to_text(interventions: Iterable[Intervention]) -> str:
    """Edits as text for from_text(). Raises InterventionError for interventions other than edits, and if the text is too long."""
    parts = [edit_text(edit) for edit in interventions]
    text = "~".join(parts)
    if len(text) > MAX_CHARACTERS or len(parts) > MAX_EDITS:
        raise InterventionError(
            f"These {len(parts):,} edits take {len(text):,} characters; a link holds {MAX_EDITS} edits of {MAX_CHARACTERS:,} "
            "characters together. Edit whole keys, whole queries or regions instead of single cells."
        )
    return text


def from_text(text: str) -> tuple[Edit, ...]:
    """The edits of a text by to_text() or by hand. Raises only InterventionError, with the reason."""
    if len(text) > MAX_CHARACTERS:
        raise InterventionError(f"The edits take {len(text):,} characters, and {MAX_CHARACTERS:,} is the most.")
    parts = text.split("~") if text else []
    if len(parts) > MAX_EDITS:
        raise InterventionError(f"These are {len(parts):,} edits, and {MAX_EDITS} is the most.")
    return tuple(map(_read_edit, parts))


def edit_text(edit: Intervention) -> str:
    """One edit as text of any length. Raises InterventionError for interventions other than edits."""
    if not isinstance(edit, Edit) or KINDS.get(edit.word) is not type(edit):
        known = ", ".join(kind.__name__ for kind in KINDS.values())
        raise InterventionError(f"{type(edit).__name__} cannot be written as text. These can: {known}.")
    tokens = [edit.word]
    for field in fields(edit):
        value = getattr(edit, field.name)
        if value != field.default:
            tokens.append(kinds_of(type(edit))[field.name].text_of(value))
    return "_".join(tokens)


def _read_edit(part: str) -> Edit:
    word, *tokens = part.split("_")
    edit = KINDS.get(word)
    if edit is None:
        raise InterventionError(f"There is no edit “{short(word)}”. There are: {', '.join(KINDS)}.")
    kinds = kinds_of(edit)
    values = {}
    for token in tokens:
        matches = ((name, value) for name, kind in kinds.items() if (value := kind.read(token)) is not None)
        name, value = next(matches, (None, None))
        if name is None:
            raise InterventionError(f"“{short(token)}” says nothing of {word}. {_usage(edit)}")
        if name in values:
            raise InterventionError(f"“{short(part)}” says twice what its {name} is. Leave one out.")
        values[name] = value
    missing = [field.name for field in fields(edit) if field.default is MISSING and field.name not in values]
    if missing:
        raise InterventionError(f"“{short(part)}” does not say its {' and '.join(missing)}. {_usage(edit)}")
    return edit(**values)


def _usage(edit: type[Edit]) -> str:
    """The format of an edit, in words."""
    known = [f"{name} as {kind.form}" for name, kind in kinds_of(edit).items()]
    return f"It takes {', '.join(known)}, joined by _."
