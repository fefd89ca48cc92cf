"""Where a page finds the makers of files that few ask for: none of them is fetched with a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.transport import modules, words

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

FOLDER = "kit/browser/writers"


async def writer(request: Request) -> Response:
    """To the module of this name, at the address that carries its hash. Its own imports are beside it there."""
    from starlette.responses import PlainTextResponse, RedirectResponse

    name = f"{FOLDER}/{request.path_params['name']}"
    headers = {"Cache-Control": "no-store"}
    if name not in modules.names():
        return PlainTextResponse(words.NO_MODULE, 404, headers=headers)
    return RedirectResponse(f"../m/{modules.address(name)}", 307, headers=headers)
