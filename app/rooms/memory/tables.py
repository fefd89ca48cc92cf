"""Numbers of the memory room, pure: a setup or a plan in, a DataFrame or a list of numbers out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import pandas as pd

from app.kit import numbers
from app.kit.numbers import MB, MIB
from app.rooms.memory import words
from app.sizes.setup import Setup, layers
from core.plan import DEVICES, Device, Fit, Plan, kv_cache, longest_fit, memory_plan
from core.plan.live_memory import Counted, Measured
from core.plan.training import kept_activations, lesson_terms
from core.plan.workload import Attention

WAYS: tuple[Attention, ...] = ("eager", "efficient", "flash")
KNOWN = 100  # tokens to which the scores are told where a lesson asks about longer texts
NEAR = 0.1  # of a number that is asked for, by which another still tells it
FAR = 8  # as a share of a budget that is asked about, where every curve ends
POINTS = 15  # of the three lines of the cache
COUNTED: dict[Counted, str] = {"bound": "an upper bound", "alive": "alive at once"}


# memory


def components(setup: Setup) -> dict[Attention, dict[str, int]]:
    """Bytes of each component for each way of attention; the parts that are 0 in all of them left out."""
    found: dict[Attention, dict[str, int]] = {}
    for way in WAYS:
        memory = memory_plan(setup.config, replace(setup.workload, attention=way)).to_dict()
        found[way] = {name: memory[name] for name in words.COMPONENTS}
    present = [name for name in words.COMPONENTS if any(parts[name] for parts in found.values())]
    return {way: {name: parts[name] for name in present} for way, parts in found.items()}


def components_table(setup: Setup) -> pd.DataFrame:
    """A row for each component: bytes in both units for every way of attention."""
    found = components(setup)
    names = list(found["eager"])
    rows = [
        {"component": words.COMPONENTS[name][0]}
        | {f"{way} {unit}": found[way][name] / by for way in WAYS for unit, by in (("MiB", MIB), ("MB", MB))}
        for name in names
    ]
    total = {"component": "total"} | {
        f"{way} {unit}": sum(found[way].values()) / by for way in WAYS for unit, by in (("MiB", MIB), ("MB", MB))
    }
    return pd.DataFrame([*rows, total])


def curve_lengths() -> list[int]:
    """Source lengths of a curve, two for each doubling."""
    return sorted({round(16 * 2 ** (i / 2)) for i in range(29)})


def scores_of(setup: Setup, n: int) -> int:
    """Bytes of the scores of one layer at n source tokens, the first of the textbook's terms that grows with n²."""
    work = replace(setup.workload, source_len=n)
    return lesson_terms(setup.config, work)["scores"]


@lru_cache(maxsize=32)
def curves(setup: Setup) -> pd.DataFrame:
    """Bytes in all against the source length: columns n, eager, efficient, flash; and of the scores of one layer."""
    rows = []
    for n in curve_lengths():
        longer = replace(setup.workload, source_len=n)
        totals = {way: memory_plan(setup.config, replace(longer, attention=way)).total for way in WAYS}
        rows.append({"n": n, **totals, "scores": scores_of(setup, n)})
    return pd.DataFrame(rows)


def known(table: pd.DataFrame, covered: str, budget: int) -> pd.DataFrame:
    """The curves without what a lesson asks for: scores of longer texts ("curve"), or how everything comes near to a budget ("number")."""
    if covered == "curve":
        return table.assign(scores=table["scores"].where(table["n"] <= KNOWN))
    if covered == "number":
        return table.assign(**{way: table[way].where(table[way] <= budget / FAR) for way in WAYS})
    return table


def curves_table(setup: Setup, measured: Measured | None) -> pd.DataFrame:
    """The curves in MiB and MB, and what was measured here at its own lengths."""
    table = curves(setup)
    shown = pd.DataFrame({"n": table["n"]})
    for way in WAYS:
        shown[f"{way} MiB"], shown[f"{way} MB"] = table[way] / MIB, table[way] / MB
    shown[f"{words.SCORES_LINE} MiB"] = table["scores"] / MIB
    if measured is None:
        return shown
    points = [
        {"n": point.n, "measured": point.measured / MIB, "predicted": point.predicted / MIB}
        for point in measured.points
    ]
    return pd.concat([shown, pd.DataFrame(points)]).sort_values("n").reset_index(drop=True)


def fits(
    setup: Setup, budgets: Sequence[tuple[str, int]], vary: str, counted: Counted = "bound"
) -> list[tuple[str, Fit]]:
    """The largest value of `vary` for every named budget, by the bound or by what is alive at once."""
    return [(name, _fit(setup, budget, vary, counted)) for name, budget in budgets]


@lru_cache(maxsize=256)
def _fit(setup: Setup, budget: int, vary: str, counted: Counted) -> Fit:
    return longest_fit(setup.config, budget, setup.workload, vary=vary, counted=counted)  # type: ignore[arg-type]


def telling(found: Sequence[tuple[str, Fit]]) -> list[bool]:
    """Whether each tells how many fit into the last memory: its own number, or that of a memory which is about as large."""
    asked = found[-1][1].n
    return [abs(fit.n - asked) <= NEAR * asked for _, fit in found]


def usable(setup: Setup, fit: Fit) -> int:
    """How many fit and can be used: a learned table of positions ends whatever the memory; one of sinusoids is made as long as wanted."""
    return fit.usable


def fits_table(setup: Setup, found: Iterable[tuple[str, Fit]]) -> pd.DataFrame:
    """A row for each device: the largest that fits with its bytes, and the next with its."""
    return pd.DataFrame(
        [
            {
                "device": name,
                "budget MiB": fit.budget / MIB,
                "budget MB": fit.budget / MB,
                "fits": usable(setup, fit),
                "by memory alone": fit.n,
                "takes MiB": fit.bytes / MIB,
                "does not fit": fit.n + 1,
                "would take MiB": fit.next_bytes / MIB,
                "bytes are": COUNTED[fit.counted],
            }
            for name, fit in found
        ]
    )


def term_of(name: str, names: Iterable[str]) -> str | None:
    """Which of the textbook's five terms a kept tensor is counted in; None: in none."""
    first = "attn_norm input" if "attn_norm input" in names else "attn input"
    return {
        first: "input",
        "attn q": "qkv",
        "attn k and v": "qkv",
        "attn weights": "scores",
        "attn z": "attn_out",
        "mlp hidden": "ffn_hidden",
    }.get(name)


def kept_sizes(setup: Setup) -> tuple[str, int, int]:
    """The first layer's stack, the textbook's five terms of it and what autograd keeps of it, in bytes."""
    terms = lesson_terms(setup.config, setup.workload)
    kept = kept_activations(setup.config, setup.workload)
    return kept.layers[0].stack, terms["total"], kept.layers[0].per_layer


def kept_groups(planned: Plan) -> list[tuple[str, str | None, int]]:
    """What autograd keeps of one layer as (label, term or None, bytes): terms first, then what no term counts."""
    items = planned.saved_items
    names = [item.name for item in items]
    terms = dict.fromkeys(words.TERMS, 0)
    missed: list[tuple[str, str | None, int]] = []
    for item in items:
        term = term_of(item.name, names)
        if term is None:
            missed.append((item.name, None, item.bytes))
        else:
            terms[term] += item.bytes
    counted = [(words.TERMS[term], term, n) for term, n in terms.items() if n]
    return [*counted, *missed]


def kept_table(planned: Plan) -> pd.DataFrame:
    """Every tensor that autograd keeps of the first layer, and the textbook's terms under it."""
    names = [item.name for item in planned.saved_items]
    rows = []
    for item in planned.saved_items:
        term = term_of(item.name, names)
        rows.append(
            {
                "item": item.name,
                **numbers.in_both(item.bytes),
                "term": words.TERMS[term] if term else "–",
                "why": item.why,
            }
        )
    rows.append({"item": "total", **numbers.in_both(planned.saved_per_layer), "term": "", "why": ""})
    for term, n_bytes in planned.lesson_terms.items():
        label = words.TERMS.get(term, term)
        rows.append({"item": f"{words.LESSON_ROW}: {label}", **numbers.in_both(n_bytes), "term": label, "why": ""})
    return pd.DataFrame(rows)


def totals(setup: Setup) -> dict[str, int]:
    """Every total of what training keeps, by its name in words.TOTALS, in bytes."""
    work = replace(setup.workload, training=True, weight_dtype=None, kv_dtype=None, piece=0)
    kept = kept_activations(setup.config, work)
    first = kept.layers[0]
    terms = lesson_terms(setup.config, work)["total"]
    return {
        "terms": terms,
        "terms_all": terms * layers(setup.config),
        "kept": first.per_layer,
        "kept_all": sum(found.total for found in kept.layers if found.stack == first.stack),
        "activations": kept.total,
        "all": memory_plan(setup.config, work).total,
    }


def totals_table(setup: Setup) -> pd.DataFrame:
    """The same in both units."""
    return pd.DataFrame([{"total": words.TOTALS[name], **numbers.in_both(n)} for name, n in totals(setup).items()])


def cards(setup: Setup) -> tuple[list[Device], Device]:
    """The cards on which a plan fits, the smallest first, and the largest card."""
    total = memory_plan(setup.config, setup.workload).total
    by_size = sorted(DEVICES, key=lambda device: device.memory)
    return [device for device in by_size if total <= device.memory], by_size[-1]


def chats(setup: Setup, budgets: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """How many texts of the setup's length can be written at once in each named budget."""
    return [(name, longest_fit(setup.config, budget, setup.workload, vary="batch").n) for name, budget in budgets]


def cache_lines(setup: Setup) -> pd.DataFrame:
    """Bytes of the cache against the tokens so far: columns n, mha, own, mqa (self-attention), cross."""
    longest = max(setup.target_len or setup.source_len, 64)
    memory_len = setup.source_len if setup.config.kind == "encoder-decoder" else 0
    rows = []
    for n in sorted({round(longest * i / (POINTS - 1)) for i in range(POINTS)}):
        found = kv_cache(
            setup.config, batch=setup.batch, n=n, memory_len=memory_len, dtype=setup.kv_dtype or setup.dtype
        )
        rows.append(
            {
                "n": n,
                "mha": found.as_mha,
                "own": found.self_attention,
                "mqa": found.as_mqa,
                "cross": found.cross_attention,
            }
        )
    return pd.DataFrame(rows)


def cache_table(setup: Setup) -> pd.DataFrame:
    """The lines of the cache in both units."""
    lines = cache_lines(setup)
    shown = pd.DataFrame({"n": lines["n"]})
    for name, label in (("own", "this model"), ("mha", "MHA"), ("mqa", "MQA"), ("cross", "cross")):
        shown[f"{label} MiB"], shown[f"{label} MB"] = lines[name] / MIB, lines[name] / MB
    return shown
