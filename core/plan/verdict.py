"""Verdict: whether a model fits into given memory, what would make it fit, and how GPUs share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, islice
from typing import Any, Literal

import torch

from ..device import MiB, dtype_name, free_bytes, total_bytes
from ..errors import ConfigError
from ..model.config import ModelConfig
from .live_memory import largest_within
from .operations import DEVICES, Device, device_named
from .parameters import layer_bytes, parameters, stored_weights
from .plan import Memory, memory_plan, run_moments
from .training import adapter_numbers, backward_moments, master_bytes, optimizer_bytes
from .workload import FORMATS, INT, MIXES, Workload, cache_format, check_choice, weight_format

HERE = "this machine"


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes of one GPU, or of a machine. A model is split over `cards` such GPUs.

    total    all of its memory
    kept     reserved by the driver of a GPU, or in use on a machine
    context  taken on a GPU by a program without tensors (core.plan.operations: known only for NVIDIA)
    device   the GPU, if it is one of DEVICES
    """

    name: str
    total: int
    kept: int
    context: int
    cards: int = 1
    device: Device | None = None

    def __post_init__(self) -> None:
        if self.cards < 1:
            raise ConfigError(f"cards ({self.cards}) must be at least 1")
        for name in ("total", "kept", "context"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} ({getattr(self, name)}) must not be negative: it is in bytes")

    @property
    def budget(self) -> int:
        """Bytes that a model may use on one GPU."""
        return self.total - self.kept - self.context

    def with_cards(self, cards: int) -> MemoryBudget:
        """The same with `cards` GPUs. Raises ConfigError for less than 1."""
        return replace(self, cards=cards)


def on_card(device: Device | str, cards: int = 1) -> MemoryBudget:
    """One or several GPUs of a kind, by the Device or its name. Raises ConfigError for an unknown name."""
    known = device_named(device) if isinstance(device, str) else device
    if known is None:
        raise ConfigError(f"there is no card {device!r} here: choose one of {', '.join(item.name for item in DEVICES)}")
    return MemoryBudget(
        known.name, known.mebibytes * MiB, known.kept_mebibytes * MiB, known.context_mebibytes * MiB, cards, known
    )


def on_machine() -> MemoryBudget:
    """The total and free memory of this machine, within the limits of its container."""
    here = torch.device("cpu")
    free = max(0, free_bytes(here))
    total = max(total_bytes(here), free)
    return MemoryBudget(HERE, total, total - free, 0)


def of_bytes(n: int, name: str) -> MemoryBudget:
    """A budget of n bytes. Raises ConfigError for negative numbers."""
    return MemoryBudget(name, n, 0, 0)


Split = Literal["across", "layers"]


def split_over_gpus(config: ModelConfig, work: Workload, cards: int, split: Split = "across") -> Memory:
    """Bytes of the fullest of `cards` GPUs; for one GPU those of memory_plan.

    Raises ConfigError as memory_plan does, and unless `cards` is from 1 to the number of heads (across) or layers (layers).
    """
    parts = max_per_gpu(config, cards, split)
    if cards == 1:
        return memory_plan(config, work)
    memories = [memory_plan(part, work) for part in parts]
    best = max(memories, key=lambda memory: memory.total)
    part = parts[memories.index(best)]
    if split == "layers":
        best = _one_end(config, part, work, best)
    if work.weight_dtype is not None and weight_format(work.weight_dtype) in MIXES:
        return replace(best, weights=_mixed(config, part, work, cards, split))
    return best


def max_per_gpu(config: ModelConfig, cards: int, split: Split) -> tuple[ModelConfig, ...]:
    """The parts of a model that the fullest GPU may have, as configurations. Raises ConfigError as on_cards does."""
    check_choice("split", split, Split)
    if cards < 1:
        raise ConfigError(f"cards ({cards}) must be at least 1")
    if cards == 1:
        return (config,)
    if split == "across":
        if cards > config.n_heads:
            raise ConfigError(
                f"a model cut across {cards} cards needs a head for each, and this one has {config.n_heads}: take fewer cards"
            )
        return (_across(config, cards),)
    layers = min(n for _, n in config.stacks)
    if cards > layers:
        raise ConfigError(
            f"whole layers on {cards} cards need a layer for each, and this model has {layers}: take fewer cards"
        )
    return tuple(_stages(config, cards))


def traffic(config: ModelConfig, work: Workload, cards: int, split: Split = "across") -> int:
    """Bytes sent for each new token of each text; in an encoder, for each token of the text.

    across: each GPU takes part in an all-reduce after each sublayer, which in a ring sends 2 · (cards − 1) / cards of the residual
    stream (Patarasuk & Yuan 2009). layers: the residual stream is sent cards − 1 times. Raises ConfigError as on_cards does.
    """
    max_per_gpu(config, cards, split)
    stream = config.d_model * work.by
    if split == "layers":
        return (cards - 1) * stream
    n_layers = config.n_decoder_layers or config.n_encoder_layers
    sublayers = 3 if config.kind == "encoder-decoder" else 1 if config.parallel else 2
    return -(-2 * (cards - 1) * n_layers * sublayers * stream // cards)


def _across(config: ModelConfig, cards: int) -> ModelConfig:
    shared = config.n_heads // config.n_kv_heads  # query heads per KV head
    if cards <= config.n_kv_heads:
        sets = _share(config.n_kv_heads, cards)
        heads = sets * shared
    else:
        sets, heads = 1, _share(shared, cards // config.n_kv_heads)
    return replace(
        config,
        n_heads=heads,
        n_kv_heads=sets,
        d_ff=_share(config.d_ff, cards),
        d_dense=_share(config.d_dense, cards),
        d_shared=_share(config.d_shared, cards),
        vocab_size=_share(config.vocab_size, cards),
    )


def _stages(config: ModelConfig, cards: int) -> Iterator[ModelConfig]:
    """Stages of ⌈layers / cards⌉ layers that differ in their number of layers with a window or a dense MLP."""
    most = max(n for _, n in config.stacks)
    each = _share(most, cards)
    encoders, decoders = _share(config.n_encoder_layers, cards), _share(config.n_decoder_layers, cards)
    seen = set[tuple[int, int]]()
    named = bool(config.windowed_layers or config.dense_layers)
    for first in range(0, most if named else 1, each):
        first = min(first, most - each)
        windowed, dense = (
            _within(layers, first, each) for layers in (config.windowed_layers or (), config.dense_layers)
        )
        if (len(windowed), len(dense)) in seen:
            continue
        seen.add((len(windowed), len(dense)))
        yield replace(
            config,
            n_encoder_layers=encoders,
            n_decoder_layers=decoders,
            windowed_layers=None if config.windowed_layers is None else windowed,
            dense_layers=dense,
            unturned_layers=_within(config.unturned_layers, first, each),
        )


def _within(layers: tuple[int, ...], first: int, many: int) -> tuple[int, ...]:
    return tuple(layer - first for layer in layers if first <= layer < first + many)


def _one_end(config: ModelConfig, part: ModelConfig, work: Workload, memory: Memory) -> Memory:
    """The memory without the smaller table: a stage has the token table or the unembedding, unless they are tied."""
    if config.tied or config.head == "none":
        return memory
    counted = parameters(part)
    numbers = min(counted.source.token, counted.unembed)
    stored = stored_weights(part, dtype=work.dtype, weight_dtype=work.weight_dtype)
    lighter = min(stored.each["", "token"], stored.each["", "unembed"])
    if not work.training or work.rank:
        return replace(memory, weights=memory.weights - lighter)
    return replace(
        memory,
        weights=memory.weights - lighter,
        gradients=memory.gradients - numbers * work.by,
        masters=memory.masters - master_bytes(numbers, work.by),
        optimizer=memory.optimizer - optimizer_bytes(numbers, work.optimizer),
    )


def _mixed(config: ModelConfig, part: ModelConfig, work: Workload, cards: int, split: Split) -> int:
    """Weights of the fullest GPU in a mix of types, where the type of a matrix depends on its position in the whole model."""
    whole = stored_weights(config, dtype=work.dtype, weight_dtype=work.weight_dtype)
    adapters = adapter_numbers(part, work.rank) * work.by if work.rank else 0
    if split == "across":  # at the mean bits per parameter
        return -(-whole.total * parameters(part).total // parameters(config).total) + adapters
    lighter = 0 if config.tied or config.head == "none" else min(whole.each["", "token"], whole.each["", "unembed"])
    if config.shared_layers:
        return whole.total - lighter + adapters
    elsewhere = 0  # bytes of the layers of other GPUs
    for stack in layer_bytes(config, work.by, weight_format(work.weight_dtype)).values():
        each = _share(len(stack), cards)
        elsewhere += sum(stack) - max(sum(stack[first : first + each]) for first in range(0, len(stack), each))
    return whole.total - lighter - elsewhere + adapters  # including the norms of all layers, which are small


def _share(n: int, cards: int) -> int:
    return -(-n // cards)


LONGEST = 1 << 30  # most tokens or texts that are tried
PIECE = 2048  # tokens of a chunk in vLLM
RANK = 16
SMALL_CACHE = "Q8_0"
MAX_OFFERS = 4


@dataclass(frozen=True)
class SetUp:
    """A model, its workload and its memory. `split` is how place.cards GPUs share the model (core.plan.verdict).

    `fragments` is the memory that an allocator loses to fragmentation, in percent of everything but the weights.
    """

    config: ModelConfig
    work: Workload
    place: MemoryBudget
    split: Split = "across"
    fragments: int = 0


@dataclass(frozen=True)
class Offer:
    """One change that is sufficient: `set_up` with the change, and the bytes that it takes on the fullest GPU.

    kind         value
    attention    "flash" instead of eager attention
    logits       "last"
    piece        tokens of a chunk of the prompt
    wasteful     several of these three, joined by commas, if no single one is sufficient
    bits         a format: of the weights, or "float16" of everything
    cache        a format of the KV cache
    recompute    "full"
    tokens       of each text
    chats        texts in a batch
    optimizer    "sgd"
    rank         of adapters that are trained instead of all weights
    card         the name of the smallest GPU that is sufficient
    cards        the number of GPUs of the same kind
    """

    kind: str
    value: int | str
    set_up: SetUp
    total: int

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "value": self.value, "total": self.total}


@dataclass(frozen=True)
class Verdict:
    """Bytes are those of the fullest GPU. `longest` tokens fit and take longest_bytes; one more takes next_bytes.

    fits          of memory only: a text may still be longer than the ceiling
    need, lost    bytes by purpose, and bytes lost to fragmentation; `total` is their sum
    longest       0 if not even one token fits; at most LONGEST, and at most `ceiling`, the rows of a learned table of positions
                  (one more token may then fit, but cannot run)
    unlimited     True if a longer text takes only the memory of its ids: every layer has a window and prefill is chunked
    chats         the largest batch of texts of this length that fits; 0 if not even one does
    offers        if the set-up fits, larger ones that fit as well; otherwise at most four changes, each sufficient
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
        """Plain data for JSON, without the config of the set-up."""
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
    """Bytes of the fullest GPU by purpose. Raises ConfigError as memory_plan and on_cards do."""
    return split_over_gpus(set_up.config, set_up.work, set_up.place.cards, set_up.split)


def lost(set_up: SetUp) -> int:
    """Bytes lost to fragmentation: `fragments` percent of everything but the weights, which are allocated once."""
    return _lost(need(set_up), set_up.fragments)


def total(set_up: SetUp) -> int:
    """All bytes of the fullest GPU."""
    memory = need(set_up)
    return memory.total + _lost(memory, set_up.fragments)


def widest(set_up: SetUp) -> str:
    """The name of the peak: of a run ("decoder MLP", "head" ...), or of a backward pass ("loss", "layer" or "table")."""
    moments: dict[str, int] = {}
    for part in max_per_gpu(set_up.config, set_up.place.cards, set_up.split):
        peaks = (backward_moments if set_up.work.training else run_moments)(part, set_up.work)
        for name, size in peaks.items():
            moments[name] = max(size, moments.get(name, 0))
    return max(moments, key=lambda name: moments[name])


def curve(set_up: SetUp, lengths: Sequence[int]) -> tuple[tuple[int, Memory, int], ...]:
    """(tokens, bytes, bytes lost) at each of these lengths, also those beyond the model's table of positions."""
    memories = ((n, need(_with(set_up, source_len=n))) for n in lengths)
    return tuple((n, memory, _lost(memory, set_up.fragments)) for n, memory in memories)


def verdict(set_up: SetUp) -> Verdict:
    """Whether a set-up fits, the limits, and the changes that help. Raises ConfigError as need() does, and for invalid fragments."""
    if not 0 <= set_up.fragments <= 100:
        raise ConfigError(f"fragments ({set_up.fragments}) must be from 0 to 100: it is a percentage")
    set_up.work.check(set_up.config)
    memory, budget, work = need(set_up), set_up.place.budget, set_up.work
    gaps = _lost(memory, set_up.fragments)
    fits = memory.total + gaps <= budget
    ceiling = set_up.config.longest_text

    def of_length(n: int) -> int:
        return total(_with(set_up, source_len=n))

    def of_batch(n: int) -> int:
        return total(_with(set_up, batch=n))

    most = LONGEST if ceiling is None else min(ceiling, LONGEST)
    longest = largest_within(budget, of_length, most, work.source_len)
    longest_bytes, next_bytes = of_length(longest) if longest else 0, of_length(longest + 1)
    n_layers = set_up.config.n_decoder_layers
    every = bool(longest) and ceiling is None and 0 < n_layers == set_up.config.n_windowed(n_layers)
    at = Verdict(
        set_up=set_up,
        need=memory,
        lost=gaps,
        total=memory.total + gaps,
        budget=budget,
        fits=fits,
        longest=longest,
        longest_bytes=longest_bytes,
        next_bytes=next_bytes,
        ceiling=ceiling,
        unlimited=longest == LONGEST or (every and next_bytes - longest_bytes <= 2 * INT * work.batch),
        chats=largest_within(budget, of_batch, LONGEST, work.batch),
        offers=(),
    )
    offers = _room(at) if fits else islice(_every_fix(at), MAX_OFFERS)
    return replace(at, offers=tuple(offers))


def _lost(memory: Memory, fragments: int) -> int:
    return -(-(memory.total - memory.weights) * fragments // 100)


def _with(set_up: SetUp, **changes: Any) -> SetUp:
    return replace(set_up, work=replace(set_up.work, **changes))


def _room(at: Verdict) -> Iterator[Offer]:
    """Longer texts, larger batches and larger formats that fit as well."""
    set_up = at.set_up
    if at.longest > set_up.work.source_len and not at.unlimited:
        yield _offer("tokens", at.longest, _with(set_up, source_len=at.longest))
    if at.chats > set_up.work.batch:
        yield _offer("chats", at.chats, _with(set_up, batch=at.chats))
    if set_up.work.weight_dtype is not None:
        yield from _first("bits", _formats(set_up, larger=True))


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
    """Less wasteful methods, as in servers: each that is sufficient, or else the smallest sufficient group."""
    work, changes = set_up.work, dict[str, Any]()
    if work.attention in ("eager", "spelled_out"):
        changes["attention"] = "flash"
    if not work.training and set_up.config.kind != "encoder" and work.logits == "all":
        changes["logits"] = "last"
    if not work.training and set_up.config.kind == "decoder" and not work.piece:
        changes["piece"] = PIECE
    single = [_tried(name, value, _with(set_up, **{name: value})) for name, value in changes.items()]
    if any(single):
        yield from filter(None, single)
        return
    for many in range(2, len(changes) + 1):
        for names in combinations(changes, many):
            together = _with(set_up, **{name: changes[name] for name in names})
            if (offer := _tried("wasteful", ",".join(names), together)) is not None:
                yield offer
                return


def _formats(set_up: SetUp, *, larger: bool) -> Iterator[tuple[str, SetUp]]:
    """Weight formats that take more bytes than the current one (`larger`) or fewer: float16, int8 and nf4, largest first."""
    work, config = set_up.work, set_up.config
    now = _weights(config, work)
    for value, changed in _other_formats(work, larger=larger):
        size, other_dtype = _weights(config, changed), dtype_name(changed.dtype) != dtype_name(work.dtype)
        if size > now if larger else size < now or (other_dtype and size == now):
            yield value, replace(set_up, work=changed)


def _other_formats(work: Workload, *, larger: bool) -> list[tuple[str, Workload]]:
    dtype = dtype_name(work.dtype)
    if work.weight_dtype is not None and weight_format(work.weight_dtype) == dtype:
        work = replace(work, weight_dtype=None)
    half = dtype if dtype in ("float16", "bfloat16") else "float16"
    if larger:  # the activations keep their format, which the weights get as well
        formats = [(dtype, replace(work, weight_dtype=None))]
    elif half == dtype:
        formats = []
    else:
        formats = [(half, replace(work, dtype=half))]
        if work.weight_dtype is not None:
            formats.append((half, replace(work, dtype=half, weight_dtype=None)))
    if not work.training or work.rank:
        base = dtype if larger else half
        formats += [(name, replace(work, dtype=base, weight_dtype=name)) for name in ("int8", "nf4")]
    return formats


def _weights(config: ModelConfig, work: Workload) -> int:
    return stored_weights(config, dtype=work.dtype, weight_dtype=work.weight_dtype).total


def _can_shrink_cache(set_up: SetUp) -> bool:
    config, work = set_up.config, set_up.work
    if not config.n_decoder_layers or config.d_head % FORMATS[SMALL_CACHE].numbers:
        return False
    return cache_format(work.kv_dtype or work.dtype, config.d_head).bits_each > FORMATS[SMALL_CACHE].bits_each


def _larger_cards(set_up: SetUp) -> Iterator[tuple[str, SetUp]]:
    """GPUs with more memory, smallest first. Chips with unified memory are alternatives only to each other."""
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
                max_per_gpu(set_up.config, cards, set_up.split)
            except ConfigError:  # fewer heads or layers than GPUs
                return
            yield cards, more


def _first(kind: str, tried: Iterable[tuple[int | str, SetUp]]) -> Iterator[Offer]:
    """An offer of the first (value, set-up) that fits."""
    for value, set_up in tried:
        if (offer := _tried(kind, value, set_up)) is not None:
            yield offer
            return


def _tried(kind: str, value: int | str, set_up: SetUp) -> Offer | None:
    offer = _offer(kind, value, set_up)
    return offer if offer.total <= set_up.place.budget else None


def _offer(kind: str, value: int | str, set_up: SetUp) -> Offer:
    return Offer(kind, value, set_up, total(set_up))
