"""A walk as one message for the browser: everything that is drawn, and what it needs to compute a change at once.

Numbers that are read travel as float32; pictures without readable numbers as float16. Of a long text the keys and values
of one head travel, and the rows of a norm that stand around the followed token; the rest is asked for when a visitor looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from app.attention import picture
from app.kit import params as kit_params
from app.kit.room import Message, Run
from app.rooms.step import export
from app.rooms.step.params import PARAMS
from app.rooms.step.steps import SITES, Fold, Step, guesses_words, steps_of, tokens_of
from app.session import resolving, screen
from app.session import room as session_room
from app.transport import messages
from core.edits import from_text
from core.model.rules import REASONS
from core.run.request import Request
from core.service import Ending, Facts, KeyStep, LayerWalk, ResidualPath, Routing, SiteWalk, SublayerNorms

ALL_HEADS = 120_000  # numbers of keys and values up to which those of every head go along
MOST_ROWS = 48  # of a norm's input
MOST_COLUMNS = 512  # tokens of the picture of what sublayers add; of more, the longest of several

TYPES = {"f4": "<f4", "f2": "<f2", "u1": "u1", "u2": "<u2"}


class Arrays:
    """Arrays after a header, each under its name."""

    def __init__(self) -> None:
        self.body = messages.Body()
        self.at: dict[str, tuple[int, list[int], str]] = {}

    def add(self, name: str, values: np.ndarray, kind: str = "f4") -> None:
        with np.errstate(over="ignore"):
            self.at[name] = (self.body.add(values.astype(TYPES[kind])), list(values.shape), kind)


def packed(
    run: Facts, walk: LayerWalk, added: Sequence[SublayerNorms], head: int, ends: np.ndarray | None = None
) -> bytes:
    """The message of one walk. `head` is the one whose keys and values go along where not all do.

    ends: [pos, d_model], what leaves the stack, of one that ends in vectors and not in a next word.
    """
    arrays = Arrays()
    tokens = tokens_of(run, walk.stack)
    sites = [_site(run, walk, site, head, arrays) for site in walk.sites]
    for step, values in walk.values.items():
        if step.rpartition(".")[2] not in ("k", "v", "raw", "scores", "weights"):
            arrays.add(step, values)
    for name, vector in walk.start.items():
        arrays.add(f"start.{name}", vector)
    arrays.add("embed", walk.embed)
    if ends is not None:
        arrays.add("end", ends[walk.query])
        arrays.add("end.mean", ends[~np.array(tokens.padding)].mean(0))
    norms = {step: _norm(walk, step, arrays) for step in walk.norms}
    every = -(-len(tokens) // MOST_COLUMNS)
    lengths = np.stack([row.lengths for row in added])
    if every > 1:
        lengths = np.stack([lengths[:, i : i + every].max(1) for i in range(0, lengths.shape[1], every)], 1)
    arrays.add("added", lengths)
    config = run.config
    header: dict[str, Any] = {
        "kind": config.kind,
        "stack": walk.stack,
        "layer": walk.layer,
        "query": walk.query,
        "heads": config.n_heads,
        "kv_heads": config.n_kv_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_dense if config.n_experts else config.d_ff,
        "vocab": config.vocab_size,
        "n_ctx": config.n_ctx,
        "position": config.position,
        "embed_scale": config.embed_scale,
        "tied": config.tied,
        "rotary_base": config.rotary_base,
        "activation": config.activation,
        "gated": config.gated,
        "order": config.norm_order,
        "parallel": config.parallel,
        "causal": walk.stack == "decoder",
        "guesses": guesses_words(run, walk.stack),
        "sites": sites,
        "norms": norms,
        "steps": [_step(step) for step in steps_of(run, walk.stack, walk.layer)],
        "added": [[row.layer, row.sublayer] for row in added],
        "added_every": every,
        "neurons": [list(pair) for pair in zip(walk.neurons, walk.neuron_lengths, strict=True)],
        "chosen": walk.chosen,
        "embed_normed": walk.embed_normed,
        "reasons": REASONS,
        "arrays": arrays.at,
    }
    return messages.pack(header, arrays.body.bytes())


def experts(found: Routing) -> bytes:
    """The message of the experts that every token took: [layer, pos, choice], and each one's load, [layer, expert]."""
    arrays = Arrays()
    arrays.add("weights", found.weights)
    arrays.add("load", found.load)
    arrays.add("chosen", found.chosen, "u2")
    header = {"stack": found.stack, "layers": list(found.layers), "experts": found.n_experts, "arrays": arrays.at}
    return messages.pack(header, arrays.body.bytes())


async def message(run: Run, said: Mapping[str, str]) -> Message:
    """The room's message for a link, including edits that were tried in one head."""
    values, notes = kit_params.read(PARAMS, run.facts, said)
    facts = run.facts
    if edits := from_text(values["edits"]):
        facts = await resolving.facts_of(resolving.edited_as_read(run.request, facts, edits))
    return Message(header(run.request, facts), values, notes, run.facts)


def header(request: Request | None, facts: Facts | None) -> dict[str, Any]:
    """The browser's data before it requests a walk. `request` does not contain the room's own edits."""
    return {
        "run": None if facts is None else outline(facts),
        "about": export.described(facts),
        "link": {session_room.PARAM: "step"} | ({} if request is None else screen.link(request)),
    }


def outline(run: Facts) -> dict[str, Any]:
    """What the browser knows of a run before it asks for a walk."""
    sides = {stack: tokens_of(run, stack) for stack, _ in run.config.stacks}
    return {
        "key": run.key,
        "model": run.spec.title,
        "text": run.source.text,
        "layers": dict(run.config.stacks),
        "heads": run.config.n_heads,
        "kv_heads": run.config.n_kv_heads,
        "tokens": {
            stack: {
                "labels": list(tokens.labels),
                "joins": picture.joins(tokens),
                "turns": picture.turns(tokens),
                "ids": list(tokens.ids),
            }
            for stack, tokens in sides.items()
        },
        "experts": {stack: list(layers) for stack, layers in run.config.expert_layers.items()},
        "shared_expert": run.config.d_shared > 0,
        "records": [[record.stack, record.layer, record.site] for record in run.records],
        "edits": list(run.interventions),
        "ms": run.seconds * 1000,
        "device": run.device,
        "dtype": run.dtype,
        "torch": run.torch_version,
    }


def _step(step: Step | Fold) -> dict[str, Any]:
    return {"fold": [step.first, step.last], "same": step.same} if isinstance(step, Fold) else asdict(step)


def _site(run: Facts, walk: LayerWalk, site: SiteWalk, head: int, arrays: Arrays) -> dict[str, Any]:
    name = site.site
    facts = run.records[site.record]
    group = facts.n_heads // facts.n_kv_heads
    turned = f"{name}.turned" in walk.values
    every = site.keys.size <= ALL_HEADS
    of = slice(None) if every else slice(head // group, head // group + 1)
    rows = slice(None) if every else slice(head, head + 1)
    arrays.add(f"{name}.keys", site.keys[of])
    arrays.add(f"{name}.v", walk.values[f"{name}.v"][of])
    if turned:
        arrays.add(f"{name}.k", walk.values[f"{name}.k"][of])
    for value in ("raw", "scores", "weights"):
        arrays.add(f"{name}.{value}", walk.values[f"{name}.{value}"][rows])
    if site.bias is not None:
        arrays.add(f"{name}.bias", site.bias[rows])
    for term, values in site.terms.items():
        arrays.add(f"{name}.{term}", values[rows])
    arrays.add(f"{name}.reasons", site.reasons, "u1")
    arrays.add(f"{name}.by_head", site.by_head, "f2")
    arrays.add(f"{name}.lengths", np.linalg.norm(site.by_head, axis=-1))
    tokens = run.tokens_of(site.record)[1]
    return {
        "site": name,
        "record": site.record,
        "labels": list(tokens.labels),
        "padding": [i for i, padding in enumerate(tokens.padding) if padding],
        "of": "source" if name == "cross_attn" else "own",
        "scale": site.scale,
        "temperature": site.temperature,
        "group": group,
        "head": None if every else head,  # whose keys and values are here; None: everybody's
    }


def _norm(walk: LayerWalk, step: str, arrays: Arrays) -> dict[str, Any]:
    norm = walk.norms[step]
    before = norm.before
    n = len(before)
    own = walk.query if n > 1 else 0
    first = max(0, min(own - MOST_ROWS // 2, n - MOST_ROWS))
    rows = before[first : first + MOST_ROWS]
    arrays.add(f"{step}.before", rows)
    arrays.add(f"{step}.gamma", norm.weight)
    if norm.bias is not None:
        arrays.add(f"{step}.beta", norm.bias)
    wide = before.astype(np.float64)
    arrays.add(f"{step}.columns", np.stack([wide.mean(0), wide.std(0)]))
    return {"first": first, "of": n, "eps": norm.eps, "mean": norm.takes_mean}


def ending(found: Ending) -> bytes:
    """The message of the end of a pass at one position."""
    arrays = Arrays()
    arrays.add("before", found.before)
    arrays.add("after", found.after)
    if (norm := found.norm) is not None:
        arrays.add("gain", norm.gain)
        if norm.shift is not None:
            arrays.add("shift", norm.shift)
    losses = [None if np.isnan(loss) else float(f"{loss:.6g}") for loss in found.losses.tolist()]
    said = {
        "norm": None if norm is None else [norm.centre, norm.scale],
        "words": [list(word) for word in zip(found.labels, found.logits, found.probabilities, strict=True)],
        "log_sum_exp": found.log_sum_exp,
        "mean": found.mean,
        "deviation": found.deviation,
        "lowest": found.lowest,
        "losses": losses,
        "arrays": arrays.at,
    }
    return messages.pack(said, arrays.body.bytes())


STATIONS: dict[str, str] = {  # kind of a step that is worth it -> the station that shows it
    "writes": "scores",
    "stands out": "scores",
    "largest push": "scores",
    "one word": "softmax",
    "the turn decides": "turn",
    "one back": "softmax",
    "one ahead": "softmax",
    "rests": "z",
    "after a repeat": "softmax",
    "same word": "softmax",
    "votes against": "wo",
    "the MLP decides": "add2",
}


def worth(found: Sequence[KeyStep]) -> Mapping[str, Any]:
    """The steps that are worth a look, each with its station; what a kind does not have is left out."""
    return {"found": [_chip(one) for one in found]}


def _chip(one: KeyStep) -> dict[str, Any]:
    said = {name: round(x, 6) if isinstance(x, float) else x for name, x in asdict(one).items() if x is not None}
    return said | {"at": (SITES[one.site] if one.head is not None else "") + STATIONS[one.kind]}


def residual(paths: Sequence[ResidualPath]) -> Mapping[str, Any]:
    """The gradient and the likeness of words, layer by layer, in four digits, as JSON."""

    def rounded(values: np.ndarray) -> list[float]:
        return [float(f"{x:.4g}") for x in values.tolist()]

    return {
        "paths": [
            {
                "norm": one.norm,
                "residual": one.residual,
                "gradients": rounded(one.gradients),
                "alike": rounded(one.alike),
            }
            for one in paths
        ]
    }


def lines_of(guesses: Sequence[Any], predictions: Any) -> Mapping[str, Any]:
    """The guess after every addition, and the next word's probabilities, as JSON."""
    return {
        "guesses": [
            {
                "layer": guess.layer,
                "sublayer": guess.sublayer,
                "word": guess.string,
                "p": guess.probability,
                "final": guess.final_probability,
                "rank": guess.final_rank,
            }
            for guess in guesses
        ],
        "words": [[word, p] for word, p in zip(predictions.strings[0], predictions.probs[0], strict=True)],
    }
