"""Exports of a trace: JSON summary, NumPy arrays, standalone HTML page, short text."""

from __future__ import annotations

import base64
import json
import math
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from torch import Tensor

from ..device import MiB, check_fits, free_bytes
from ..errors import TooLarge
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.predictions import Classes
from ..run.trace_record import TraceRecord
from . import measures

MEASURED_ROWS = 1024  # rows that measures of a longer head use, evenly spaced
NPZ_BYTES = 4 << 30
HTML_BYTES = 6 << 20  # of weights; larger runs get thumbnails of 64×64 instead


def summary(run: TraceRecord) -> dict[str, Any]:
    """Everything about a run but its maps, as plain JSON values. NaN and infinities become None.

    Of a batch, only the selected text.
    """
    run = run.text(run.index)
    found = {
        "model": {
            "id": run.spec.id,
            "title": run.spec.title,
            "family": run.spec.family,
            "revision": run.spec.revision,
            "sha256": run.spec.sha256,
            "parameters": run.spec.n_params,
            "unused_tensors": list(run.loaded.unused),
            "notices": list(run.loaded.notices),
        },
        "config": {"kind": run.config.kind, **asdict(run.config)},
        "versions": {
            "torch": torch.__version__,
            "tokenizers": tokenizers.__version__,
            "python": platform.python_version(),
        },
        "device": run.device,
        "dtype": run.dtype,
        "interventions": [repr(edit) for edit in run.interventions],
        "non_finite": None if run.non_finite is None else asdict(run.non_finite),
        "seconds": run.seconds,
        "bytes": {"predicted": run.predicted_bytes, "held": run.nbytes},
        "source": _token_lists(run.source),
        "target": None if run.target is None else _token_lists(run.target),
        "attention": [_attention_measures(run, record) for record in run.attention],
        "residual_norms": {name: norms.tolist() for name, norms in run.residual_norms.items()},
        "steps": [asdict(step) for step in run.steps],
        "notices": list(run.warnings),
        "predictions": None if run.loaded.model.head is None else asdict(run.predictions()),
    }
    if run.loaded.classifier is not None:
        found["classes"] = asdict(run.classes())
    return _plain(found)


def _plain(value: Any) -> Any:
    """Replace NaN and infinities by None, because JSON has neither."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def words(run: TraceRecord) -> str:
    """The run in a few lines, for a terminal. Of a batch, only the selected text."""
    run = run.text(run.index)
    tokens = run.source if run.target is None else run.target
    heads = sorted({record.n_heads for record in run.attention} or {run.config.n_heads})
    took = f"{run.seconds * 1000:.0f} ms on" if run.seconds else "on"
    lines = [
        f"{run.spec.title}: {run.config.kind}, {' to '.join(map(str, heads[:: max(1, len(heads) - 1)]))} heads in each of "
        + ", ".join(f"{n} {name} layers" for name, n in run.config.stacks),
        f"{len(run.source)} tokens: {' '.join(run.source.labels)}",
        f"{took} {run.device} in {run.dtype}; holds {run.nbytes / MiB:.1f} MiB",
    ]
    if (sentence := _non_finite_note(run)) is not None:
        return "\n".join([*lines, sentence])
    lines += [*run.loaded.notices, *run.warnings]
    if run.loaded.model.head is not None:
        found = run.predictions(k=5)
        likeliest = ", ".join(f"{s!r} {p:.1%}" for s, p in zip(found.strings[0], found.probs[0], strict=True))
        lines.append(f"after {tokens.labels[found.positions[0]]!r}: {likeliest}")
    if run.loaded.classifier is not None:
        lines.append(_classes_line(run.classes()))
    lines.append("strongest look of each attention (where no later token is seen: but for the first token and itself):")
    for record in run.attention:
        queries, keys = run.tokens_of(record)
        weight, head, query, key = _strongest_weight(record)
        looks = f"{queries.labels[query]!r} looks at {keys.labels[key]!r}"
        lines.append(f"  {record.name} head {head}: {looks}, {weight:.0%}")
    return "\n".join(lines)


def _classes_line(found: Classes) -> str:
    """The five most likely classes of a text, or the numbers of a regression."""
    if found.probabilities is None:
        return "numbers: " + ", ".join(f"{name!r} {x:.4g}" for name, x in zip(found.names, found.logits, strict=True))
    order = sorted(range(len(found.names)), key=lambda i: -found.logits[i])
    more = f" and {len(order) - 5} more" if len(order) > 5 else ""
    return "classes: " + ", ".join(f"{found.names[i]!r} {found.probabilities[i]:.1%}" for i in order[:5]) + more


def _strongest_weight(record: AttentionRecord) -> tuple[float, int, int, int]:
    """The largest weight of an attention, with its head, query and key.

    With a causal mask the first token and the token itself are left out: the first row has only one key, and the first token is the
    attention sink of most heads.
    """
    n, best = record.n_key, (-1.0, 0, 0, 0)
    is_causal = record.n_query == n > 2 and record.why_masked(query=0, key=1) == "future"
    for head in range(record.n_heads):
        weights = record.pattern(head)[0].clone()
        if is_causal:
            weights[:, 0] = 0
            weights.fill_diagonal_(0)
        at = int(weights.argmax())
        best = max(best, (weights.flatten()[at].item(), head, at // n, at % n))
    return best


def write_npz(run: TraceRecord, path: Path) -> None:
    """Every head's weights, [head, query, key] float32 under each attention's name, with tokens and ids.

    Raises TooLarge, with both numbers, above 4 GiB and above the free memory.
    """
    run = run.text(run.index)
    needed = sum(r.n_heads * r.n_query * r.n_key * 4 for r in run.attention)
    if needed > NPZ_BYTES:
        raise TooLarge(
            f"Every head's weights would be {needed / MiB:,.0f} MiB, and a file may hold {NPZ_BYTES / MiB:,.0f} MiB. "
            "Use a shorter text, or headlight.trace and pattern(heads, queries, keys) for the part you need."
        )
    check_fits(needed, free_bytes(torch.device("cpu")), "An archive of every head's weights")
    arrays: dict[str, Any] = {record.name: record.pattern().cpu().numpy() for record in run.attention}
    for what, tokens in (("source", run.source), ("target", run.target)):
        if tokens is not None:
            if min(tokens.ids) >= 0:  # runs from spellings have no ids
                arrays[f"{what}.ids"] = np.array(tokens.ids)
            arrays[f"{what}.labels"] = np.array(tokens.labels)
    with path.open("wb") as file:  # numpy would append .npz to a name
        np.savez_compressed(file, **arrays)


def html(run: TraceRecord) -> str:
    """Self-contained page with every head, which works offline. The text is included as data, never as markup."""
    run = run.text(run.index)
    page = (Path(__file__).parent / "report.html").read_text(encoding="utf-8")
    total = sum(r.n_heads * r.n_query * r.n_key * 2 for r in run.attention)
    records = []
    for record in run.attention:
        queries, keys = run.tokens_of(record)
        exact = total <= HTML_BYTES
        values = record.pattern() if exact else record.thumbnail(64).values
        records.append(
            {
                "name": record.name,
                "queries": list(queries.labels),
                "keys": list(keys.labels),
                "shape": list(values.shape),
                "exact": exact,
                "how": "every weight, to 1/65535" if exact else record.thumbnail(64, heads=0).how,
                "mask": _base64(np.packbits(~record.mask().cpu().numpy())) if exact else None,
                "values": _base64((values.nan_to_num(nan=0.0).clamp(0, 1) * 65535).round().cpu().numpy().astype("<u2")),
            }
        )
    captions = (
        f"{run.spec.title}, revision {run.spec.revision or 'as installed'}",
        f"torch {torch.__version__}, {run.device} {run.dtype}",
        _non_finite_note(run),
    )
    data = {
        "title": run.spec.title,
        "text": run.source.text,
        "caption": "; ".join(filter(None, captions)),
        "records": records,
    }
    # without "<" no text can close the script element or open another
    return page.replace("/*DATA*/null", json.dumps(data).replace("<", "\\u003c"))


def _non_finite_note(run: TraceRecord) -> str | None:
    """Where the first NaN or infinity of a run is; None if all numbers are finite."""
    found = run.non_finite
    if found is None:
        return None
    place = "" if found.layer is None else f" of layer {found.layer}"
    return f"numbers end at token {found.position}, in {found.what}{place} of the {found.stack}: {found.kind} from there on"


def _attention_measures(run: TraceRecord, record: AttentionRecord) -> dict[str, Any]:
    rows = torch.arange(0, record.n_query, max(1, math.ceil(record.n_query / MEASURED_ROWS)), device=record.device)
    heads = []
    for head in range(record.n_heads):
        pattern = record.pattern(head, rows)[0]
        has_keys = pattern.sum(-1) > 0
        is_self = record.site == "attn"
        heads.append(
            {
                "head": head,
                "entropy_bits": _mean(measures.entropy(pattern)[has_keys]),
                "distance": _mean(measures.distance(pattern, rows)[has_keys]) if is_self else None,
                "first_token_share": measures.sink_share(pattern).item(),
                "previous_token_share": measures.previous_token(pattern, rows).item() if is_self else None,
            }
        )
    return {
        "name": record.name,
        "stack": record.stack,
        "layer": record.layer,
        "site": record.site,
        "heads": heads,
        "kv_heads": record.n_kv_heads,
        "shape": [record.n_heads, record.n_query, record.n_key],
        "rows_measured": len(rows),
        "receipt": asdict(record.receipt()),
    }


def _token_lists(tokens: Tokens) -> dict[str, Any]:
    found = {
        "text": tokens.text,
        "labels": list(tokens.labels),
        "ids": list(tokens.ids) if min(tokens.ids, default=0) >= 0 else None,  # runs from spellings have no ids
        "strings": list(tokens.strings),
    }
    if tokens.is_chat:
        found |= {"roles": list(tokens.roles), "from_template": list(tokens.from_template)}
    return found


def _mean(x: Tensor) -> float | None:
    return x.mean().item() if len(x) else None


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode()
