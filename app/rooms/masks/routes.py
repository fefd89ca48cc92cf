"""Routes of the room: a run with another mask, padding, leakage, the scale, and scores that did not come with the room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
from starlette.requests import Request
from starlette.routing import Route

from app.attention import turns
from app.export import offline
from app.kit import numbers
from app.kit import params as kit_params
from app.rooms.masks import choices, export, in_code, sheet, two_texts, words
from app.rooms.masks.component import OFFLINE
from app.session import service
from app.shell import style
from app.transport import messages
from app.transport.messages import Body, float32
from app.transport.routes import BadParameter, cached_route, number
from core.edits import DropCausalMask
from core.run.request import Request as Asked
from core.service import Facts, Site

IDS = 16  # words whose probability may be asked for
LONGEST = 2_000  # characters of the texts of a batch


def _values(request: Request, facts: Facts) -> Mapping[str, str]:
    """The choices that an address spells out. Raises BadParameter, saying what is possible."""
    openings: dict[str, tuple[int, int, int]] = {site.id: (0, 0, 0) for site in facts.sites}
    said = {
        param.name: request.query_params[param.name] for param in choices.PARAMS if param.name in request.query_params
    }
    values, notes = kit_params.read(choices.PARAMS, choices.Shown(facts, openings), said)
    if notes:
        raise BadParameter(notes[0])
    return values


@cached_route
async def edited(request: Request) -> bytes:
    """A run under the mask of the address: run, the room's choices, ids, the words whose probability is asked for, and part, where
    the scores of the chosen layer are enough."""
    ask, key = service.service(), request.query_params.get("run", "")
    facts = await ask.facts(key)
    values = _values(request, facts)
    ids = _ids(request.query_params.get("ids", ""))
    other = await ask.edited(key, choices.edits(values, facts))
    site = choices.site_of(facts, values["site"])
    assert site is not None  # the choices have been read
    body, sent = Body(), sheet.NOTHING_SENT
    if max(site.n_query, site.n_key) <= choices.SHOWN:  # of a longer text rows are asked for
        masked = await ask.masked(other, site.id)
        every = range(len(site.records))
        is_whole = masked.scores.nbytes <= sheet.LATER and "part" not in request.query_params
        sent = sheet.packed_scores(masked, every if is_whole else [min(int(values["layer"]), len(every) - 1)], body)
    own, now = await ask.outcome(key), await ask.outcome(other, ids)
    about = await ask.facts(other)
    newcomers = [i for i, _, _ in now.words if i not in {known for known, _, _ in own.words}]
    before = (await ask.outcome(key, newcomers)).asked if newcomers else ()
    header = {
        "key": other,
        "site": {**sheet.described(site), **sent},
        "outcome": {**sheet.outcome(now), "newcomers": [*zip(newcomers, before, strict=True)]},
        "degrees": turns.degrees(own.vector, now.vector),
        "edits": about.interventions,
    }
    return messages.pack({**header, "about": export.painted(about, site.id)}, body.bytes())


@cached_route
async def ladder(request: Request) -> bytes:
    """The next word with one look forbidden in the heads that look hardest, more and more of them: run, site, query, key, and from,
    the place of the first of a few steps in choices.ladder()."""
    ask, key = service.service(), request.query_params.get("run", "")
    facts = await ask.facts(key)
    site = choices.site_of(facts, request.query_params.get("site", ""))
    if site is None:
        raise BadParameter(words.ROUTE_SITE.format(known=", ".join(each.id for each in facts.sites)))
    query, at = number(request, "query", 0, site.n_query - 1), number(request, "key", 0, site.n_key - 1)
    looks = await ask.looks_at(key, site.id, query, at)
    steps = choices.ladder(looks.size)
    first = number(request, "from", 0, len(steps) - 1)
    strongest = [divmod(int(i), site.n_heads) for i in np.argsort(-looks, axis=None, kind="stable")]
    own = await ask.outcome(key)
    if not own.words:
        raise BadParameter(words.ROUTE_WRITES)
    chances = []
    for heads in steps[first : first + choices.RUNGS]:
        edits = choices.forbidden_in(facts, site, (query, at), strongest[:heads])
        other = await ask.edited(key, edits) if edits else key
        chances.append((await ask.outcome(other, [own.words[0][0]])).asked[0])
    return messages.pack({"steps": steps, "from": first, "chances": chances}, b"")


def _layer(facts: Facts, request: Request) -> tuple[Site, int]:
    """The kind of attention that is asked for, and its layer."""
    site = choices.site_of(facts, request.query_params.get("site", ""))
    if site is None:
        raise BadParameter(words.ROUTE_SITE.format(known=", ".join(each.id for each in facts.sites)))
    return site, number(request, "layer", 0, len(site.records) - 1)


@cached_route
async def scores(request: Request) -> bytes:
    """The scores of one layer of a site: run, site, layer."""
    ask, key = service.service(), request.query_params.get("run", "")
    site, layer = _layer(await ask.facts(key), request)
    body = Body()
    found = await ask.masked(key, site.id, [layer])
    header = {"site": {**sheet.described(site), **sheet.packed_scores(found, [layer], body)}}
    return messages.pack(header, body.bytes())


@cached_route
async def rows(request: Request) -> bytes:
    """Some rows of one head of a long text: run, which may be one under another mask, site, layer, head, and from, the first of them."""
    ask, key = service.service(), request.query_params.get("run", "")
    site, layer = _layer(await ask.facts(key), request)
    head, first = number(request, "head", 0, site.n_heads - 1), number(request, "from", 0, site.n_query - 1)
    end = min(first + choices.BLOCK, site.n_query)
    found, reasons = await ask.masked_rows(key, site.id, layer, head, (first, end))
    body = Body()
    header = {
        "from": first,
        "rows": end - first,
        "scores": body.add(float32(found)),
        "mask": body.add(reasons.astype("u1")),
    }
    return messages.pack(header, body.bytes())


@cached_route
async def kind(request: Request) -> bytes:
    """One kind of attention on a model that has it: run, kind, sentence_of (example, or yours, that of the run), layer and head, or
    those that stand out."""
    ask, key = service.service(), request.query_params.get("run", "")
    own, id_ = await ask.facts(key), request.query_params.get("kind", "")
    if id_ not in choices.KINDS:
        raise BadParameter(words.ROUTE_KIND.format(known=", ".join(choices.KINDS)))
    is_own = [site.id for site in own.sites] == [id_]
    text = words.KINDS_GERMAN if id_ == "cross" else words.KINDS_TEXT
    if request.query_params.get("sentence_of") == "yours":
        text = own.source.text
    facts = await ask.facts(await ask.submit(Asked(own.spec.id if is_own else choices.KINDS[id_], (text,))))
    if (n := max(len(facts.source), len(facts.target or ()))) > choices.SHOWN:
        raise BadParameter(words.ROUTE_KINDS.format(n=numbers.whole(n), most=choices.SHOWN))
    found = await sheet.opened(ask, facts)
    site, (layer, head, row) = sheet.site_named(facts, id_), found.shown.openings[id_]
    if "layer" in request.query_params:
        layer, head = number(request, "layer", 0, len(site.records) - 1), number(request, "head", 0, site.n_heads - 1)
    body = Body()
    header = {
        "title": facts.spec.title,
        "labels": {"source": facts.source.labels, "target": None if facts.target is None else facts.target.labels},
        "site": {**sheet.described(site), **sheet.packed_scores(found.masked[id_], [layer], body)},
        "place": [layer, head, row],
    }
    return messages.pack(header, body.bytes())


@cached_route
async def padding(request: Request) -> bytes:
    """A batch of sentences: run, texts (one a line), side, sentence (which is seen), and the layer, or none of it."""
    ask, key = service.service(), request.query_params.get("run", "")
    facts = await ask.facts(key)
    asked = request.query_params.get("texts", "")
    if len(asked) > LONGEST:
        raise BadParameter(words.ROUTE_TEXTS.format(most=LONGEST))
    texts = choices.sentences(asked, "")
    if len(texts) < 2:
        raise BadParameter(words.SECOND)
    side = "left" if request.query_params.get("side") == "left" else "right"
    lengths = [len(text) for text in texts]
    chosen = request.query_params.get("sentence", "")
    text = number(request, "sentence", 0, len(texts) - 1) if chosen else lengths.index(min(lengths))
    layer = number(request, "layer", 0, facts.config.stacks[0][1] - 1) if "layer" in request.query_params else None
    found = await ask.padded(key, texts, side, text, layer)
    if (n := len(found.labels[0])) > choices.WHOLE:
        raise BadParameter(words.ROUTE_LONG.format(n=n, most=choices.WHOLE))
    body = Body()
    header = {
        "labels": found.labels,
        "padding": found.padding,
        "text": found.text,
        "layer": found.layer,
        "causal": found.causal,
        "masked": body.add(float32(found.masked)),
        "free": body.add(float32(found.free)),
        "on_padding": found.on_padding.tolist(),
        "on_padding_free": found.on_padding_free.tolist(),
        "weights": found.weights,
        "output": found.output,
        "degrees": [turns.turned(x) for x in found.cosine],
        "next_word": found.next_word,
        "leads": found.leads,
    }
    snippet = export.padding_snippet(facts, texts, side, found.text)
    return messages.pack(export.answered(facts, snippet, header), body.bytes())


async def _with_mask(key: str) -> str:
    """This run, or one of a model whose mask can be taken away: the one that opens, on this text unless it is too long, or the
    Storyteller."""
    ask = service.service()
    facts = await ask.facts(key)
    if sheet.has_mask(facts):
        return key
    first = await ask.submit(service.DEFAULT_REQUEST)
    if not sheet.has_mask(await ask.facts(first)):
        return await _of_leaky(key)
    same = await ask.submit(Asked(service.DEFAULT_REQUEST.model_id, (facts.source.text,)))
    return same if 1 < len((await ask.facts(same)).source) <= choices.SHOWN else first


async def _of_leaky(key: str) -> str:
    """This run, where it is the Storyteller's; or the Storyteller on a sentence of its own."""
    ask = service.service()
    facts = await ask.facts(key)
    return key if facts.spec.id == choices.LEAKY else await ask.submit(Asked(choices.LEAKY, (words.COMPONENT["king"],)))


@cached_route
async def leak(request: Request) -> bytes:
    """A text read ahead: run, and leaky, "taken" for a mask taken away or "taught" for the model that learnt without.

    Of a run that has no mask to take away, or is of another model than the one that learnt without, another run is shown; its
    title and text are in the header.
    """
    ask, key = service.service(), request.query_params.get("run", "")
    is_taught = request.query_params.get("leaky") == "taught"
    shown = await (_of_leaky if is_taught else _with_mask)(key)
    facts = await ask.facts(shown)
    if (n := len(facts.source)) > choices.SHOWN:
        raise BadParameter(words.ROUTE_LEAK.format(n=numbers.whole(n), most=choices.SHOWN))
    header = {
        "title": facts.spec.title,
        "text": facts.source.text,
        "isOther": shown != key,
        "isOwnText": facts.source.text == (await ask.facts(key)).source.text,
        "labels": facts.source.labels,
    }
    if is_taught:
        found = await ask.leakage(shown)
        header |= {
            "losses": found.losses.tolist(),
            "dropped": found.dropped.tolist(),
            "without": found.relearnt.tolist(),
            "written_without": found.written_relearnt,
            "steps": found.steps,
            "seconds": found.seconds,
        }
    else:
        found = await ask.unmasked(shown)
        header |= {
            "losses": found.losses.tolist(),
            "without": found.without.tolist(),
            "written_without": found.written_without,
            "layers": len(facts.sites[0].records),
            "texts": words.LEAK_TEXTS,
        }
    header |= {
        "layer": found.layer,
        "head": found.head,
        "before": found.before.tolist(),
        "after": found.after.tolist(),
        "next_word": found.next_word,
        "written": found.written,
    }
    snippet = export.leak_snippet(facts) if is_taught else export.unmasked_snippet(facts)
    return messages.pack(export.answered(facts, snippet, header), b"")


@cached_route
async def leak_text(request: Request) -> bytes:
    """One of the texts on which a mask is taken away: run, and i. Its loss with the mask and without."""
    ask, key = service.service(), request.query_params.get("run", "")
    text = words.LEAK_TEXTS[number(request, "i", 0, len(words.LEAK_TEXTS) - 1)]
    facts = await ask.facts(await _with_mask(key))
    own = await ask.submit(Asked(facts.spec.id, (text,)))
    free = await ask.edited(own, (DropCausalMask(),))
    losses = [float((await ask.outcome(each)).losses.mean()) for each in (own, free)]
    return messages.pack({"losses": losses}, b"")


@cached_route
async def leak_pair(request: Request) -> bytes:
    """Two texts that differ in one word, with the mask and without: run, leaky, written and instead, the texts. Where one is not
    given it is the text of the run, and the same with a word changed by the model."""
    key, said = (
        request.query_params.get("run", ""),
        [request.query_params.get(name, "") for name in ("written", "instead")],
    )
    if max(map(len, said)) > choices.MOST_PARTNER:
        raise BadParameter(words.ROUTE_TEXTS.format(most=choices.MOST_PARTNER))
    ask = service.service()
    facts = await ask.facts(await (_of_leaky if request.query_params.get("leaky") == "taught" else _with_mask)(key))
    if said[0].strip():
        facts = await ask.facts(await ask.submit(Asked(facts.spec.id, (said[0],))))
    found = await two_texts.compared(
        facts, said[0] or facts.source.text, said[1] or await two_texts.guessed_instead(facts)
    )
    return messages.pack(asdict(found), b"")


@cached_route
async def code(request: Request) -> bytes:
    """The mask of the chosen head as code: run, and the room's choices."""
    ask, key = service.service(), request.query_params.get("run", "")
    facts = await ask.facts(key)
    values = _values(request, facts)
    site = choices.site_of(facts, values["site"])
    assert site is not None  # the choices have been read
    edits = choices.edits({**values, "when": "before", "fill": "inf"}, facts)
    layer = min(int(values["layer"]), len(site.records) - 1)
    found = await ask.masked(await ask.edited(key, edits) if edits else key, site.id, [layer])
    (of,) = found.mask_index
    at = of[int(values["head"]) if len(of) > 1 else 0]
    visible = np.ones((site.n_query, site.n_key), bool) if at < 0 else found.masks[at] == 0
    widths = {int(values["window"]), *(w for w in (facts.config.window,) if w)}
    return messages.pack({"snippets": [asdict(one) for one in in_code.snippets(visible, sorted(widths))]}, b"")


@cached_route
async def scale(request: Request) -> bytes:
    """The same text with the division by √d and without: run."""
    ask, key = service.service(), request.query_params.get("run", "")
    facts = await ask.facts(key)
    both = await ask.unscaled(key)
    own = await ask.outcome(key)
    other = await ask.outcome(await ask.edited(key, (choices.NO_SCALE,)), [own.words[0][0]] if own.words else ())
    header = {
        "spreads": [[s.d, s.variance, s.scaled, s.largest, s.largest_scaled] for s in await ask.spreads()],
        "own": [both.own.raw, both.own.scaled, both.own.entropy],
        "without": [both.without.raw, both.without.scaled, both.without.entropy],
        "outcome": sheet.outcome(other),
        # of the words that lead without the division
        "before": (await ask.outcome(key, [id_ for id_, _, _ in other.words])).asked if other.words else (),
    }
    return messages.pack(export.answered(facts, export.scale_snippet(facts), header), b"")


def _ids(text: str) -> list[int]:
    parts = text.split(",") if text else []
    if len(parts) > IDS or not all(part.isascii() and part.isdecimal() and len(part) <= 9 for part in parts):
        raise BadParameter(words.ROUTE_IDS.format(most=IDS))
    return [int(part) for part in parts]


ROUTES = [
    Route("/headlight/masks/page", offline.answer(OFFLINE, style.page_style)),
    Route("/headlight/masks/edited", edited),
    Route("/headlight/masks/ladder", ladder),
    Route("/headlight/masks/scores", scores),
    Route("/headlight/masks/rows", rows),
    Route("/headlight/masks/kind", kind),
    Route("/headlight/masks/padding", padding),
    Route("/headlight/masks/leak", leak),
    Route("/headlight/masks/leak_text", leak_text),
    Route("/headlight/masks/leak_pair", leak_pair),
    Route("/headlight/masks/scale", scale),
    Route("/headlight/masks/code", code),
]
