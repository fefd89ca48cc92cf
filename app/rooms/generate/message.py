"""What the browser gets of a text that is being written: a header in words and numbers, and after it raw arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.attention import picture
from app.kit import params as kit_params
from app.kit.room import Message, Run
from app.rooms.generate import choices, export, words
from app.session.screen import Screen
from app.transport import messages
from core.errors import HeadlightError
from core.model.text import Tokens
from core.service import BeamsGrown, Facts, PreparedText, TokenDistribution, WrittenToken

WHOLE = 1_000_000  # weights of one message; above, the mean of all heads travels with the head that is looked with


async def message(run: Run, said: Mapping[str, str]) -> Message:
    """The room's message for a link. Raises Refused for a model that cannot write."""
    facts = run.facts
    if not facts.writes:
        raise HeadlightError(words.CANNOT_WRITE.format(title=facts.spec.title))
    values, notes = kit_params.read(choices.PARAMS, facts, said)
    link, about = Screen("generate", run.request).said(), export.described(facts, run.request)
    header = {"link": link, **outline(facts), "about": about}
    return Message(header, values, [*notes, *left_out(facts)], facts)


def left_out(facts: Facts) -> list[str]:
    """A sentence where the run has edits, which the room does not write with."""
    return [words.EDITS_LEFT_OUT] if facts.interventions else []


def outline(facts: Facts) -> dict[str, Any]:
    """What the browser needs to know of a run before anything is read."""
    config = facts.config
    return {
        "key": facts.key,
        "title": facts.spec.title,
        "vocab": config.vocab_size,
        "layers": config.n_decoder_layers,
        "heads": config.n_heads,
        "kv_heads": config.n_kv_heads,
        "source": list(facts.source.labels) if facts.target is not None else None,
        "turns": picture.turns(facts.source),
        "marks": marks(facts.source),
        "ran": f"{facts.device} {facts.dtype}",
    }


def marks(tokens: Tokens) -> list[tuple[int, str]]:
    """The tokens of a conversation that only say whose turn it is, or that a turn is over: where they stand, and whose turn begins
    there ("" where one ends)."""
    if not tokens.is_chat:
        return []
    found: dict[int, str] = {}
    for i, is_special in enumerate(tokens.special):
        if not is_special:
            continue
        role, end = tokens.roles[i] or "", i + 1
        found[i] = ""
        while end < len(tokens) and tokens.from_template[end] and not tokens.special[end]:
            said = tokens.text[tokens.offsets[i][1] : tokens.offsets[end][1]]
            if said.strip() and not role.startswith(said.strip()):
                break
            found[end] = ""
            end += 1
        named = tokens.text[tokens.offsets[i][1] : tokens.offsets[end - 1][1]].strip() == role != ""
        found |= dict.fromkeys(range(i, end), role if named else "")
    return sorted(found.items())


def begun(answer: PreparedText, head: tuple[int, int] | None) -> bytes:
    """A prompt and what is after it."""
    opening = answer.opening
    body = messages.Body()
    whole = sum(reading.rows.size for reading in opening.readings) <= WHOLE
    header = {
        "kind": "begun",
        "prompt": answer.prompt,
        "names": answer.prompt_labels,
        "labels": _spaced(answer.labels, answer.joins_previous),
        "glued": [token for token in answer.joins_previous if token not in answer.labels],
        "ends": answer.ends,
        "over": answer.over,
        "losses": [round(loss, 6) for loss in opening.losses.tolist()],
        "readings": [_reading(reading, body, whole, head) for reading in opening.readings],
        "bytes": {
            "token": answer.per_token.self_attention,
            "mha": answer.per_token.as_mha,
            "mqa": answer.per_token.as_mqa,
            "memory": opening.memory_bytes,
        },
    }
    return messages.framed(header, body.bytes())


def written(answer: WrittenToken, head: tuple[int, int] | None) -> bytes:
    """One more token."""
    body = messages.Body()
    reading, taken = answer.reading, answer.taken
    header = {
        "kind": "written",
        "taken": [taken.id, taken.prob, taken.rank],
        "labels": _spaced(answer.labels, answer.joins_previous),
        "over": answer.over,
        "reading": None if reading is None else _reading(reading, body, reading.rows.size <= WHOLE // 16, head),
    }
    return messages.framed(header, body.bytes())


def beams(answer: BeamsGrown) -> bytes:
    """One more step of a beam search."""
    (candidates,), (finished,) = answer.step.candidates, answer.step.finished
    header = {
        "kind": "beams",
        "index": answer.step.index,
        "candidates": [[c.row, c.id, c.log_prob, c.kept, c.ends] for c in candidates],
        "finished": [[beam.ids, beam.log_prob, beam.score, beam.ending] for beam in finished],
        "labels": _spaced(answer.labels, answer.joins_previous),
    }
    return messages.framed(header, b"")


def refused(sentence: str) -> bytes:
    """What is said where writing was begun and cannot go on."""
    return messages.framed({"kind": "refused", "sentence": sentence}, b"")


def _spaced(labels: dict[int, str], glued: Sequence[int]) -> dict[int, str]:
    """Labels with the space that their tokens bring with them."""
    close = set(glued)
    return {token: label if token in close else f" {label}" for token, label in labels.items()}


def _reading(
    reading: TokenDistribution, body: messages.Body, whole: bool, head: tuple[int, int] | None
) -> dict[str, Any]:
    rows = reading.rows.reshape(-1, reading.rows.shape[-1])
    if not whole:
        rows = np.stack([rows.mean(0), *([reading.rows[head]] if head is not None else [])])
    taken = reading.taken
    return {
        "position": reading.position,
        "id": reading.id,
        "listed": len(reading.ids),
        "keys": rows.shape[1],
        "rows": len(rows),
        "whole": whole,
        "head": head,
        "taken": None if taken is None else [taken.id, taken.prob, taken.rank],
        "entropy": round(reading.entropy, 6),
        "cache": reading.cache_bytes,
        "ms": None if reading.seconds is None else reading.seconds * 1000,
        "at": [
            body.add(reading.ids.astype("<i4")),
            body.add(messages.float32(reading.logits)),
            body.add(messages.float32(reading.rest)),
            body.add(messages.quantised(rows)),
        ],
    }
