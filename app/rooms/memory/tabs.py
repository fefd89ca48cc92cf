"""The tabs beside the answer of Memory: assumptions, one layer, training, the cache, cards and the time it takes, pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.kit import numbers
from app.kit.numbers import seconds, short
from app.rooms.memory import checked, tables, words
from app.rooms.memory import question as asking
from app.rooms.memory.question import Question
from app.sizes.setup import Setup, ended, layers, planned
from core.errors import ConfigError
from core.labs.sizes import bottleneck, memory_accesses, scaling_factors
from core.plan import (
    DEVICES,
    MemoryBudget,
    Verdict,
    Workload,
    kv_cache,
    memory_plan,
    on_card,
    parameters,
    split_over_gpus,
    traffic,
)
from core.plan.parameters import stored_weights
from core.plan.plan import speed
from core.plan.training import adapter_numbers

Block = dict[str, Any]
SEVERAL = (1, 2, 4, 8)
KV = {"32": "float32", "16": "float16", "8": "Q8_0", "4": "Q4_0"}
FRAGMENTS = (0, 5, 10)
RANKS = ("4", "16", "64")
DOUBLED = ("d_model", "layers", "heads", "source_len", "batch")


@dataclass(frozen=True)
class Beside:
    """The question with its answer, and the memory that both are of."""

    question: Question
    found: Verdict
    place: MemoryBudget

    @property
    def setup(self) -> Setup:
        return self.question.setup

    @property
    def work(self) -> Workload:
        return self.setup.workload

    def more(self, changed: Setup) -> int | None:
        """Bytes that another setup takes beyond this one; None for one that cannot be."""
        try:
            return asking.totals(self.question, [changed], self.place)[0] - self.found.total
        except ConfigError:
            return None


def blocks(tab: str, beside: Beside) -> list[Block]:
    """A tab, piece by piece."""
    return TABS[tab](beside)


def text(*pieces: str, strong: Sequence[int] = ()) -> list[dict[str, object]]:
    return [{"text": piece, "strong": True} if i in strong else {"text": piece} for i, piece in enumerate(pieces)]


def lines(*said: str) -> Block:
    return {"kind": "lines", "rows": [[{"text": one}] for one in said if one]}


def table(label: str, columns: Sequence[str], rows: list[list[Any]], numeric: Sequence[bool] | None = None) -> Block:
    found = list(numeric) if numeric is not None else [False, *[True] * (len(columns) - 1)]
    return {"kind": "table", "label": label, "columns": list(columns), "rows": rows, "numeric": found}


def heading(said: str, beside: str = "") -> Block:
    return {"kind": "heading", "text": said, "beside": beside}


def switch(name: str, sentence: str, beside: str, value: str, options: Sequence[tuple[str, str]]) -> Block:
    return {
        "kind": "switch",
        "sentence": sentence,
        "beside": beside,
        "name": name,
        "label": words.ASSUME_LABELS.get(name, words.FIT_LABELS.get(name, "")),
        "value": value,
        "options": [{"value": one, "text": said} for one, said in options],
    }


# assumptions


def assumptions(beside: Beside) -> list[Block]:
    """One sentence and one switch each, and what the other choice would change."""
    setup = beside.setup
    found: list[Block] = []
    if not setup.training and setup.config.kind == "decoder":
        found.append(_as_in(setup))
    found.append(_kernel(beside))
    if not setup.training and setup.config.kind != "encoder":
        found.append(_logits(beside))
        if setup.config.kind == "decoder":
            found.append(_piece(beside))
        found.append(_kv(beside))
    if setup.training:
        found += _training_switches(beside)
    found += [_sets(beside), _kept(beside), _fragments(beside), _bits(setup)]
    return [block for block in found if block] + _checked()


def _as_in(setup: Setup) -> Block:
    now = (setup.attention if setup.attention == "eager" else "flash", setup.logits, setup.piece)
    value = next((name for name, three in asking.AS_IN.items() if three == now), "")
    return switch("as_in", words.FIT_LABELS["as_in"], "", value, list(words.AS_IN.items()))


def _beside(beside: Beside, option: str, changed: Setup) -> str:
    more = beside.more(changed)
    if more is None:
        return ""
    if not more:
        return words.NO_CHANGE.format(option=option)
    return words.BESIDE.format(option=option, size=f"{'+' if more > 0 else ''}{short(more)}")


def _kernel(beside: Beside) -> Block:
    setup, option = beside.setup, words.ASSUME_OPTIONS
    is_eager = setup.attention == "eager"
    other = replace(setup, attention="flash" if is_eager else "eager")
    return switch(
        "kernel",
        words.ASSUME["eager" if is_eager else "fused"],
        _beside(beside, option["fused" if is_eager else "eager"], other),
        "eager" if is_eager else "fused",
        [("fused", option["fused"]), ("eager", option["eager"])],
    )


def _logits(beside: Beside) -> Block:
    setup, option = beside.setup, words.ASSUME_OPTIONS
    other = "all" if setup.logits == "last" else "last"
    changed = replace(setup, logits=other)
    options = [("last", option["last"]), ("all", option["all"])]
    return switch("logits", words.ASSUME[setup.logits], _beside(beside, option[other], changed), setup.logits, options)


def _piece(beside: Beside) -> Block:
    setup, whole = beside.setup, words.ASSUME_OPTIONS["whole"]
    sentence = words.ASSUME["pieces"].format(n=numbers.whole(setup.piece)) if setup.piece else words.ASSUME["whole"]
    other = 0 if setup.piece else asking.SERVER_PIECE
    option = numbers.whole(other) if other else whole
    options = [("512", "512"), (asking.PIECES[2048], numbers.whole(2048)), (asking.PIECES[0], whole)]
    value = asking.PIECES.get(setup.piece, "")
    return switch("piece", sentence, _beside(beside, option, replace(setup, piece=other)), value, options)


def _kv(beside: Beside) -> Block:
    setup = beside.setup
    now, plain = asking.kv_bits(setup), "32" if setup.dtype == "float32" else "16"
    other = "8" if now != "8" else plain
    changed = replace(setup, kv_dtype=None if other == plain else KV[other])
    options = [(one, one) for one in (plain, "8", "4")]
    return switch("kv", words.ASSUME["kv"].format(n=now), _beside(beside, other, changed), now, options)


def _sets(beside: Beside) -> Block:
    setup = beside.setup
    config, heads, sets = setup.config, setup.config.n_heads, setup.config.n_kv_heads
    built = beside.question.built or sets
    name = "mha" if sets == heads else "mqa" if sets == 1 else "gqa"
    could = {heads, sets, 1} | ({built} if heads % built == 0 else set())
    offered = sorted(could if config.may_share_keys else {sets}, reverse=True)
    other = next((one for one in offered if one != sets), sets)
    changed = replace(setup, config=replace(config, n_kv_heads=other))
    return switch(
        "kv_heads",
        words.ASSUME[name].format(heads=heads, sets=sets),
        _beside(beside, numbers.whole(other), changed) if other != sets else "",
        str(sets),
        [(str(one), numbers.whole(one)) for one in offered],
    )


def _kept(beside: Beside) -> Block:
    place = beside.place
    device, every = place.device, short(place.total)
    if device is not None and place.context:
        told = {"kept": short(place.kept), "context": short(place.context)}
        return lines(words.ASSUME["driver"].format(all=every, **told))
    if device is not None:
        return lines(words.ASSUME["apple"].format(all=every, offered=short(place.budget)))
    if beside.question.card == asking.OWN:
        return lines(words.ASSUME["own"].format(all=every))
    return lines(words.ASSUME["machine"].format(all=every, kept=short(place.kept)))


def _fragments(beside: Beside) -> Block:
    now = beside.question.fragments
    other = 5 if not now else 0
    more = (
        asking.totals(replace(beside.question, fragments=other), [beside.setup], beside.place)[0] - beside.found.total
    )
    said = words.ASSUME["fragments"].format(n=now) if now else words.ASSUME["fragments_none"]
    option = f"{other} %" if other else "0"
    size = words.BESIDE.format(option=option, size=f"{'+' if more > 0 else ''}{short(more)}") if more else ""
    return switch("fragments", said, size, str(now), [(str(n), f"{n} %" if n else "0") for n in FRAGMENTS])


def _training_switches(beside: Beside) -> list[Block]:
    setup, option = beside.setup, words.ASSUME_OPTIONS
    other = "full" if setup.recompute != "full" else "none"
    recompute = switch(
        "recompute",
        words.ASSUME[f"recompute_{setup.recompute}"],
        _beside(beside, option[other], replace(setup, recompute=other)),
        setup.recompute,
        [(name, option[name]) for name in ("none", "attention", "full")],
    )
    numbers_kept = {"sgd": 0, "momentum": 1}.get(setup.optimizer, 2)
    sentence = words.ASSUME[{0: "optimizer_none", 1: "optimizer_one", 2: "optimizer"}[numbers_kept]]
    name = option.get(setup.optimizer, "Adam")
    cheaper = "sgd" if setup.optimizer != "sgd" else "adamw"
    found = [
        recompute,
        switch(
            "optimizer",
            sentence.format(name=name, n=numbers_kept),
            _beside(beside, option[cheaper], replace(setup, optimizer=cheaper)),
            "adamw" if setup.optimizer == "adam" else setup.optimizer,
            [(one, option[one]) for one in ("adamw", "momentum", "sgd")],
        ),
    ]
    if setup.rank:
        part = adapter_numbers(setup.config, setup.rank) / max(1, parameters(setup.config).total)
        said = words.ASSUME["rank"].format(n=setup.rank, share=numbers.share(part, 2))
        more = _beside(beside, "64" if setup.rank != 64 else "16", replace(setup, rank=64 if setup.rank != 64 else 16))
        found.append(switch("rank", said, more, str(setup.rank), [(one, one) for one in RANKS]))
    return found


def _bits(setup: Setup) -> Block:
    stored = stored_weights(setup.config, dtype=setup.dtype, weight_dtype=setup.weight_dtype)
    n = parameters(setup.config).total
    return lines(words.ASSUME["bits"].format(bits=numbers.fixed(stored.bits_each, 2), n=numbers.whole(n)))


def _checked() -> list[Block]:
    rows = [
        [row.title, *(numbers.fixed(n, 1) for n in (row.said, row.allocated, row.resident))] for row in checked.ROWS
    ]
    return [lines(checked.said()), table(words.CHECKED, [words.CHECKED, *words.CHECKED_COLUMNS[1:]], rows)]


# one layer, training, the cache


def layer(beside: Beside) -> list[Block]:
    """The textbook's terms of one layer beside what autograd keeps of it."""
    setup = beside.setup
    try:
        plan = planned(replace(setup, training=True, weight_dtype=None, kv_dtype=None, piece=0, rank=0))
    except ConfigError:
        return [lines(words.LAYER_TABLE.format(n=numbers.whole(setup.config.n_ctx)))]
    groups = tables.kept_groups(plan)
    most = max((n for _, _, n in groups), default=1)
    stack = plan.layers[0].stack
    title = words.LAYER_TITLE.format(stack=stack, batch=setup.batch, n=numbers.whole(setup.source_len))
    rows = [{"title": name, "text": short(n), "share": n / most, "id": term or "more"} for name, term, n in groups]
    cached = kv_cache(setup.config, batch=setup.batch, n=setup.source_len, dtype=setup.kv_dtype or setup.dtype)
    one = cached.total // max(1, layers(setup.config))
    return [
        heading(title, ""),
        {"kind": "stack", "label": title, "rows": rows},
        lines(
            words.LAYER_TERMS.format(lesson=short(plan.lesson_terms["total"])),
            words.LAYER_KEPT.format(kept=short(plan.saved_per_layer), cache=short(one)),
        ),
        {"kind": "button", "title": words.LAYER_MORE, "set": {"part": "kept"}},
    ]


def training(beside: Beside) -> list[Block]:
    """A step of training in six ways, each with what it takes."""
    setup = beside.setup
    rank = setup.rank or 16
    base = replace(
        setup, training=True, rank=0, weight_dtype=None, kv_dtype=None, piece=0, optimizer="adamw", recompute="none"
    )
    ways = {
        "none": base,
        "attention": replace(base, recompute="attention"),
        "full": replace(base, recompute="full"),
        "sgd": replace(base, optimizer="sgd"),
        "lora": replace(base, rank=rank),
        "qlora": replace(
            base, rank=rank, weight_dtype="nf4", dtype=base.dtype if base.dtype != "float32" else "bfloat16"
        ),
    }
    title = words.TRAIN_TITLE.format(batch=setup.batch, n=numbers.whole(setup.source_len))
    rows: list[list[Any]] = []
    try:
        for name, way in ways.items():
            if name == "attention" and setup.attention != "eager":
                continue  # the fused kernel does that by itself
            memory = memory_plan(way.config, way.workload)
            taken = asking.totals(beside.question, [way], beside.place)[0]
            fits = {"good": True} if taken <= beside.found.budget else {"bad": True}
            rows.append(
                [words.TRAIN_ROWS[name].format(n=rank), {"text": short(taken), **fits}, short(memory.activations)]
            )
        memory = memory_plan(base.config, base.workload)
        once, again = planned(base).step_flops, planned(ways["full"]).step_flops
    except ConfigError as error:
        return [heading(title), lines(ended(error))]
    goes = words.TRAIN_GOES.format(
        weights=short(memory.weights + memory.masters),
        gradients=short(memory.gradients),
        optimizer=short(memory.optimizer),
        activations=short(memory.activations),
    )
    arithmetic = words.TRAIN_FULL.format(flops=f"{numbers.count(again)}FLOP", once=f"{numbers.count(once)}FLOP")
    return [heading(title), table(title, words.TRAIN_COLUMNS, rows), lines(goes, arithmetic)]


def cache(beside: Beside) -> list[Block]:
    """Bytes of each token, as built and otherwise."""
    setup = beside.setup
    config = setup.config
    if not config.n_decoder_layers:
        return [lines(words.CACHE_NONE)]
    n = setup.workload.last_len
    own = setup.kv_dtype or setup.dtype

    def row(title: str, sets: int, dtype: str) -> list[Any]:
        shared = replace(config, n_kv_heads=sets)
        found = kv_cache(shared, batch=setup.batch, n=n, dtype=dtype)
        return [title, short(found.per_token), short(found.self_attention)]

    rows = [row(words.CACHE_ROWS["own"].format(n=config.n_kv_heads), config.n_kv_heads, own)]
    if config.n_kv_heads != config.n_heads:
        rows.append(row(words.CACHE_ROWS["mha"], config.n_heads, own))
    if config.n_kv_heads != 1 and config.may_share_keys:
        rows.append(row(words.CACHE_ROWS["mqa"], 1, own))
    for name, kind in (("q8", "Q8_0"), ("q4", "Q4_0")):
        try:
            rows.append(row(words.CACHE_ROWS[name], config.n_kv_heads, kind))
        except ConfigError:
            continue  # its blocks do not fit a head
    columns = [one.format(n=numbers.whole(n)) for one in words.CACHE_COLUMNS]
    windowed = config.n_windowed(config.n_decoder_layers)
    found = kv_cache(config, batch=setup.batch, n=n, dtype=own)
    looks = {"n": windowed, "layers": config.n_decoder_layers, "window": numbers.whole(config.window or 0)}
    return [
        lines(words.CACHE_PER_TOKEN.format(size=short(found.per_token))),
        table(columns[2], columns, rows),
        lines(words.ASSUME["window"].format(**looks) if windowed and config.window else ""),
        {"kind": "button", "title": words.CACHE_MORE, "set": {"part": "cache"}},
    ]


# cards


def cards(beside: Beside) -> list[Block]:
    """All cards by their memory with the need as a line, and several of the one that is chosen."""
    places = sorted((on_card(device) for device in DEVICES), key=lambda place: place.budget)
    need = asking.totals(replace(beside.question, cards=1), [beside.setup], places[0])[0]
    most = max(places[-1].budget, need)
    bars = [
        {
            "title": place.name,
            "share": place.budget / most,
            "text": short(place.budget),
            "fits": need <= place.budget,
            "on": beside.question.card == place.name,
            "set": {"card": place.name, "cards": "1"},
        }
        for place in places
    ]
    line = words.CARDS_LINE.format(size=short(need))
    label = words.CARDS_ONE
    found: list[Block] = [
        heading(label, line),
        {"kind": "bars", "label": label, "line": need / most, "line_text": line, "rows": bars},
    ]
    device = beside.place.device
    return found if device is None else found + _several(beside, device.name)


def _several(beside: Beside, name: str) -> list[Block]:
    setup, budget = beside.setup, beside.place.budget
    rows: list[list[Any]] = []
    for n in SEVERAL:
        row: list[Any] = [numbers.whole(n)]
        for split in ("across", "layers"):
            try:
                taken = split_over_gpus(setup.config, setup.workload, n, split).total
            except ConfigError:
                row.append("–")
                continue
            row.append({"text": short(taken), **({"good": True} if taken <= budget else {"bad": True})})
        rows.append(row)
    said = words.CARDS_SEVERAL.format(name=name)
    many = max(2, beside.question.cards)
    moved: dict[str, str] = {}
    for split in ("across", "layers"):
        try:
            moved[split] = short(traffic(setup.config, setup.workload, many, split))
        except ConfigError:
            moved[split] = "–"
    how = words.CARDS_HOW.format(sets=setup.config.n_kv_heads)
    talk = words.CARDS_TRAFFIC.format(n=words.SEVERAL.format(n=many), **moved)
    return [
        heading(said, words.CARDS_FULLEST),
        table(said, words.CARDS_COLUMNS, rows),
        lines(how, talk),
    ]


# the time it takes


def compute(beside: Beside) -> list[Block]:
    """How long, how fast, and where the bottleneck is; what doubling does, and how many numbers move."""
    setup, device = beside.setup, beside.place.device
    found: list[Block] = []
    if device is None:
        found.append(lines(words.COMPUTE_NONE))
    else:
        found += _speed(beside)
        if not setup.training:
            found += _bottlenecks(beside)
    return found + _doubled(setup)


def _speed(beside: Beside) -> list[Block]:
    setup, device = beside.setup, beside.place.device
    assert device is not None
    took = speed(setup.config, setup.workload, device, beside.question.cards)
    title = words.COMPUTE_ON.format(name=device.name)
    limit = words.COMPUTE_LIMITS

    def row(name: str, time: float, bound: str, part: float) -> list[Any]:
        n = numbers.whole(setup.source_len)
        return [words.COMPUTE_ROWS[name].format(n=n), seconds(time), limit[bound], numbers.share(part)]

    if setup.training:
        rows = [row("step", took.step_seconds, took.prompt_limit, took.prompt_share)]
        said = ""
    else:
        rows = [row("prompt", took.prompt_seconds, took.prompt_limit, took.prompt_share)]
        said = ""
        if setup.config.n_decoder_layers:
            rows.append(row("token", took.token_seconds, took.token_limit, took.token_share))
            said = words.COMPUTE_RATE.format(rate=numbers.whole(round(setup.batch / took.token_seconds)))
    return [heading(title), table(title, words.COMPUTE_COLUMNS, rows, [False, True, False, True]), lines(said)]


def _bottlenecks(beside: Beside) -> list[Block]:
    setup, device = beside.setup, beside.place.device
    assert device is not None
    rows = [
        [
            numbers.whole(at["n"]),
            numbers.share(at["attention"]["seconds_share"]),
            words.COMPUTE_LIMITS[at["attention"]["limit"]],
            words.COMPUTE_LIMITS[at["products"]["limit"]],
        ]
        for at in bottleneck(setup.config, setup.workload, device)
    ]
    title = words.COMPUTE_WHERE
    return [table(title, [title, *words.COMPUTE_WHERE_COLUMNS[1:]], rows, [False, True, False, False])]


def _doubled(setup: Setup) -> list[Block]:
    rows: list[list[Any]] = []
    for what in DOUBLED:
        try:
            times = scaling_factors(setup.config, setup.workload, what)
        except ConfigError:
            continue
        factors = (times[name]["total"] for name in ("parameters", "cache", "flops"))
        rows.append([words.COMPUTE_DOUBLED[what], *map(_times, factors)])
    title = words.COMPUTE_DOUBLE
    moves = memory_accesses(setup.config, setup.workload)
    told = {name: numbers.count(moves[name]).strip() for name in ("eager", "fused", "weights", "stream")}
    said = words.COMPUTE_MOVES.format(**told)
    return [table(title, [title, *words.COMPUTE_DOUBLE_COLUMNS[1:]], rows), lines(said)]


def _times(factor: float | None) -> str:
    return "–" if not factor else f"{numbers.digits(factor, 3)} ×"


TABS: dict[str, Callable[[Beside], list[Block]]] = {
    "assumptions": assumptions,
    "layer": layer,
    "training": training,
    "cache": cache,
    "cards": cards,
    "compute": compute,
}
