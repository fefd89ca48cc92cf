"""Routes of a run's attention: tiles, rows and columns as bytes, measures, receipts."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.attention import corpus, in_progress, picture, transform, words
from app.session import service
from app.transport import routes
from app.transport.routes import answering, number
from core.service import MAP_KINDS, Facts, MapTransform, Site, SiteId

MOST_NEXT = 64  # tokens of one answer about next words
CANDIDATES = 5  # words after each of them


@answering
async def tile(request: Request) -> Response:
    """One region of a map: run, record, head, q0, q1, k0, k1 (ends excluded), as picture.tile_message makes it.

    kind, members (record.head,record.head), hide (key,key) and words (true) say what it is a map of.
    """
    run, of = await _map(request)
    n_query, n_key = transform.size(run, of)
    q0 = number(request, "q0", 0, n_query - 1)
    q1 = number(request, "q1", q0 + 1, n_query)
    k0 = number(request, "k0", 0, n_key - 1)
    k1 = number(request, "k1", k0 + 1, n_key)
    return routes.message(picture.tile_message(of, await service.service().tile(run.key, of, (q0, q1), (k0, k1))))


@answering
async def row(request: Request) -> Response:
    """One row of a map: run, record, head, query, and the rest as for a tile."""
    run, of = await _map(request)
    query = number(request, "query", 0, transform.size(run, of)[0] - 1)
    return routes.message(picture.row_message(of, await service.service().row(run.key, of, query)))


@answering
async def column(request: Request) -> Response:
    """Who looks at one column of a map: run, record, head, key, and the rest as for a tile."""
    run, of = await _map(request)
    key = number(request, "key", 0, transform.size(run, of)[1] - 1)
    return routes.message(picture.column_message(await service.service().column(run.key, of, key)))


@answering
async def scores(request: Request) -> Response:
    """q·k of one row, before and after scaling: run, record, head, query."""
    run, of = await _map(request)
    query = number(request, "query", 0, run.site_of(of.record).n_query - 1)
    return routes.message(picture.scores_message(await service.service().scores(run.key, of.record, of.head, query)))


@answering
async def heads(request: Request) -> Response:
    """Every weight of a run that is not large: run."""
    run = await _run(request)
    _check_whole(run)

    async def make() -> bytes:
        return picture.heads_message(run, await service.service().heads(run.key))

    return await routes.kept(request, ("heads", run.key), make)


@answering
async def small(request: Request) -> Response:
    """The small pictures of a larger run: run, and from, the first record that is wanted, in the order of the pass."""
    run = await _run(request)
    start = number(request, "from", 0, len(run.records) - 1)

    async def make() -> bytes:
        return picture.small_pictures_message(run, await service.service().thumbnails(run.key), start)

    return await routes.kept(request, ("small", run.key, start), make)


@answering
async def norms(request: Request) -> Response:
    """What each key writes by each head of a site: run, site. Of a run that is not large."""
    run = await _run(request)
    site = _site(request, run)
    _check_whole(run)

    async def make() -> bytes:
        return picture.norms_message(await service.service().norms(run.key, site))

    return await routes.kept(request, ("norms", run.key, site), make)


@answering
async def next_words(request: Request) -> Response:
    """What the model is about to write after each token of a part of the text: run, from, to (end excluded)."""
    run = await _run(request)
    tokens = run.source if run.target is None else run.target
    start = number(request, "from", 0, len(tokens) - 1)
    stop = number(request, "to", start + 1, min(len(tokens), start + MOST_NEXT))
    found = await service.service().next_words(run.key, range(start, stop), CANDIDATES)
    return JSONResponse(picture.next_message(found, tokens.labels), headers=routes.KEPT)


@answering
async def roles(request: Request) -> Response:
    """Where the attention of each head goes on average: run. By record and head [name, share]."""
    run = await _run(request)
    found = await service.service().roles(run.key)
    return JSONResponse(picture.roles_message(found), headers=routes.KEPT)


@answering
async def atlas(request: Request) -> Response:
    """What the heads of the run's model do over a corpus: run, and a record and head for all that is known of one.

    Of a model without an atlas, and of a step of its training, there are 0 texts.
    """
    run = await _run(request)
    known = corpus.of(run.spec.id)
    if known is None or "head" not in request.query_params:
        return JSONResponse({"texts": 0 if known is None else known["source"]["n_texts"]}, headers=routes.KEPT)
    record = number(request, "record", 0, len(run.records) - 1)
    head = number(request, "head", 0, run.records[record].n_heads - 1)
    return JSONResponse(corpus.message(known, run, record, head), headers=routes.KEPT)


@answering
async def measures(request: Request) -> Response:
    """One number of each kind for every head of a site: run, site."""
    run = await _run(request)
    found = await service.service().measures(run.key, _site(request, run))
    return JSONResponse({"rows": found.rows, "of": found.of, **found.values}, headers=routes.KEPT)


@answering
async def sink(request: Request) -> Response:
    """The token that most heads of a site rest on: run, site. `is` says whether they do, `between` what the middle half of them give."""
    run = await _run(request)
    found = await service.service().sink(run.key, _site(request, run))
    return routes.message(picture.sink_packed(found))


@answering
async def looks(request: Request) -> Response:
    """The weight that every head of a site gives from one query to one key: run, site, query, key. Float32 [layer, head]."""
    run = await _run(request)
    site = next(one for one in run.sites if one.id == _site(request, run))
    query, key = number(request, "query", 0, site.n_query - 1), number(request, "key", 0, site.n_key - 1)
    return routes.message(picture.heads_numbers_message(await service.service().looks_at(run.key, site.id, query, key)))


@answering
async def correlations(request: Request) -> Response:
    """How like the map of one head that of every head of its site is: run, site, layer, head. Float32 [layer, head]."""
    run = await _run(request)
    site = next(one for one in run.sites if one.id == _site(request, run))
    layer, head = number(request, "layer", 0, len(site.records) - 1), number(request, "head", 0, site.n_heads - 1)
    found = await service.service().correlations(run.key, site.id, layer, head)
    return routes.message(picture.heads_numbers_message(found))


@answering
async def findings(request: Request) -> Response:
    """The look that says most of a run, and the next best of other kinds: run."""
    run = await _run(request)
    found = await service.service().findings(run.key)
    return JSONResponse({"found": [picture.finding_message(one) for one in found]}, headers=routes.KEPT)


@answering
async def additions(request: Request) -> Response:
    """The additions of every head of a site to the five likeliest words after one token: run, site, query. Float32 [word, layer, head].

    With candidate to that one of them alone, [layer, head].
    """
    run = await _run(request)
    site, query = _token(request, run)
    candidate = number(request, "candidate", 0, CANDIDATES - 1) if "candidate" in request.query_params else None
    found = await service.service().head_additions(run.key, site.id, query)
    return routes.message(picture.additions_message(found, candidate))


@answering
async def head_words(request: Request) -> Response:
    """The additions of the looks of one head after one token to one of the likeliest words, and the words that it raises and lowers.

    run, site, layer, head, query, and candidate for another word than the likeliest.
    """
    run = await _run(request)
    site, query = _token(request, run)
    layer, head = number(request, "layer", 0, len(site.records) - 1), number(request, "head", 0, site.n_heads - 1)
    candidate = number(request, "candidate", 0, CANDIDATES - 1) if "candidate" in request.query_params else 0
    found = await service.service().head_words(run.key, site.id, layer, head, query, candidate)
    return JSONResponse(picture.words_message(found), headers=routes.KEPT)


@answering
async def strip(request: Request) -> Response:
    """The whole model at one word, layer by layer: run, stack, and query, without which it is the last word's."""
    run, asked = await _run(request), request.query_params.get("stack", "")
    if asked not in dict(run.config.stacks):
        allowed = ", ".join(name for name, _ in run.config.stacks)
        raise routes.BadParameter(words.ROUTE_CHOICE.format(name="stack", allowed=allowed, value=asked[:20]))
    tokens = run.tokens("source" if asked == "encoder" else "target")
    query = number(request, "query", 0, len(tokens) - 1) if "query" in request.query_params else None
    found = await service.service().strip(run.key, asked, query)
    return JSONResponse(picture.strip_message(found), headers=routes.KEPT)


@routes.cached_route
async def proof(request: Request) -> bytes:
    """The receipt of one record: run, record."""
    run, record = await _run(request), number(request, "record", 0, 1 << 20)
    run.site_of(record)
    found = await service.service().proof(run.key, record)
    return json.dumps(picture.proof_message(found)).encode()


@answering
async def layers(request: Request) -> Response:
    """A run that still goes on, layer by layer: run, the record and head that are opened, and a query where one is locked.

    As live.parts makes it. A run that is small, has ended, or is not known has nothing to come.
    """
    run = await service.service().facts_so_far(request.query_params.get("run", ""))
    if run is None:
        return Response(status_code=204)
    record = number(request, "record", 0, len(run.records) - 1)
    site = run.site_of(record)
    head = number(request, "head", 0, site.n_heads - 1)
    query = number(request, "query", 0, site.n_query - 1) if "query" in request.query_params else None
    # Not held on the way: a proxy that collects the answer would keep the layers back until the last.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return routes.stream(request, in_progress.parts(run, record, head, query), headers)


async def _run(request: Request) -> Facts:
    return await service.service().facts(request.query_params.get("run", ""))


def _check_whole(run: Facts) -> None:
    if run.weights > picture.WHOLE:
        raise routes.BadParameter(words.ROUTE_LARGE)


def _site(request: Request, run: Facts) -> SiteId:
    asked = request.query_params.get("site", "")
    known: dict[str, SiteId] = {site.id: site.id for site in run.sites}
    if asked not in known:
        raise routes.BadParameter(words.ROUTE_CHOICE.format(name="site", allowed=", ".join(known), value=asked[:20]))
    return known[asked]


def _token(request: Request, run: Facts) -> tuple[Site, int]:
    """A kind of attention, and one of its queries."""
    asked = _site(request, run)
    site = next(one for one in run.sites if one.id == asked)
    return site, number(request, "query", 0, site.n_query - 1)


async def _map(request: Request) -> tuple[Facts, MapTransform]:
    """The run, and what the parameters ask for a map of."""
    run, asked = await _run(request), request.query_params
    at = number(request, "record", 0, len(run.records) - 1)
    record = run.records[at]
    head = number(request, "head", 0, record.n_heads - 1)
    kind = asked.get("kind", "head")
    if kind not in MAP_KINDS:
        raise routes.BadParameter(words.ROUTE_CHOICE.format(name="kind", allowed=", ".join(MAP_KINDS), value=kind[:20]))
    if asked.get("words", "false") not in ("true", "false"):
        raise routes.BadParameter(
            words.ROUTE_CHOICE.format(name="words", allowed="true, false", value=asked["words"][:20])
        )
    hidden = {routes.whole("hide", part, 0, record.n_key - 1) for part in routes.parts(asked.get("hide"))}
    if len(hidden) == record.n_key:
        raise routes.BadParameter(words.ROUTE_HIDES_ALL)
    members = []
    for pair in routes.parts(asked.get("members")):
        of, _, which = pair.partition(".")
        place = routes.whole("members", of, 0, len(run.records) - 1)
        other = run.records[place]
        if (other.stack, other.site) != (record.stack, record.site):
            raise routes.BadParameter(words.ROUTE_MEMBERS.format(place=place, record=at))
        members.append((place, routes.whole("members", which, 0, other.n_heads - 1)))
    if kind == "rollout" and record.site != "attn":
        raise routes.BadParameter(words.COMPONENT["rollout_cross"])
    chosen = tuple(dict.fromkeys(members))
    return run, MapTransform(at, head, kind, chosen, tuple(sorted(hidden)), asked.get("words") == "true")


ROUTES = [
    Route("/headlight/tile", tile),
    Route("/headlight/row", row),
    Route("/headlight/column", column),
    Route("/headlight/heads", heads),
    Route("/headlight/layers", layers),
    Route("/headlight/small", small),
    Route("/headlight/norms", norms),
    Route("/headlight/next", next_words),
    Route("/headlight/roles", roles),
    Route("/headlight/atlas", atlas),
    Route("/headlight/scores", scores),
    Route("/headlight/sink", sink),
    Route("/headlight/findings", findings),
    Route("/headlight/additions", additions),
    Route("/headlight/headwords", head_words),
    Route("/headlight/looks", looks),
    Route("/headlight/correlations", correlations),
    Route("/headlight/metrics", measures),
    Route("/headlight/proof", proof),
    Route("/headlight/strip", strip),
]
