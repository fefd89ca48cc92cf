"""Routes of What if: a sweep as it is worked out, and the changed run beside the plain one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from app import languages
from app.export import files
from app.kit import params as kit_params
from app.kit.numbers import filled
from app.rooms.whatif import ahead, changes, export, words
from app.session import resolving, screen, service
from app.transport import messages, routes, visitors
from app.transport.routes import ANSWERS, BadParameter, answering, message
from core.edits import Edit, edit_text, from_text, to_text
from core.errors import HeadlightError, InterventionError, TextError
from core.run.request import Request as RunRequest
from core.service import AnswerChange, Facts, HeadPlace, MapTransform, PartEstimates, PartRows, SweepPart

UNKEPT = {"Cache-Control": "no-store"}
MOST_TOKENS = 256  # along a side of the maps of both runs; what moved most is told of longer texts as well
MOST_SEVERAL = 64  # beyond, one head alone is sent
MOVED_HEADS = 3
MOST_RANKED = 400  # heads in the table of those that look elsewhere; its file has all
MOVED = 0.02  # of a head's weight, beyond which it is said to look elsewhere


@dataclass(frozen=True)
class Both:
    """What the visitor asks for: the plain run a, the run b beside it, and what is changed."""

    said: Mapping[str, str]
    a: Facts
    own: tuple[Edit, ...]  # of a, as its link says them
    edits: tuple[Edit, ...]  # in every row of the sweep
    b: RunRequest  # before what is changed

    @property
    def same_run(self) -> bool:
        """Whether b is the run on the screen, and differs from it by what is changed alone."""
        return self.b == changes.beside({"against": "", "other": ""}, self.a, self.own)


async def read(request: Request) -> Both:
    """The parameters of a route. Raises BadParameter, Refused."""
    facts = await service.service().facts(request.query_params.get("run", ""))
    said, notes = kit_params.read(changes.PARAMS, facts, request.query_params)
    if notes:
        raise BadParameter(notes[0])
    try:
        own = from_text(request.query_params.get(screen.EDITS, ""))
    except InterventionError:
        raise BadParameter(words.EDITS_UNREADABLE.format(allowed=words.EDITS_ALLOWED)) from None
    if screen.is_link(said["against"]):
        b = await resolving.resolve(screen.from_link(said["against"]), said["other"])
    else:
        b = changes.beside(said, facts, own)
    return Both(said, facts, own, changes.base(said), b)


async def run_of(both: Both, edits: tuple[Edit, ...], *, other: bool) -> str:
    """The key of a run with these edits: of what is on the screen, or of what stands beside it."""
    asked = service.service()
    if not other or both.same_run:
        return await asked.edited(both.a.key, edits) if edits else both.a.key
    return await asked.submit(replace(both.b, interventions=(*both.b.interventions, *edits)))


@answering
async def sweep(request: Request) -> Response:
    """A sweep as framed messages: rows as they are worked out, and at the end what its files say. A refusal is a sentence."""
    begun = ahead.take(visitors.accounts_of(request.scope), request.query_params.get("run", ""))
    try:
        return await _swept(request, () if begun is None else (begun,))
    except BaseException:
        if begun is not None:
            begun.cancel()
        raise


async def _swept(request: Request, held: Sequence[Future[None]]) -> Response:
    """What sweep() answers; what is held goes with it."""
    place = routes.asked(request)
    if (done := ANSWERS.known(place)) is not None:
        for one in held:
            one.cancel()
        return routes.as_read(request, done, UNKEPT)
    both = await read(request)
    key = await run_of(both, both.edits, other=False)
    taken = both.said["sweep"] == "patch"
    if taken and not both.said["against"]:
        raise BadParameter(words.PATCH_NEEDS_TEXT)
    other = await run_of(both, both.edits, other=True) if taken else key
    token = None
    if both.edits and both.a.writes:  # the answer of the run above, whatever the kept changes made of it
        position = changes.asked_behind(both.said, both.a)
        found = await service.service().predictions(both.a.key, None if position is None else [position], 1)
        token = found.ids[0][0]
    elif both.edits and changes.sorts(both.a):
        token = (await service.service().answer_change(both.a.key, both.a.key)).words[0].id
    asked = changes.asked(both.said, both.a, other, token)
    parts = service.service().sweep(key, asked)
    first = await anext(parts)  # what it is refused for comes before anything is sent

    async def stream() -> AsyncGenerator[bytes]:
        found, sent = [first], [framed(both, first)]
        yield sent[0]
        try:
            async for part in parts:
                found.append(part)
                sent.append(framed(both, part))
                yield sent[-1]
            facts = await service.service().facts(key)
            theirs = await service.service().facts(other) if taken else None
            sent.append(messages.framed(export.of_sweep(facts, theirs, asked, found, date.today()), b""))
            ANSWERS.put(place, await routes.packed(b"".join(sent)))  # a class asks for it at once
            yield sent[-1]
        except (HeadlightError, IndexError) as error:
            yield messages.framed({"refused": languages.said(error)}, b"")
        finally:
            await parts.aclose()
            for one in held:
                one.cancel()

    return StreamingResponse(stream(), media_type="application/octet-stream", headers=UNKEPT)


def framed(both: Both, part: SweepPart) -> bytes:
    """One message: where its rows stand, and their numbers."""
    found = part.sweep
    before, after = found.before, found.after
    sites = {(place.stack, place.site): place.id for place in changes.places(both.a)}
    rows = [
        [sites[place.stack, place.site], place.layer, place.head]
        if isinstance(place, HeadPlace)
        else [place.query, place.key]
        for place in found.places
    ]
    header: dict[str, Any] = {
        "first": part.first,
        "of": part.of,
        "rows": rows,
        "position": found.position,
        "watched": found.watched,
        "labels": {str(i): label for i, label in found.labels.items()},
        "single": found.single,
        "only": found.query,
    }
    for name in ("probability", "kl", "ids", "likeliest", "distance", "turned"):
        field = "token_distance" if name == "turned" else name
        one, many = getattr(before, field), getattr(after, field)
        if many is not None:
            header[name] = np.asarray(many, float).round(7).tolist() if name != "ids" else many.tolist()
            header[f"{name}_before"] = np.asarray(one[0], float).round(7).tolist() if name != "ids" else one[0].tolist()
    if found.lengths is not None:
        header["written"] = found.lengths.astype(float).round(5).tolist()
    return messages.framed(header, b"")


@answering
async def parts(request: Request) -> Response:
    """Every part taken from the other sentence, silent, or set to its mean: estimates, then rows as their runs come, and at the end what the files say.

    With `alone` the row of one part alone, which is waited for.
    """
    one = "alone" in request.query_params
    place = routes.asked(request)
    if (done := ANSWERS.known(place)) is not None:
        return routes.as_read(request, done, UNKEPT)
    both = await read(request)
    if not changes.has_parts(both.a):
        raise BadParameter(words.NO_PARTS)
    if both.said["how"] == "patch" and not both.said["against"]:
        raise BadParameter(words.PATCH_NEEDS_TEXT)
    key = await run_of(both, both.edits, other=False)
    other = await run_of(both, both.edits, other=True) if both.said["against"] else None
    asked = changes.asked_parts(both.said, both.a, other)
    try:
        only = changes.part_of(request.query_params["alone"] or "-", both.a) if one else None
    except (KeyError, ValueError, IndexError):
        raise BadParameter(words.PART_ALLOWED) from None
    known = await service.service().part_estimates(key, asked)
    rows = service.service().part_rows(key, asked, only)

    async def stream() -> AsyncGenerator[bytes]:
        found: list[PartRows] = []
        sent = [estimated(known)]
        yield sent[0]
        try:
            async for part in rows:
                found.append(part)
                sent.append(of_rows(part))
                yield sent[-1]
            if not one:
                facts = await service.service().facts(key)
                theirs = None if other is None else await service.service().facts(other)
                sent.append(messages.framed(export.of_parts(facts, theirs, asked, known, found, date.today()), b""))
                yield sent[-1]
            ANSWERS.put(place, await routes.packed(b"".join(sent)))  # a class asks for it at once
        except (HeadlightError, IndexError) as error:
            yield messages.framed({"refused": languages.said(error)}, b"")
        finally:
            await rows.aclose()

    return StreamingResponse(stream(), media_type="application/octet-stream", headers=UNKEPT)


@answering
async def swaps(request: Request) -> Response:
    """Other sentences that are offered: of each the words that change places, the text, and the next word of it."""
    both = await read(request)
    if not changes.has_parts(both.a):
        raise BadParameter(words.NO_PARTS)
    found = () if both.a.conversation is not None else await service.service().swaps(both.a.key)
    offers = [[swap.replaced, swap.word, swap.text, swap.next_word, swap.probability] for swap in found]
    return message(messages.pack({"offers": offers}, b""))


def estimated(known: PartEstimates) -> bytes:
    """The first message: the words, the lead in both runs, and the estimates of heads and MLPs."""
    body = messages.Body()
    arrays = {"heads": known.heads, "mlps": known.mlps, "before": known.before, "there": known.there}
    header = {
        "position": known.position,
        "watched": known.watched,
        "labels": {str(token): label for token, label in known.labels.items()},
        "tokens": known.tokens,
        "of": known.of,
        "heads_each": known.heads.shape[1],
        **{f"{name}_at": body.add(messages.float32(x)) for name, x in arrays.items() if x is not None},
    }
    return messages.framed(header, body.bytes())


def of_rows(rows: PartRows) -> bytes:
    """One message of rows: log p of the words with each part changed, and the likeliest word."""
    body = messages.Body()
    header = {
        "parts": [changes.part_id(part) for part in rows.parts],
        "labels": {str(token): label for token, label in rows.labels.items()},
        "log_p_at": body.add(messages.float32(rows.log_p)),
        "top": rows.top.tolist(),
        "top_p_at": body.add(messages.float32(rows.top_p)),
    }
    return messages.framed(header, body.bytes())


@answering
async def side(request: Request) -> Response:
    """The changed run beside the plain one: its words or vectors, which heads look elsewhere, and the maps of some of them."""
    both = await read(request)
    pick = changes.picked(both.said, both.a)
    edits = (*both.edits, *pick)
    asked = service.service()
    key = await run_of(both, edits, other=True)
    b = await asked.facts(key)
    position = changes.asked_behind(both.said, both.a)
    answer = await asked.answer_change(both.a.key, key, position)
    heads = ()
    with suppress(TextError):  # of texts of other length, and models of other shape
        heads = (await asked.compare(both.a.key, key)).heads
    is_alike = both.a.spec.id.partition("@")[0] == b.spec.id.partition("@")[0]
    there = None if is_alike else await _opening(b)  # another model has heads of its own
    names = {record.name: i for i, record in enumerate(both.a.records)}
    ranked = sorted((head for head in heads if head.moved > 0), key=lambda head: -head.moved)
    shown = [(names[head.name], head.head) for head in ranked[:MOVED_HEADS]]
    sites = {record: site for site in both.a.sites for record in site.records}
    if both.said["moved"]:
        site_id, layer, head = both.said["moved"].split(".")
        record = next(site for site in both.a.sites if site.id == site_id).records[int(layer)]
        shown = [(record, int(head)), *(found for found in shown if found != (record, int(head)))]
    elif not shown:
        shown = [await _own(both, is_alike)]
    size = max(max(both.a.records[i].n_query, both.a.records[i].n_key) for i, _ in shown)
    wanted = shown[: 1 if size > MOST_SEVERAL else MOVED_HEADS + 1] if size <= MOST_TOKENS else []
    body = messages.Body()
    maps = []
    for record, head in wanted:
        mine, theirs = await asyncio.gather(_map(both.a, record, head), _map(b, *(there or (record, head))))
        place = both.a.records[record]
        maps.append(
            {
                "site": sites[record].id,
                "layer": place.layer,
                "head": head,
                "before": None if mine is None else {"at": body.add(messages.float32(mine)), "shape": mine.shape},
                "after": None if theirs is None else {"at": body.add(messages.float32(theirs)), "shape": theirs.shape},
                "there": None if there is None else [b.records[there[0]].layer, there[1]],
            }
        )
    moved = {(head.name, head.head): head for head in heads}
    header = {
        "words": rows_of(answer),
        "likeliest": None
        if answer.likeliest is None
        else [[word.id, word.label, word.before, word.after] for word in answer.likeliest],
        "shared": answer.shared,
        "kl": answer.kl,
        "losses": answer.losses,
        "distance": answer.distance,
        "turned": answer.turned,
        "entropy": answer.entropy,
        "comparable": bool(heads),
        "moved": [
            [sites[names[head.name]].id, head.layer, head.head, head.moved, head.query, head.key, head.largest]
            for head in ranked[:MOVED_HEADS]
        ],
        "ranked": [[sites[names[head.name]].id, head.layer, head.head, head.moved] for head in ranked[:MOST_RANKED]],
        "elsewhere": sum(head.moved > MOVED for head in moved.values()),
        "maps": maps,
        "too_long": size > MOST_TOKENS,
        "source": b.source.labels,
        "target": None if b.target is None else b.target.labels,
        "changed": export.unmatched(read_by(both.a), read_by(b)),
        "columns": [] if both.same_run else export.columns(read_by(both.a), read_by(b)),
        "source_changed": export.unmatched(both.a.source.labels, b.source.labels),
        "source_columns": export.columns(both.a.source.labels, b.source.labels),
        "model": b.spec.title,
        "pick": to_text(pick) or None,
        "edits": [[edit_text(edit), said(edit)] for edit in both.edits],
        "linked": screen.is_link(both.said["against"]),
        "there": screen.link(replace(both.b, interventions=(*both.b.interventions, *edits))),
        **export.of_side(both.a, b, answer, ranked, date.today()),
    }
    return message(messages.pack(header, body.bytes()))


@answering
async def arrays(request: Request) -> Response:
    """Both runs as NPZ: every weight of each, and what the answer became."""
    both = await read(request)
    pick = changes.picked(both.said, both.a)
    edits = (*both.edits, *pick)
    asked = service.service()
    key = await run_of(both, edits, other=True)
    b = await asked.facts(key)
    if max(both.a.weights, b.weights) > files.NPZ_CELLS:
        raise BadParameter(words.NPZ_TOO_LARGE)
    answer = await asked.answer_change(both.a.key, key, changes.asked_behind(both.said, both.a))
    mine, theirs = await asyncio.gather(asked.heads(both.a.key), asked.heads(key))
    body = await asyncio.get_running_loop().run_in_executor(
        None, export.npz, both.a, b, mine, theirs, answer, date.today()
    )
    headers = {"Content-Disposition": 'attachment; filename="headlight-whatif.npz"'}
    return Response(body, media_type="application/octet-stream", headers=headers)


def rows_of(answer: AnswerChange) -> list[list[Any]]:
    """The words before and after: [id, label, before, after]. One row a word, also where two models number it differently."""
    rows: dict[object, list[Any]] = {}
    for word in answer.words:
        row = rows.setdefault(word.id if answer.shared else word.label, [word.id, word.label, None, None])
        row[2] = word.before if row[2] is None else row[2]
        row[3] = word.after if row[3] is None else row[3]
    return list(rows.values())


async def _opening(run: Facts) -> tuple[int, int]:
    """Record and head that a picture of a run opens on."""
    look = await service.service().opening_look(run.key)
    name = "cross" if look.site == "cross_attn" else look.stack
    site = next(site for site in run.sites if site.id == name)
    return site.records[look.layer], look.head


async def _own(both: Both, is_alike: bool) -> tuple[int, int]:
    """The changed head itself if no other head changes. For another model, the head that its picture opens on; otherwise the last head."""
    layer, head = (changes.number(both.said[name]) for name in ("layer", "head"))
    if not is_alike and layer is None:
        return await _opening(both.a)
    site = next(s for s in both.a.sites if s.id == changes.place_of(both.a, both.said["site"]).id)
    return site.records[-1 if layer is None else layer], head or 0


async def _map(run: Facts, record: int, head: int) -> np.ndarray | None:
    """Every weight of a head, float32 [query, key]; None where the run has no such head."""
    if record >= len(run.records) or head >= run.records[record].n_heads:
        return None
    found = run.records[record]
    if max(found.n_query, found.n_key) > MOST_TOKENS:
        return None
    of = MapTransform(record, head, "head")
    tile = await service.service().cells(run.key, of, (0, found.n_query), (0, found.n_key))
    return np.nan_to_num(tile.values)


def said(edit: Edit) -> str:
    """An edit in a few words."""
    return words.CHANGES.get(edit_text(edit)) or filled(
        words.CHANGES_BY_KIND.get(edit.word, repr(edit)),
        **{name: getattr(edit, name) for name in edit.__dataclass_fields__},
    )


def read_by(run: Facts) -> tuple[str, ...]:
    """The tokens whose next words are predicted."""
    return (run.target or run.source).labels


ROUTES = [
    Route("/headlight/whatif/sweep", sweep),
    Route("/headlight/whatif/parts", parts),
    Route("/headlight/whatif/swaps", swaps),
    Route("/headlight/whatif/side", side),
    Route("/headlight/whatif/npz", arrays),
]
