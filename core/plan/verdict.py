"""Verdict: whether a model fits where it is to be, the longest text and the most texts that do, and what else would help.

All is an upper bound in closed form (core.plan.memory_plan), found by halving, as memory never shrinks when a text or a batch grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig
from .cards import Split, fullest, on_cards
from .devices import DEVICES
from .dtypes import FORMATS, cache_format, weight_format
from .peak import INT
from .place import Place, on_card
from .plan import Memory, run_moments
from .training import backward_moments
from .weights import stored_weights
from .workload import Workload

LONGEST = 1 << 30  # tokens, or texts, beyond which none are tried
PIECE = 2048  # tokens that vLLM reads at once
RANK = 16
SMALL_CACHE = "Q8_0"
MOST_OFFERS = 4


@dataclass(frozen=True)
class SetUp:
    """A model, what it is to do, and where. `fragments` is the percent of all but the weights that an allocator loses in gaps.

    `split` is how place.cards cards share the model (core.plan.cards).
    """

    config: ModelConfig
    work: Workload
    place: Place
    split: Split = "across"
    fragments: int = 0


@dataclass(frozen=True)
class Offer:
    """One change that is enough by itself: `set_up` with it, and the bytes that this takes of the fullest card.

    kind         value
    attention    "flash" in place of attention that makes its maps
    logits       "last"
    piece        tokens read at once
    wasteful     several of these three, with commas, where none is enough alone
    bits         a format: of the weights, or "float16" of everything
    cache        a format of keys and values
    recompute    "full"
    tokens       of each text
    chats        texts at once
    optimizer    "sgd"
    rank         of adapters that are trained in place of all weights
    card         the name of the smallest card that is enough
    cards        how many of the same
    """

    kind: str
    value: int | str
    set_up: SetUp
    total: int

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "value": self.value, "total": self.total}


@dataclass(frozen=True)
class Verdict:
    """Bytes are those of the fullest card. `longest` tokens fit and take longest_bytes, one more takes next_bytes and does not.

    fits          as far as memory goes: a text may still be longer than the ceiling
    need, lost    the bytes by what they are for, and those that an allocator loses beside them; `total` is both
    longest       0 where not even one token fits; at most `ceiling`, the rows of a learned table of positions, where there is one
                  (one more may then fit and cannot run), and at most LONGEST
    unlimited     a longer text takes no more than its ids: every layer has a window and the prompt is read in pieces
    chats         the largest batch that fits with texts of this length; 0 where not even one does
    offers        room for, where it fits; where it does not, at most four changes, each enough alone
    """

    set_up: SetUp
    need: Memory
    lost: int
    total: int
    budget: int
    fits: bool
    longest: int
    longest_bytes: int
    next_bytes: int
    ceiling: int | None
    unlimited: bool
    chats: int
    offers: tuple[Offer, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; of the set-up the workload, the place and the rest, not the config."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        work = asdict(self.set_up.work)
        for name in ("dtype", "weight_dtype", "kv_dtype"):
            work[name] = None if work[name] is None else dtype_name(work[name])
        place = {
            name: getattr(self.set_up.place, name) for name in ("name", "total", "kept", "context", "cards", "budget")
        }
        return plain | {
            "set_up": {"work": work, "place": place, "split": self.set_up.split, "fragments": self.set_up.fragments},
            "need": self.need.to_dict(),
            "offers": [offer.to_dict() for offer in self.offers],
        }


def need(set_up: SetUp) -> Memory:
    """Bytes of the fullest card by what they are for. Raises ConfigError as memory_plan and on_cards do."""
    return on_cards(set_up.config, set_up.work, set_up.place.cards, set_up.split)


def lost(set_up: SetUp) -> int:
    """Bytes lost in gaps between tensors: `fragments` percent of all but the weights, which are taken once and stay."""
    return _lost(need(set_up), set_up.fragments)


def total(set_up: SetUp) -> int:
    """Bytes of the fullest card in all."""
    found = need(set_up)
    return found.total + _lost(found, set_up.fragments)


def widest(set_up: SetUp) -> str:
    """The name of the widest moment: of a run ("decoder MLP", "head" ...), or of a backward pass ("loss", "layer" or "table")."""
    moments: dict[str, int] = {}
    for part in fullest(set_up.config, set_up.place.cards, set_up.split):
        found = (backward_moments if set_up.work.training else run_moments)(part, set_up.work)
        for name, size in found.items():
            moments[name] = max(size, moments.get(name, 0))
    return max(moments, key=lambda name: moments[name])


def curve(set_up: SetUp, lengths: Sequence[int]) -> tuple[tuple[int, Memory, int], ...]:
    """(tokens, bytes, bytes lost) at each of these lengths; a table of positions that is too short is not looked at."""
    found = []
    for n in lengths:
        at = need(_with(set_up, source_len=n))
        found.append((n, at, _lost(at, set_up.fragments)))
    return tuple(found)


def verdict(set_up: SetUp) -> Verdict:
    """Whether a set-up fits, how much would, and what helps. Raises ConfigError as need() does, and for fragments not 0 to 100."""
    if not 0 <= set_up.fragments <= 100:
        raise ConfigError(f"fragments ({set_up.fragments}) must be from 0 to 100: it is a percentage")
    set_up.work.check(set_up.config)
    found, budget, work = need(set_up), set_up.place.budget, set_up.work
    gaps = _lost(found, set_up.fragments)
    fits = found.total + gaps <= budget
    ceiling = set_up.config.longest_text

    def of_length(n: int) -> int:
        return total(_with(set_up, source_len=n))

    def of_batch(n: int) -> int:
        return total(_with(set_up, batch=n))

    longest = _largest(of_length, budget, LONGEST if ceiling is None else min(ceiling, LONGEST), work.source_len)
    longest_bytes, next_bytes = of_length(longest) if longest else 0, of_length(longest + 1)
    every = bool(longest) and ceiling is None and _windowed(set_up.config)
    at = Verdict(
        set_up=set_up,
        need=found,
        lost=gaps,
        total=found.total + gaps,
        budget=budget,
        fits=fits,
        longest=longest,
        longest_bytes=longest_bytes,
        next_bytes=next_bytes,
        ceiling=ceiling,
        unlimited=longest == LONGEST or (every and next_bytes - longest_bytes <= 2 * INT * work.batch),
        chats=_largest(of_batch, budget, LONGEST, work.batch),
        offers=(),
    )
    offers = _room(at) if fits else _fixes(at)
    return replace(at, offers=tuple(offers))


def _lost(memory: Memory, fragments: int) -> int:
    return -(-(memory.total - memory.weights) * fragments // 100)


def _with(set_up: SetUp, **changes: Any) -> SetUp:
    return replace(set_up, work=replace(set_up.work, **changes))


def _windowed(config: ModelConfig) -> bool:
    return config.n_decoder_layers > 0 and config.n_windowed(config.n_decoder_layers) == config.n_decoder_layers


def _largest(bytes_of: Callable[[int], int], budget: int, most: int, begin: int) -> int:
    """The largest n up to `most` whose bytes are within the budget, 0 where not even those of 1 are; the search starts at `begin`."""
    low, high = 0, max(1, min(begin, most))  # low fits, high is not known to
    while bytes_of(high) <= budget:
        if high == most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bytes_of(middle) <= budget else (low, middle)
    return low


def _room(at: Verdict) -> Iterator[Offer]:
    """Larger texts, batches and formats that fit as well."""
    set_up = at.set_up
    if at.longest > set_up.work.source_len and not at.unlimited:
        yield _offer("tokens", at.longest, _with(set_up, source_len=at.longest))
    if at.chats > set_up.work.batch:
        yield _offer("chats", at.chats, _with(set_up, batch=at.chats))
    if set_up.work.weight_dtype is not None:
        yield from _first("bits", _formats(set_up, larger=True))


def _fixes(at: Verdict) -> list[Offer]:
    """Changes that make it fit, at most four."""
    found: list[Offer] = []
    for offer in _every_fix(at):
        found.append(offer)
        if len(found) == MOST_OFFERS:
            break
    return found


def _every_fix(at: Verdict) -> Iterator[Offer]:
    set_up, work = at.set_up, at.set_up.work
    yield from _less_waste(set_up)
    yield from _first("bits", _formats(set_up, larger=False))
    if work.training:
        if work.recompute != "full":
            yield from _first("recompute", [("full", _with(set_up, recompute="full"))])
    elif _can_shrink_cache(set_up):
        yield from _first("cache", [(SMALL_CACHE, _with(set_up, kv_dtype=SMALL_CACHE))])
    if 0 < at.longest < work.source_len:
        yield _offer("tokens", at.longest, _with(set_up, source_len=at.longest))
    if 0 < at.chats < work.batch:
        yield _offer("chats", at.chats, _with(set_up, batch=at.chats))
    if work.training and not work.rank:
        if work.optimizer != "sgd":
            yield from _first("optimizer", [("sgd", _with(set_up, optimizer="sgd"))])
        yield from _first("rank", [(RANK, _with(set_up, rank=RANK))])
    yield from _first("card", _larger_cards(set_up))
    yield from _first("cards", _more_cards(set_up))


def _less_waste(set_up: SetUp) -> Iterator[Offer]:
    """Assumptions that a server does not make: each that is enough, or else the smallest group of them."""
    work, changes = set_up.work, dict[str, Any]()
    if work.attention in ("eager", "spelled_out"):
        changes["attention"] = "flash"
    if not work.training and set_up.config.kind != "encoder" and work.logits == "all":
        changes["logits"] = "last"
    if not work.training and set_up.config.kind == "decoder" and not work.piece:
        changes["piece"] = PIECE
    alone = [_tried(name, value, _with(set_up, **{name: value})) for name, value in changes.items()]
    if any(alone):
        yield from filter(None, alone)
        return
    for many in range(2, len(changes) + 1):
        for names in combinations(changes, many):
            together = _with(set_up, **{name: changes[name] for name in names})
            if (offer := _tried("wasteful", ",".join(names), together)) is not None:
                yield offer
                return


def _formats(set_up: SetUp, *, larger: bool) -> Iterator[tuple[str, SetUp]]:
    """Formats of weights that take more bytes than these do, or fewer: float16, int8 and nf4, from the most bytes on."""
    work, config = set_up.work, set_up.config
    dtype = dtype_name(work.dtype)
    if work.weight_dtype is not None and weight_format(work.weight_dtype) == dtype:
        work = replace(work, weight_dtype=None)
    half = dtype if dtype in ("float16", "bfloat16") else "float16"
    now = _weights(config, work)
    if larger:
        # Activations stay as they are: in full, weights are in their format.
        found: list[tuple[str, Workload]] = [(dtype, replace(work, weight_dtype=None))]
    else:
        found = [(half, replace(work, dtype=half))] if half != dtype else []
        if half != dtype and work.weight_dtype is not None:
            found.append((half, replace(work, dtype=half, weight_dtype=None)))
    if not work.training or work.rank:
        base = dtype if larger else half
        found += [(name, replace(work, dtype=base, weight_dtype=name)) for name in ("int8", "nf4")]
    for value, tried in found:
        size = _weights(config, tried)
        if size > now if larger else size < now or (dtype_name(tried.dtype) != dtype and size == now):
            yield value, replace(set_up, work=tried)


def _weights(config: ModelConfig, work: Workload) -> int:
    return stored_weights(config, dtype=work.dtype, weight_dtype=work.weight_dtype).total


def _can_shrink_cache(set_up: SetUp) -> bool:
    config, work = set_up.config, set_up.work
    if not config.n_decoder_layers or config.d_head % FORMATS[SMALL_CACHE].numbers:
        return False
    return cache_format(work.kv_dtype or work.dtype, config.d_head).bits_each > FORMATS[SMALL_CACHE].bits_each


def _larger_cards(set_up: SetUp) -> Iterator[tuple[str, SetUp]]:
    """Cards with more memory than here, the smallest first; of those whose memory is the machine's own, where this is one."""
    unified = set_up.place.device is not None and set_up.place.device.unified
    places = [on_card(device, set_up.place.cards) for device in DEVICES if device.unified == unified]
    for place in sorted(places, key=lambda place: place.budget):
        if place.budget > set_up.place.budget:
            yield place.name, replace(set_up, place=place)


def _more_cards(set_up: SetUp) -> Iterator[tuple[int, SetUp]]:
    if set_up.place.device is None or set_up.place.device.unified:
        return
    for cards in (2, 4, 8):
        if cards > set_up.place.cards:
            more = replace(set_up, place=set_up.place.with_cards(cards))
            try:
                fullest(set_up.config, cards, set_up.split)
            except ConfigError:  # it has fewer heads or layers
                return
            yield cards, more


def _first(kind: str, tried: Iterable[tuple[int | str, SetUp]]) -> Iterator[Offer]:
    """The first of (value, set-up) that fits."""
    for value, set_up in tried:
        if (offer := _tried(kind, value, set_up)) is not None:
            yield offer
            return


def _tried(kind: str, value: int | str, set_up: SetUp) -> Offer | None:
    offer = _offer(kind, value, set_up)
    return offer if offer.total <= set_up.place.budget else None


def _offer(kind: str, value: int | str, set_up: SetUp) -> Offer:
    return Offer(kind, value, set_up, total(set_up))
