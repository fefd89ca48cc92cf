"""A trace as something to take away: a summary for JSON, arrays for numpy, a page for any browser, a few lines of words."""

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

from ..errors import TooLarge
from ..memory import MiB, admit, free_bytes
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.classes import Classes
from ..run.trace import Trace
from . import measures

MEASURED_ROWS = 1024  # measures of a longer head are taken on this many rows, evenly spaced, and say so
NPZ_BYTES = 4 << 30
HTML_BYTES = 6 << 20  # of weights; above it the page gets pictures of 64×64 instead


def summary(run: Trace) -> dict[str, Any]:
    """Everything about a run but the maps themselves, as plain JSON values: None for what is no finite number, since JSON has
    no word for that. Of a batch, the text that it is seen from."""
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
        "source": _tokens(run.source),
        "target": None if run.target is None else _tokens(run.target),
        "attention": [_attention(run, record) for record in run.attention],
        "residual_norms": {name: norms.tolist() for name, norms in run.residual_norms.items()},
        "steps": [asdict(step) for step in run.steps],
        "notices": list(run.warnings),
        "predictions": None if run.loaded.model.head is None else asdict(run.predictions()),
    }
    if run.loaded.classifier is not None:
        found["classes"] = asdict(run.classes())
    return _plain(found)


def _plain(value: Any) -> Any:
    """The same without NaN and infinities."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def words(run: Trace) -> str:
    """The run in a few lines, for a terminal. Of a batch, the text that it is seen from."""
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
    if (sentence := _where_numbers_end(run)) is not None:
        return "\n".join([*lines, sentence])
    lines += [*run.loaded.notices, *run.warnings]
    if run.loaded.model.head is not None:
        found = run.predictions(k=5)
        guesses = ", ".join(f"{s!r} {p:.1%}" for s, p in zip(found.strings[0], found.probs[0], strict=True))
        lines.append(f"after {tokens.labels[found.positions[0]]!r}: {guesses}")
    if run.loaded.classifier is not None:
        lines.append(_classes(run.classes()))
    lines.append("strongest look of each attention (where no later token is seen: but for the first token and itself):")
    for record in run.attention:
        queries, keys = run.tokens_of(record)
        weight, head, query, key = _strongest(record)
        looks = f"{queries.labels[query]!r} looks at {keys.labels[key]!r}"
        lines.append(f"  {record.name} head {head}: {looks}, {weight:.0%}")
    return "\n".join(lines)


def _classes(found: Classes) -> str:
    """The likeliest classes of a text, or the numbers of a regression, in a line."""
    if found.probabilities is None:
        return "numbers: " + ", ".join(f"{name!r} {x:.4g}" for name, x in zip(found.names, found.logits, strict=True))
    order = sorted(range(len(found.names)), key=lambda i: -found.logits[i])
    more = f" and {len(order) - 5} more" if len(order) > 5 else ""
    return "classes: " + ", ".join(f"{found.names[i]!r} {found.probabilities[i]:.1%}" for i in order[:5]) + more


def _strongest(record: AttentionRecord) -> tuple[float, int, int, int]:
    """The largest weight of an attention, with its head, query and key.

    Where no later token is seen, the first row has one cell of weight 1, and most heads rest on the first token: neither says
    anything of a text, so the first token and the token itself are left out, where there are others.
    """
    n, best = record.n_key, (-1.0, 0, 0, 0)
    looks_back = record.n_query == n > 2 and record.why_masked(query=0, key=1) == "future"
    for head in range(record.n_heads):
        weights = record.pattern(head)[0].clone()
        if looks_back:
            weights[:, 0] = 0
            weights.fill_diagonal_(0)
        where = int(weights.argmax())
        best = max(best, (weights.flatten()[where].item(), head, where // n, where % n))
    return best


def write_npz(run: Trace, path: Path) -> None:
    """Every head's weights, [head, query, key] float32 under each attention's name, with tokens and ids.

    Raises TooLarge, with both numbers, above 4 GiB and above what is free.
    """
    run = run.text(run.index)
    needed = sum(r.n_heads * r.n_query * r.n_key * 4 for r in run.attention)
    if needed > NPZ_BYTES:
        raise TooLarge(
            f"Every head's weights would be {needed / MiB:,.0f} MiB, and a file may hold {NPZ_BYTES / MiB:,.0f} MiB. "
            "Use a shorter text, or headlight.trace and pattern(heads, queries, keys) for the part you need."
        )
    admit(needed, free_bytes(torch.device("cpu")), "An archive of every head's weights")
    arrays: dict[str, Any] = {record.name: record.pattern().cpu().numpy() for record in run.attention}
    for what, tokens in (("source", run.source), ("target", run.target)):
        if tokens is not None:
            if min(tokens.ids) >= 0:  # of spellings alone no vocabulary is known
                arrays[f"{what}.ids"] = np.array(tokens.ids)
            arrays[f"{what}.labels"] = np.array(tokens.labels)
    with path.open("wb") as file:  # given a name, numpy would add .npz to it
        np.savez_compressed(file, **arrays)


def html(run: Trace) -> str:
    """One self-contained page that draws every head, works offline and holds the text as data, never as markup."""
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
                "mask": _bits(~record.mask()) if exact else None,
                "values": _uint16(values),
            }
        )
    captions = (
        f"{run.spec.title}, revision {run.spec.revision or 'as installed'}",
        f"torch {torch.__version__}, {run.device} {run.dtype}",
        _where_numbers_end(run),
    )
    data = {
        "title": run.spec.title,
        "text": run.source.text,
        "caption": "; ".join(filter(None, captions)),
        "records": records,
    }
    # "<" never appears, so no text can close the script element or open another
    return page.replace("/*DATA*/null", json.dumps(data).replace("<", "\\u003c"))


def _where_numbers_end(run: Trace) -> str | None:
    """A sentence for a run that has come to what is no number; None for any other."""
    found = run.non_finite
    if found is None:
        return None
    place = "" if found.layer is None else f" of layer {found.layer}"
    return f"numbers end at token {found.position}, in {found.what}{place} of the {found.stack}: {found.kind} from there on"


def _attention(run: Trace, record: AttentionRecord) -> dict[str, Any]:
    rows = torch.arange(0, record.n_query, max(1, math.ceil(record.n_query / MEASURED_ROWS)), device=record.device)
    heads = []
    for head in range(record.n_heads):
        pattern = record.pattern(head, rows)[0]
        sees = pattern.sum(-1) > 0
        heads.append(
            {
                "head": head,
                "entropy_bits": _mean(measures.entropy(pattern)[sees]),
                "distance": _mean(measures.distance(pattern, rows)[sees]) if record.site == "attn" else None,
                "first_token_share": measures.sink_share(pattern).item(),
                "previous_token_share": measures.previous_token(pattern, rows).item()
                if record.site == "attn"
                else None,
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


def _tokens(tokens: Tokens) -> dict[str, Any]:
    found = {
        "text": tokens.text,
        "labels": list(tokens.labels),
        "ids": None
        if any(i < 0 for i in tokens.ids)
        else list(tokens.ids),  # of spellings alone no vocabulary is known
        "strings": list(tokens.strings),
    }
    if tokens.is_chat:
        found |= {"roles": list(tokens.roles), "from_template": list(tokens.from_template)}
    return found


def _mean(x: Tensor) -> float | None:
    return x.mean().item() if len(x) else None


def _uint16(weights: Tensor) -> str:
    shares = (weights.nan_to_num(nan=0.0).clamp(0, 1) * 65535).round()
    return base64.b64encode(shares.cpu().numpy().astype("<u2").tobytes()).decode()


def _bits(hidden: Tensor) -> str:
    return base64.b64encode(np.packbits(hidden.cpu().numpy().reshape(-1)).tobytes()).decode()
