"""What files of the room say about themselves, and the code that gives their numbers again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from app.export import about as export_about
from app.rooms.masks import words
from core.service import Facts


def about(facts: Facts, snippet: str, looks: str = "") -> dict[str, str]:
    """Caption, code and the beginning of a file's name. `looks` is the code of one head, whose place the browser fills in."""
    spec = facts.spec
    parts = [
        f"{words.TITLE}: {spec.title}" + (f" (sha256 {spec.sha256[:12]})" if spec.sha256 else ""),
        f"“{facts.source.text}”"
        + (f" → “{facts.target.text}”" if facts.target is not None and facts.target.text else ""),
        *([words.EDITED.format(edits=", ".join(facts.interventions))] if facts.interventions else []),
        f"{facts.device} {facts.dtype}",
        f"Headlight {export_about.version()}, torch {facts.torch_version}",
        date.today().isoformat(),
    ]
    return {
        "caption": export_about.line(parts),
        "snippet": snippet,
        "looks": looks,
        "name": f"headlight-masks-{_safe(spec.id)}",
    }


def painted(facts: Facts, site: str) -> dict[str, str]:
    """What files say of Paint a mask: scores, weights, next word and loss of a run, edited or not."""
    attention = "cross_attn" if site == "cross" else "attn"
    stack = "encoder" if site == "encoder" else "decoder"
    lines = [*_begin(facts), export_about.trace_line(facts)]
    if facts.writes:
        lines.insert(1, "from headlight.read.next_token_loss import given")
        lines += ["print(run.predictions(k=5))", "print(given(run).losses.mean())  # nats a token"]
    looks = [
        f'record = run.attention.at({{layer}}, "{attention}", "{stack}")',
        "print(record.scores({head}, masked=True)[0])  # masked scores [query, key]",
        "print(record.pattern({head}, {query})[0, 0])  # weights of one row [key]",
    ]
    return about(facts, "\n".join(lines) + "\n", "\n".join(looks) + "\n")


def padding_snippet(facts: Facts, texts: Sequence[str], side: str, text: int) -> str:
    """A batch, the same with its padding seen, and the text alone."""
    target = ', target=""' if facts.target is not None else ""
    targets = f", target={[''] * len(texts)!r}" if facts.target is not None else ""
    batch = f"[{', '.join(export_about.literal(each) for each in texts)}]"
    lines = [
        *_begin(facts),
        "from headlight.labs.masks import padding_invariance",
        f"texts = {batch}",
        f'batch = hl.trace(loaded, texts{targets}, padding_side="{side}")',
        f'free = hl.trace(loaded, texts{targets}, padding_side="{side}", interventions=[hl.edits.DropPadding()])',
        f"alone = hl.trace(loaded, texts[{text}]{target})",
        f"print(padding_invariance(batch.text({text}), alone))",
        f"print(padding_invariance(free.text({text}), alone))",
    ]
    return "\n".join(lines) + "\n"


def leak_snippet(facts: Facts) -> str:
    """Losses of the model and of the one that leaks."""
    lines = [
        *_begin(facts),
        "from headlight.labs.masks import leakage, relearnt",
        export_about.trace_line(facts),
        "found = leakage(run, relearnt(loaded))",
        "print(found.losses.mean(), found.dropped.mean(), found.relearnt.mean())  # nats a token",
        "print(found.written, found.written_relearnt)",
    ]
    return "\n".join(lines) + "\n"


def unmasked_snippet(facts: Facts) -> str:
    """Losses of a text with the causal mask and without, and what the model then writes."""
    lines = [
        *_begin(facts),
        "from headlight.labs.masks import without_causal_mask",
        "from headlight.write.generate import decoded",
        export_about.trace_line(facts),
        "found = without_causal_mask(run)",
        "print(found.losses.mean(), found.without.mean())  # nats a token",
        "print([decoded(loaded, ids) for ids in (found.written, found.written_without)])",
    ]
    return "\n".join(lines) + "\n"


def scale_snippet(facts: Facts) -> str:
    """Spread and entropy with the division and without."""
    plain = export_about.trace_line(facts)
    lines = [
        *_begin(facts),
        "from headlight.labs.sizes import WIDTHS, sharpness, spread",
        "print([spread(d) for d in WIDTHS])",
        plain,
        f"without = {plain.removeprefix('run = ')[:-1]}, interventions=[hl.edits.NoScale()])",
        "print(sharpness(run.attention), sharpness(without.attention))",
    ]
    return "\n".join(lines) + "\n"


def _begin(facts: Facts) -> list[str]:
    return [
        "import headlight as hl",
        *(["import torch"] if facts.dtype != "float32" else []),
        export_about.load_line(facts),
    ]


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)[:40]


def answered(facts: Facts, snippet: str, header: Mapping[str, Any]) -> dict[str, Any]:
    """A route's header with what files say."""
    return {**header, "about": about(facts, snippet)}
