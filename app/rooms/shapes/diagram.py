"""From a traced pass to the rows of a diagram: what made each tensor, who reads it, what its axes are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from app.kit import numbers
from app.rooms.shapes import words
from core.model.config import ModelConfig
from core.plan import TracedRun, TracedStep, Workload, parameters, trace_shapes, with_layers
from core.plan.workload import bytes_of, check_counted

SITES = {"attn": "attn", "cross_attn": "cross", "mlp": "mlp"}
SUBLAYERS = ("attn_norm", "cross_norm", "mlp_norm")
BIAS = ".relative_bias.embedding"
JOINS = frozenset(("embed", "resid_mid", "resid_cross", "resid_post"))  # where a sublayer's result is added
BESIDE = frozenset(("tokens", "token", "scaled", "type", "position", "angles"))  # on their way to the residual stream
MERGED = {"qkv": 3, "kv": 2, "split_qkv": 3, "split_kv": 2}  # rows that stand for several tensors of one shape
# What of a run has a tensor's values, by the last part of its step's name.
SOURCES = {f"hook_{name}": name for name in ("position", "embed", "final", "q", "k", "scores", "z")}
SOURCES |= {f"hook_{name}": name for name in ("attn_out", "cross_out", "mlp_out")}
SOURCES |= {f"hook_resid_{name}": f"resid_{name}" for name in ("pre", "mid", "cross", "post")}
SOURCES |= {"hook_pattern": "weights", "mask": "mask"}
FUSED = frozenset(
    ("shared", "scores", "masked", "weights")
)  # what the fused kernel never writes, and the mask where it is plain


@dataclass
class Row:
    """One tensor, or two or three of the same shape, of the diagram."""

    id: str
    kind: str
    step: TracedStep
    title: str
    equation: str
    code: str
    means: str
    flops: int
    count: int = 1
    view: bool = False
    lane: int = 0  # 0 on the residual stream, 1 beside it, 2 beside that (parallel blocks)
    joins: bool = False  # where a sublayer's result is added
    reads: list[str] = field(default_factory=list)
    source: str | None = None  # what of a run has its values
    fused: bool = False  # the fused kernel never writes it
    traced: TracedStep | None = None  # the step in the trace, where `step` has its axes in another order

    def to_dict(self) -> dict[str, Any]:
        step = self.step
        plain = {name: value for name, value in vars(self).items() if name not in ("step", "traced")}
        return plain | {
            "axes": list(step.axes),
            "shape": list(step.shape),
            "dtype": step.dtype,
            "bytes": step.bytes * self.count,
        }


@dataclass(frozen=True)
class Part:
    """Consecutive steps: the embedding, one layer (which happens `times` times), what comes after."""

    stack: str
    section: str
    times: int
    steps: tuple[TracedStep, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Diagram:
    """A pass, part by part, with its totals."""

    config: ModelConfig
    batch: int
    source_len: int
    target_len: int
    parts: tuple[Part, ...]
    parameters: int
    weights: int
    flops: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "stacks": [name for name, _ in self.config.stacks],
            "layers": dict(self.config.stacks),
            "batch": self.batch,
            "lengths": [self.source_len, self.target_len],
            "parts": [
                {
                    "stack": part.stack,
                    "section": part.section,
                    "times": part.times,
                    "rows": [row.to_dict() for row in part.rows],
                }
                for part in self.parts
            ],
            "parameters": self.parameters,
            "weights": self.weights,
            "flops": self.flops,
            "vocab": self.config.vocab_size,
        }


def diagram(config: ModelConfig, of: Workload) -> Diagram:
    """Trace one layer of each stack, whose shapes all layers of it have, and lay it out: a pass over such texts in such a format.

    Its dropout puts in the rows that training has where the textbook drops numbers (Vaswani et al. 2017, §5.4): the sum of the
    embeddings and what each sublayer adds, and beside them the weights and the hidden layer. Raises ConfigError for lengths below 1, and for models with a part that
    no diagram shows.
    """
    check_counted(config, "No diagram is drawn")
    batch, source_len, target_len = of.batch, of.source_len, of.target_len
    one = with_layers(config, 1)
    run = trace_shapes(one, batch=batch, source_len=source_len, target_len=target_len, dtype=of.dtype)
    parts = tuple(_parts(run, config, of.dropout))
    count = parameters(config).total
    return Diagram(
        config,
        batch,
        source_len,
        target_len,
        parts,
        parameters=count,
        weights=count * bytes_of(of.dtype),
        flops=sum(part.times * sum(step.flops for step in part.steps) for part in parts),
    )


def _parts(run: TracedRun, config: ModelConfig, dropout: bool) -> list[Part]:
    """Cut the steps where a stack, its layers and what follows begin."""
    cuts: list[tuple[str, str, list[TracedStep]]] = []
    stack = ""
    for step in run.steps:
        name = step.name
        if name.endswith(".hook_positions"):
            stack = name.split(".")[0]
        # A table that both stacks share is traced under the first one's name.
        section = (
            "layer" if ".blocks." in name or name.endswith(BIAS) else "head" if name.startswith("head.") else "embed"
        )
        if section == "embed" and ".embed." not in name and not name.endswith(("positions", "angles", "windowed")):
            section = "final"
        owner = "head" if section == "head" else stack
        if not cuts or cuts[-1][:2] != (owner, section):
            cuts.append((owner, section, []))
        cuts[-1][2].append(step)
    layers: dict[str, int] = dict(config.stacks)
    found, last = [], ""
    for owner, section, steps in cuts:
        rows = _Rows(config, owner, section, last, dropout).all(steps)
        times = layers[owner] if section == "layer" else 1
        found.append(Part(owner, section, times, tuple(_with_dropout(steps, rows)), tuple(rows)))
        last = rows[-1].id if rows else last
    return found


def _with_dropout(steps: Sequence[TracedStep], rows: Sequence[Row]) -> list[TracedStep]:
    """The steps of a part, and after each whose numbers are dropped the step that drops them."""
    found = list(steps)
    for before, row in pairwise(rows):
        if row.kind.startswith("dropout"):
            found.insert(next(i for i, step in enumerate(found) if step is before.step) + 1, row.step)
    return found


class _Rows:
    """The rows of one part, in the order of the pass."""

    def __init__(self, config: ModelConfig, stack: str, section: str, before: str, dropout: bool) -> None:
        self.config, self.stack, self.section, self.before = config, stack, section, before
        self.dropout = dropout
        self.rows: list[Row] = []
        self.words = _fills(config)

    def all(self, steps: Sequence[TracedStep]) -> list[Row]:
        if self.section != "layer":
            for step in steps:
                self._outside(step)
            return self.rows
        sublayers: dict[str, list[TracedStep]] = {}
        bias = [step for step in steps if step.name.endswith(BIAS)]
        for step in steps:
            if step in bias:
                sublayers["attn"].append(step)
                continue
            tail = step.name.split(".blocks.0.")[1]
            site = tail.split(".")[0]
            if site in ("attn", "cross_attn"):
                sublayers.setdefault(site, []).append(step)
                if tail.endswith(".flatten"):
                    self._attention(site, sublayers[site])
                elif tail.endswith(".o"):  # named so only where a norm stands between it and its hook
                    self._add(f"{SITES[site]}_out", step, site=SITES[site])
            else:
                self._in_layer(tail, step)
        return self.rows

    def _add(
        self,
        kind: str,
        *steps: TracedStep,
        site: str = "",
        reads: Sequence[str | None] | None = None,
        view: bool | None = None,
        fill: Mapping[str, str] | None = None,
    ) -> Row:
        """A row of a kind, for the tensor of the first step, with the FLOPs of all `steps`; it reads the row before where nothing is said."""
        step = steps[0]
        fills = self.words | {"site": site or "final"} | dict(fill or {})
        title, equation, code, means = (_fill(text, fills) for text in words.ROWS[kind])
        middle = f"{site}." if site and kind not in ("attn_out", "cross_out", "resid_mid", "resid_cross") else ""
        given = [self.rows[-1].id if self.rows else self.before] if reads is None else reads
        row = Row(
            f"{self.stack}.{middle}{kind}",
            kind,
            _as_computed(step),
            title,
            equation,
            code,
            means,
            sum(one.flops for one in steps),
            MERGED.get(kind, 1),
            step.view if view is None else view,
            self._lane(kind, site),
            kind in JOINS,
            list(dict.fromkeys(one for one in given if one)),
            SOURCES.get(step.name.rsplit(".", 1)[-1]),
            kind in FUSED or (kind == "mask" and self._is_plain(site) and step.shape[0] == 1),
            step,
        )
        self.rows.append(row)
        return row

    def _lane(self, kind: str, site: str) -> int:
        if self.config.parallel and site == "mlp":
            return 2
        return 1 if site or kind in BESIDE else 0

    def _drop(self, what: str, site: str = "") -> None:
        """After the row that was made last, in training alone: some of its numbers become 0."""
        if not self.dropout:
            return
        step = self.rows[-1].step
        kept = step.bytes // _by(step)
        dropped = replace(step, name=f"{step.name.rpartition('.')[0]}.dropout", op="dropout", flops=0, view=False)
        self._add(f"dropout_{what}", dropped, site=site, fill={"kept": numbers.whole(kept)})

    def _is_plain(self, site: str) -> bool:
        """Whether the fused kernel knows the mask by itself: all, or all but the future, and nothing added to scores."""
        own = site != "cross"
        return not own or (self.config.window is None and self.config.position not in ("alibi", "relative"))

    def _id(self, kind: str) -> str | None:
        """The row of that kind that was made last."""
        return next((row.id for row in reversed(self.rows) if row.kind == kind), None)

    def _outside(self, step: TracedStep) -> None:
        name = step.name.split(".", 1)[1]
        if name == "hook_positions":
            return
        if name == "embed.token":
            ids = TracedStep(
                "ids",
                "",
                ("batch", "pos"),
                step.shape[:2],
                "int64",
                step.bytes // step.shape[-1] * 8 // _by(step),
                0,
                False,
            )
            self._add("tokens", ids, reads=[])
            self._add("token", step)
        elif name == "embed.hook_token":
            if self.config.embed_scale != 1:
                self._add("scaled", step)
        elif name.startswith("embed.token_type"):
            self._add("type", step, reads=[])
        elif name == "embed.position":
            return
        elif name == "embed.hook_position":
            self._add("position", step, reads=[], view=False)
        elif name == "embed.hook_embed":
            summed = [self._id("scaled") or self._id("token"), self._id("position"), self._id("type")]
            self._add("embed", step, reads=summed)
            self._drop("embed")
        elif name.startswith("hook_angles"):
            self._add("angles", step, reads=[], view=False)
        elif name == "hook_final":
            self._add("final", step)
        elif name == "hook_logits":
            self._add("logits", step)
        elif name == "dense":
            self._add("dense", step)
        elif name == "norm":
            self._add("head_norm", step)
        elif step.op in words.ACTS:
            self._add("head_act", step)

    def _in_layer(self, tail: str, step: TracedStep) -> None:
        if tail == "hook_resid_pre":
            self._add("resid_pre", step)
        elif tail in SUBLAYERS:
            self._add("norm", step, site=tail.removesuffix("_norm"), reads=[self._stream()])
        elif tail in ("hook_attn_out", "hook_cross_out", "hook_mlp_out"):
            site = tail.removeprefix("hook_").removesuffix("_out")
            kind = "out_norm" if step.op != "linear" else f"{site}_out"
            self._add(kind, step, site=site)
            self._drop("out", site)
        elif tail in ("mlp.gate", "mlp.up"):
            read = self._id("norm") if self.config.norm_order != "post" else self._stream()
            self._add(tail.split(".")[1], step, site="mlp", reads=[read])
        elif tail == "mlp.hook_post":
            gated = self.config.gated
            made = [self._id("gate_act"), self._id("up")] if gated else None
            self._add("gated" if gated else "act", step, site="mlp", reads=made)
            self._drop("hidden", "mlp")
        elif tail.startswith("mlp.") and step.op in ("relu", "gelu", "silu"):
            self._add("gate_act", step, site="mlp")
        elif tail == "mlp.down":
            self._add("mlp_out", step, site="mlp")
        elif tail in ("hook_resid_mid", "hook_resid_cross", "hook_resid_post"):
            added = [self._stream(), self.rows[-1].id]
            if self.config.parallel:
                added.insert(1, (f"{self.stack}.attn.dropout_out" if self.dropout else self._id("attn_out")) or "")
            kind = tail.removeprefix("hook_")
            self._add(kind, step, reads=added)

    def _stream(self) -> str:
        return next((row.id for row in reversed(self.rows) if row.lane == 0), self.before)

    def _attention(self, site: str, steps: Sequence[TracedStep]) -> None:
        by: dict[str, list[TracedStep]] = {}
        for step in steps:
            by.setdefault(step.name.rsplit(".", 1)[1], []).append(step)
        cross, config = site == "cross_attn", self.config
        short = SITES[site]
        normed = config.norm_order != "post"
        x = self._id("norm") if normed else self._stream()
        memory = "encoder.final" if cross else x
        (q,), (k,), (v,) = by["q"], by["k"], by["v"]
        fused = not cross and q.shape == k.shape
        if fused:
            self._add("qkv", q, k, v, site=short, reads=[x])
        else:
            self._add("q", q, site=short, reads=[x])
            text = "memory" if cross else "x"
            self._add("kv", k, v, site=short, reads=[memory], fill={"memory": text})
        made_q, made_k = (self._id("qkv"),) * 2 if fused else (self._id("q"), self._id("kv"))
        turned = not cross and config.position == "rotary"
        still = not turned or config.qk_norm  # then it is the norm's result that turns
        more = {"turned": "", "turned_k": "", "stays": words.STAYS} if still else {}
        (hook_q,), (hook_k,) = by["hook_q"], by["hook_k"]
        if fused:
            self._add(
                "split_qkv",
                hook_q,
                site=short,
                view=still,
                reads=[made_q, made_k],
                fill=more,
            )
            split_q = split_k = self._id("split_qkv")
        else:
            split_q = self._add("split_q", hook_q, site=short, view=still, reads=[made_q], fill=more).id
            split_k = self._add("split_kv", hook_k, site=short, view=still, reads=[made_k], fill=more).id
        values = split_k
        for name in ("q_norm", "k_norm"):
            for step in by.get(name, []):
                read = split_q if name == "q_norm" else split_k
                made = self._add(name, step, site=short, reads=[read], fill={} if turned else {"turned": ""}).id
                split_q, split_k = (made, split_k) if name == "q_norm" else (split_q, made)
        if config.n_kv_heads < config.n_heads:
            shared = self._add("shared", by["repeat_interleave"][0], site=short, reads=[split_k, values])
            split_k = values = shared.id
        for step in by.get("embedding", []):
            self._add("bias", step, site=short, reads=[])
        turned_k = self._add("kt", by["mT"][0], site=short, view=True, reads=[split_k])
        product, (scores,) = by["matmul"][0], by["hook_scores"]
        self._add(
            "scores",
            scores,
            product,
            site=short,
            reads=[split_q, turned_k.id, self._id("bias") if "embedding" in by else None],
            fill={"scores": self.words["scores_bare"], "scores_code": self.words["scores_code_bare"]} if cross else {},
        )
        for step in by.get("mask", []):
            padding = self._padding(short, scores)
            said, code = self._mask(site, words.MASKS), self._mask(site, words.MASK_CODES)
            if padding is not None:
                said, code = self._mask(site, words.MASKS_PADDED), words.MASK_PADDED_CODE.format(code=code)
                batch, _, n, n_key = scores.shape
                step = replace(step, axes=scores.axes, shape=(batch, 1, n, n_key), bytes=step.bytes * batch)
            self._add("mask", step, site=short, reads=[padding], fill={"mask": said, "mask_code": code})
        for step in by.get("masked_fill", []):
            self._add("masked", step, site=short, reads=[self._id("scores"), self._id("mask")])
        self._add(
            "weights",
            by["hook_pattern"][0],
            site=short,
            reads=[self.rows[-1].id],
        )
        self._drop("weights", short)
        self._add("z", by["hook_z"][0], site=short, reads=[self.rows[-1].id, values])
        self._add("join", by["flatten"][-1], site=short)

    def _padding(self, site: str, scores: TracedStep) -> str | None:
        """What a batch of texts of different lengths adds to the mask; the texts of the trace are of one length, and one needs none."""
        batch, _, _, n_key = scores.shape
        if batch == 1:
            return None
        shape = (batch, 1, 1, n_key)
        step = TracedStep("keep", "", scores.axes, shape, "bool", batch * n_key, 0, False)
        return self._add("padding", step, site=site, reads=[], view=False).id

    def _mask(self, site: str, known: Mapping[str, str]) -> str:
        said = known["cross" if site == "cross_attn" else self.stack]
        window = self.config.window
        return said + (numbers.filled(known["window"], window=window) if window and site == "attn" else "")


def _as_computed(step: TracedStep) -> TracedStep:
    """The step with the axes of the code in its row: hooks of q, k and z see the token before the head."""
    if not step.name.endswith((".hook_q", ".hook_k", ".hook_z")):
        return step
    (batch, token, head, width), (a, b, c, d) = step.axes, step.shape
    return replace(step, axes=(batch, head, token, width), shape=(a, c, b, d))


def _by(step: TracedStep) -> int:
    """Bytes of one number."""
    count = 1
    for n in step.shape:
        count *= n
    return step.bytes // count


def _fills(config: ModelConfig) -> dict[str, str]:
    """What the words of a row say of this model."""
    order, norm = config.norm_order, words.NORM_NAMES[config.norm]
    positions, position_code = words.POSITION_CODES.get(config.position, ("", ""))
    turned = words.TURNED if config.position == "rotary" else ""
    parts = ["token", *(["position"] if config.has_position_table else []), *(["type"] if config.n_token_types else [])]
    embed, summed = " + ".join(parts), " + ".join(f"{part}s" if part == "position" else part for part in parts)
    scale = f"√{config.d_head}"
    if config.attn_scale is None:
        scores, code = f"q kᵀ / {scale}", "q @ k.mT * scale"
    else:
        scores, code = (
            ("q kᵀ", "q @ k.mT")
            if config.attn_scale == 1
            else (f"q kᵀ · {numbers.digits(config.attn_scale, 4)}", "q @ k.mT * scale")
        )
    bare, bare_code = scores, code  # of cross-attention, which knows no distance
    if config.position in ("relative", "alibi"):
        scores, code = f"{scores} + bias", f"{code} + bias"
    found = {
        "scale": numbers.digits(config.embed_scale, 4),
        "positions": positions,
        "position_code": position_code,
        "embed": f"{norm}({embed})" if config.embed_norm else embed,
        "embed_code": f"self.norm({summed})" if config.embed_norm else summed if len(parts) > 1 else "x",
        "norm": norm,
        "bias": " + b" if config.qkv_bias else "",
        "out_bias": " + b" if config.out_bias else "",
        "mlp_bias": " + b" if config.mlp_bias else "",
        "n_heads": str(config.n_heads),
        "n_kv_heads": str(config.n_kv_heads),
        "n_d_head": str(config.d_head),
        "group": str(config.n_heads // config.n_kv_heads),
        "turned": turned,
        "stays": words.TURNS if turned else words.STAYS,
        "turned_k": words.KEYS_TURNED if turned else "",
        "scores": scores,
        "scores_bare": bare,
        "scores_code_bare": bare_code,
        "scores_code": code,
        "act": words.ACTS[config.activation],
        "act_code": words.ACT_CODES[config.activation],
        "add": words.ADDS[order],
        "memory": "x",
        "mask": "",
        "mask_code": "",
        "unembed": "x W_Eᵀ" if config.tied else "x Wᵤ",
        "tied": words.TIED if config.tied else "",
        "final": words.FINAL["norm" if config.final_norm else "none"],
        "final_eq": f"{norm}(x)" if config.final_norm else "",
        "final_code": "self.norm(x)" if config.final_norm else "x",
    }
    for site, what in (("attn", "attention"), ("cross", "cross"), ("mlp", "FFN")):
        field = {"attn": "add_code", "cross": "add_cross_code", "mlp": "add_mlp_code"}[site]
        found[f"add_{site}"] = f"{norm}(x + {what})" if order == "post" else f"x + {what}"
        found[field] = f"self.{site}_norm(x + out)" if order == "post" else "x + out"
    if config.parallel:
        found["add_mlp"], found["add_mlp_code"] = "x + attention + FFN", "x + attention + mlp"
    return found


def _fill(text: str, fills: Mapping[str, str]) -> str:
    """Fill in what is of the model; axes stay in braces, for the component writes them in their colours."""
    for name, value in fills.items():
        text = text.replace(f"{{{name}}}", value)
    return text
