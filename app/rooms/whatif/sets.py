"""A set of pairs of sentences: read from what a visitor pasted, run pair by pair, and put into a file. None of it is kept in a link."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from app import languages
from app.export import about, files
from app.kit.numbers import filled
from app.rooms.whatif import changes, export, words
from app.session import service
from app.transport import messages
from app.transport.routes import BadParameter, answering
from core.errors import HeadlightError, TextError
from core.service import MIN_DIFFERENCE, Facts, Pair, PairChanges, PairRows, pairs_from, read_pairs

UNKEPT = {"Cache-Control": "no-store"}
MOST_CHARACTERS = 64_000  # of a set as it is sent


@answering
async def run_set(request: Request) -> Response:
    """The body says the pairs; the answer is framed messages: the pairs, each with its changes as it has run, and what the file says."""
    facts = await service.service().facts(request.query_params.get("run", ""))
    if not changes.has_parts(facts):
        raise BadParameter(words.NO_PARTS)
    pairs = pairs_of(await said(request))
    rows = service.service().pair_rows(facts.key, pairs)
    first = await anext(rows)  # refusals come before anything is sent

    async def stream() -> AsyncGenerator[bytes]:
        found = [first]
        yield messages.framed({"pairs": [[pair.text, pair.other] for pair in pairs]}, b"")
        for message in of_pairs(first):
            yield message
        try:
            async for row in rows:
                found.append(row)
                for message in of_pairs(row):
                    yield message
            yield messages.framed(of_set(facts, found, date.today()), b"")
        except HeadlightError as error:
            yield messages.framed({"refused": languages.said(error)}, b"")
        finally:
            await rows.aclose()

    return StreamingResponse(stream(), media_type="application/octet-stream", headers=UNKEPT)


async def said(request: Request) -> Mapping[str, Any]:
    """The body, as far as it is a set. Raises BadParameter."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > 4 * MOST_CHARACTERS:
            raise BadParameter(filled(words.SET_TOO_LONG, n=len(body), most=MOST_CHARACTERS))
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):  # lists within lists within lists
        raise BadParameter(words.SET_UNREADABLE) from None
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise BadParameter(words.SET_UNREADABLE)
    if (n := sum(map(len, found.values()))) > MOST_CHARACTERS:
        raise BadParameter(filled(words.SET_TOO_LONG, n=n, most=MOST_CHARACTERS))
    return found


def pairs_of(found: Mapping[str, str]) -> tuple[Pair, ...]:
    """The pairs of lines, or of a template and words for it. Raises TextError with the line."""
    if "template" not in found:
        return read_pairs(found.get("lines", ""))
    fillings = []
    for i, line in enumerate(found.get("words", "").splitlines(), 1):
        cells = [cell.strip() for cell in line.replace("\t", ",").split(",")]
        if not any(cells):
            continue
        if len(cells) != 2:
            raise TextError(words.SET_WORDS.format(line=i, n=len(cells)))
        fillings.append((cells[0], cells[1]))
    asks = [cell.strip() or None for cell in (*found.get("asks", "").split(","), "", "")[:2]]
    other = found.get("other", "").strip() or None
    return pairs_from(found["template"].strip(), fillings, other, asks[0], asks[1], found.get("both") == "on")


def of_pairs(rows: PairRows) -> list[bytes]:
    """A message for each pair that has run: of a set that is known they come together."""
    return [of_pair(rows.first + i, pair) for i, pair in enumerate(rows.pairs)]


def of_pair(at: int, pair: PairChanges) -> bytes:
    """One message: a pair that has run."""
    body = messages.Body()
    header = {
        "pair": at,
        "words": pair.words,
        "leads": pair.leads,
        "each": pair.heads.shape[1],
        "layers": len(pair.mlps),
        "heads_at": body.add(messages.float32(pair.heads)),
        "mlps_at": body.add(messages.float32(pair.mlps)),
    }
    return messages.framed(header, body.bytes())


def set_code(run: Facts, pairs: Sequence[PairChanges]) -> str:
    """Python that gives the shares of all heads again, a line for each."""
    given = [
        f"    hl.patching.Pair({p.pair.text!r}, {p.pair.other!r}, {p.pair.answer!r}, {p.pair.alternative!r}),"
        for p in pairs
    ]
    return "\n".join(
        [
            "import headlight as hl",
            "",
            about.load_line(run),
            "pairs = [",
            *given,
            "]",
            "*_, found = hl.patching.patch_pairs(loaded, pairs)",
            "for head, mean, spread in zip(found.heads, found.mean, found.spread):",
            "    print(head.layer, head.head, float(mean), float(spread))",
        ]
    )


def of_set(run: Facts, rows: Sequence[PairRows], today: date) -> dict[str, Any]:
    """For the files: caption, code, and a table of every part with its mean share, its spread, and its share in each pair."""
    pairs = [pair for each in rows for pair in each.pairs]
    whole = np.array([pair.leads[1] - pair.leads[0] for pair in pairs])
    counted = np.abs(whole) >= MIN_DIFFERENCE
    said, code = export.caption(run, today), set_code(run, pairs)
    table = []
    for kind, name in (("head", "heads"), ("mlp", "mlps")):
        numbers = np.stack([getattr(pair, name) for pair in pairs])
        for at in np.ndindex(numbers.shape[1:]):
            shares = numbers[(slice(None), *at)][counted] / whole[counted]
            mean = shares.mean() if len(shares) else np.nan
            table.append(
                {
                    "part": words.PART_KINDS[kind],
                    "layer": at[0],
                    "head": at[1] if kind == "head" else "",
                    "mean": float(mean),
                    "spread": float(shares.std(ddof=1)) if len(shares) > 1 else np.nan,
                    "same_sign": int((np.sign(shares) == np.sign(mean)).sum()),
                    "pairs": int(counted.sum()),
                    **{
                        f"pair {i + 1}": float(numbers[(i, *at)] / whole[i]) if counted[i] else ""
                        for i in range(len(pairs))
                    },
                }
            )
    name = "headlight-whatif-set"
    return {
        "caption": said,
        "snippet": code,
        "name": name,
        "table": [words.TABLE_SET, name, files.table_csv(pd.DataFrame(table), said, code)],
    }


ROUTES = [Route("/headlight/whatif/set", run_set, methods=["POST"])]
