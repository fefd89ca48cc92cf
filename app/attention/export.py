"""What an export of attention says about itself: title, caption, file name, and the code that gives its numbers again."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

from app.attention import selection as attention_selection
from app.attention import transform, words
from app.export import about
from app.kit import numbers
from core.service import Facts

NAMED = 8  # hidden tokens that a caption names


def title(run: Facts, selection: attention_selection.Selection) -> str:
    """Which picture this is: "MiniLM-L6, self-attention, layer 3, head 1"."""
    record = attention_selection.record_of(run, selection)
    site = words.SITES["cross" if record.site == "cross_attn" else record.stack][0]
    what = _map_name(run, selection)
    if selection.show == "heads":
        what = words.EXPORT_ALL_HEADS
        if selection.metric != "maps":
            what = words.EXPORT_METRIC_TITLE.format(metric=words.COMPONENT["metrics"][selection.metric][0])
    return f"{run.spec.title}, {site}, {what}"


def _map_name(run: Facts, selection: attention_selection.Selection) -> str:
    record = attention_selection.record_of(run, selection)
    if selection.kind in ("head", "value") and selection.members:
        heads = ", ".join(f"{run.records[i].layer}.{head}" for i, head in selection.members)
        return words.EXPORT_NAMES[f"{selection.kind}_{selection.show}"].format(heads=heads)
    if selection.kind in ("head", "value"):
        return words.EXPORT_NAMES[selection.kind].format(layer=record.layer, head=selection.head)
    if selection.kind == "rollout" or not selection.members:
        kind = "rollout" if selection.kind == "rollout" else f"{selection.kind}_layer"
        return words.EXPORT_NAMES[kind].format(layer=record.layer, n=record.n_heads)
    heads = ", ".join(f"{run.records[i].layer}.{head}" for i, head in selection.members)
    return words.EXPORT_NAMES[selection.kind].format(heads=heads)


def caption(run: Facts, selection: attention_selection.Selection, today: date) -> str:
    """Everything that a reader of the picture needs to know about it, in one line."""
    spec = run.spec
    revision = (
        f"revision {spec.revision[:12]}" if spec.revision else f"sha256 {spec.sha256[:12]}" if spec.sha256 else ""
    )
    parts = [title(run, selection) + (f" ({revision})" if revision else "")]
    if selection.show == "heads":
        metric = words.COMPONENT["metrics"][selection.metric][0]
        grid = words.EXPORT_GRID if selection.metric == "maps" else words.EXPORT_METRIC.format(metric=metric)
        parts += [grid, words.EXPORT_OUTLINED.format(head=_map_name(run, replace(selection, kind="head")))]
    else:
        parts += _treatment(run, selection)
    if run.interventions:
        parts.append(words.EXPORT_EDITED.format(edits=", ".join(run.interventions)))
    scale = selection.scale if selection.show in ("map", "beside") else selection.show
    scale = "metric" if selection.show == "heads" and selection.metric != "maps" else scale
    said = words.EXPORT_SCALES[scale].format(keep=selection.keep)
    if scale == "heads":
        said = words.EXPORT_SCALES["log" if selection.scale == "log" else "linear"] + said
    if selection.bounds and scale in ("linear", "log", "heads"):
        low, high = selection.bounds
        said += numbers.filled(words.EXPORT_SCALES["bounds"], low=low, high=high)
    if selection.apart is not None and scale in ("linear", "log"):
        token = run.tokens_of(selection.record)[1].labels[selection.apart]
        said += words.EXPORT_APART.format(token=token)
    parts.append(said)
    parts.append(f"{run.device} {run.dtype}")
    parts.append(f"Headlight {about.version()}, torch {run.torch_version}")
    parts.append(today.isoformat())
    return " · ".join(" ".join(part.split()) for part in parts)


def _treatment(run: Facts, selection: attention_selection.Selection) -> list[str]:
    """What the numbers are, and what was done to them."""
    parts = [words.EXPORT_UNITS[selection.unit]]
    if selection.show == "map":
        parts[0] += words.EXPORT_AXES
    if selection.hide:
        labels = run.tokens_of(selection.record)[1].labels
        names = ", ".join(f"{labels[i]} ({i})" for i in selection.hide[:NAMED])
        names += f" and {len(selection.hide) - NAMED} more" if len(selection.hide) > NAMED else ""
        parts.append(words.EXPORT_HIDDEN[selection.unit].format(tokens=names))
    if selection.merged:
        parts.append(words.EXPORT_MERGED)
    if selection.show == "map" and (selection.rows is not None or selection.columns is not None):
        (n_query, n_key), ((q0, q1), (k0, k1)) = (
            attention_selection.size(run, selection),
            attention_selection.region(run, selection),
        )
        parts.append(words.EXPORT_REGION.format(q0=q0, q1=q1 - 1, k0=k0, k1=k1 - 1, n=n_query, m=n_key))
    return parts


def file_name(run: Facts, selection: attention_selection.Selection) -> str:
    """A name for the file, of letters that every system allows: "minilm-l6-layer-3-head-1"."""
    kind = "" if selection.kind == "head" else f"-{selection.kind}"
    record = attention_selection.record_of(run, selection)
    head = f"-head-{selection.head}" if selection.kind in ("head", "value") else ""
    title = re.sub(r"[^a-z0-9]+", "-", run.spec.title.lower()).strip("-") or "model"
    cross = "-cross" if record.site == "cross_attn" else ""
    if selection.show == "heads":
        return f"{title}{cross}-all-heads"
    lines = f"-{selection.show}" if selection.show in attention_selection.APART else ""
    return f"{title}{cross}-layer-{record.layer}{head}{kind}{lines}"


def snippet(run: Facts, selection: attention_selection.Selection) -> str:
    """Python that gives the numbers of this selection, as `weights` [query, key]."""
    record = attention_selection.record_of(run, selection)
    lines = ["import torch", "", "import headlight as hl"]
    if selection.show != "heads" and selection.kind not in ("head", "value"):
        lines.append("from headlight.read import measures")
    elif selection.show != "heads" and selection.kind == "value":
        lines.append("from headlight.read.measures import value_weighted")
    lines += ["", about.load_line(run), about.trace_line(run)]
    if selection.show == "heads":
        lines.append(
            f"weights = [run.attention[i].pattern() for i in {attention_selection.stack_of(run, selection)}]  # of each layer: [head, query, key]"
        )
        return "\n".join(lines[2:]) + "\n"
    at, n = selection.record, selection.head
    if selection.kind in ("head", "value") and selection.members:
        get = (
            "run.attention[i].pattern(head)[0]"
            if selection.kind == "head"
            else "value_weighted(run.attention[i], head)"
        )
        lines.append(
            f"weights = torch.stack([{get} for i, head in {list(selection.members)}])  # [which head, query, key]"
        )
    elif selection.kind == "head":
        lines.append(f"weights = run.attention[{at}].pattern({n})[0]  # {record.name}, head {n}: [query, key]")
    elif selection.kind == "value":
        lines.append(
            f"weights = value_weighted(run.attention[{at}], {n})  # {record.name}, head {n}: [query, key] norms"
        )
    elif selection.kind == "rollout":
        stack = attention_selection.stack_of(run, selection)
        lines.append(f"weights = measures.rollout([run.attention[i] for i in {stack}], {record.layer})  # [query, key]")
    else:
        name = "mean" if selection.kind == "mean" else "maximum"
        if selection.members:
            heads = ", ".join(f"(run.attention[{i}], {head})" for i, head in selection.members)
            lines.append(f"heads = [{heads}]")
        else:
            lines.append(f"heads = [(run.attention[{at}], head) for head in range({record.n_heads})]  # {record.name}")
        lines.append(f"weights = measures.{name}(heads)  # [query, key]")
    if selection.hide:
        lines.append(f"weights[:, {list(selection.hide)}] = 0  # hidden keys")
        if selection.unit == "weight":
            lines.append("weights = torch.nan_to_num(weights / weights.sum(-1, keepdim=True))  # rows sum to 1 again")
    if selection.merged:
        whole = transform.axes(run, attention_selection.transform_of(selection))
        queries, keys = ([list(group) for group in groups] for groups in whole)
        lines += [
            f"keys = {keys}  # the tokens of each word: what they get is added up",
            "weights = torch.stack([weights[:, group].sum(-1) for group in keys], -1)",
            f"queries = {queries}  # what they give is averaged",
            "weights = torch.stack([weights[group].mean(0) for group in queries])",
        ]
    if selection.show == "map" and (selection.rows is not None or selection.columns is not None):
        rows, columns = (
            ":" if part is None else f"{part[0]}:{part[1]}" for part in (selection.rows, selection.columns)
        )
        lines.append(f"weights = weights[{rows}, {columns}]  # the part on the screen")
    if not any("torch." in line for line in lines[1:]):
        lines = lines[2:]
    return "\n".join(lines) + "\n"
