"""The server: `streamlit run app/main.py`. Path line, warm-up, routes, sending and compression; ui.py is what runs per visitor."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

# The folder that holds the package: the repository, or where packages are installed.
ROOT = next(folder for folder in Path(__file__).resolve().parents if not (folder / "__init__.py").is_file())
if str(ROOT) not in sys.path:  # `streamlit run` puts app/ on the path, not the folder that holds it
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402
from anyio import to_thread  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402

from app.classroom import routes as classroom  # noqa: E402
from app.languages import spoken  # noqa: E402
from app.session import settings  # noqa: E402
from app.shell import closing, errors, link_preview, projector, refused, routes, warm  # noqa: E402
from app.streamlit_edge import (  # noqa: E402
    collection,
    connections,
    ending,
    greeting,
    hosts,
    page,
    rerunning,
    reserved,
    sockets,
    yielding,
)
from app.transport import (  # noqa: E402
    admission,
    background,
    bad_requests,
    build,
    closed,
    compress,
    edited,
    files,
    logs,
    metrics,
    open_answers,
    password,
    rate_limits,
    security_headers,
    tracebacks,
    visitors,
)
from app.transport import routes as transport_routes  # noqa: E402

logs.begin()  # before uvicorn reports anything: it imports this module first
BASE = transport_routes.BASE
MIDDLEWARE = [
    Middleware(bad_requests.Strange),
    Middleware(spoken.Spoken),
    Middleware(security_headers.Safe, no_pages=[f"{BASE}/headlight/"]),
    Middleware(closed.Closed, base=BASE),
    Middleware(password.Password, password=password.required(), sites=security_headers.ancestors()),
    Middleware(open_answers.Counted),
    Middleware(admission.Doors, base=BASE),
    Middleware(visitors.Named, embedding=security_headers.ancestors(), base=BASE),
    Middleware(rate_limits.Metered, base=BASE),
    Middleware(
        page.Scripted,
        more=[projector.script, projector.framed, refused.script, refused.away, refused.dropped],
        policy=partial(security_headers.policy, embedding=security_headers.ancestors()),
        is_edited=edited.ON,
        base=BASE,
        head=link_preview.head,
    ),
    Middleware(compress.Gzipped),
    Middleware(bad_requests.Failing),
]


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[dict[str, object]]:
    """No visitor is the first: the default model and its first picture are ready before the port answers."""
    hosts.allow_own(os.environ.get(settings.OWN_MACHINE) == "1")
    admission.house.most = admission.most()
    files.allow(admission.house.most)
    rate_limits.begin()
    classroom.begin()
    tracebacks.keep_texts_out()
    greeting.put_together_once()
    yielding.callbacks_are_whole()
    if edited.ON:
        rerunning.after_what_runs()
    sockets.send_at_once(asyncio.get_running_loop())
    known = connections.Connections()
    known.watch(asyncio.get_running_loop())

    def close_stalled() -> None:
        metrics.STALLED.inc(known.look())

    await to_thread.run_sync(build.build)  # it may ask git, which no request should wait for
    await to_thread.run_sync(warm.warm_up)
    logs.announce(f"Headlight answers at {greeting.address()}; Ctrl-C stops it.")
    tasks = [
        asyncio.create_task(background.every(collection.LOOK, collection.look)),
        asyncio.create_task(background.every(connections.LOOK, close_stalled)),
        asyncio.create_task(ending.first(closing.finish, closing.LONGEST)),
    ]
    yield {}
    for task in tasks:
        task.cancel()


app = st.App(
    Path(__file__).with_name("ui.py"),
    lifespan=lifespan,
    routes=reserved.beyond(routes.ROUTES),
    middleware=MIDDLEWARE,
    on_script_error=errors.on_script_error,
)
