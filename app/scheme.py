"""Light or dark by the URL, for the whole page: theme=dark in a link wins over the browser's own preference.

Streamlit follows the browser's preference while it runs, through matchMedia, and has no setting that a link could make.
So the page gets a few lines, before any other script, that answer this one question with what the link says.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SCRIPT = """<script>
(() => {
  const real = window.matchMedia.bind(window);
  const heard = new Set();
  let chosen = new URLSearchParams(location.search).get("theme");
  const answer = (query, list) => {
    const asked = /^\\(prefers-color-scheme: *(dark|light)\\)$/.exec(query)?.[1];
    if (!asked) return list;
    return new Proxy(list, {
      get(target, name) {
        if (name === "matches" && (chosen === "dark" || chosen === "light")) return chosen === asked;
        if (name === "addEventListener") return (type, hear) => (heard.add(hear), target.addEventListener(type, hear));
        if (name === "removeEventListener") return (type, hear) => (heard.delete(hear), target.removeEventListener(type, hear));
        const value = target[name];
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  window.matchMedia = (query) => answer(query, real(query));
  window.headlightTheme = (theme) => {
    if (theme === chosen || (theme === "auto" && chosen === null)) return;
    chosen = theme === "auto" ? null : theme;
    for (const hear of heard) hear(new Event("change"));
  };
})();
</script>
"""
BEFORE = b"<title>"  # in Streamlit's page, before any script of its own


class Themed:
    """ASGI middleware: SCRIPT at the top of the page, and of nothing else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].startswith(("/static/", "/headlight/")):
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def through(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                plain = headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers
                if plain and message["status"] == 200:
                    start = message
                    return
            elif start is not None and message["type"] == "http.response.body":
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                page = body.replace(BEFORE, SCRIPT.encode() + BEFORE, 1)
                headers = MutableHeaders(raw=start["headers"])
                headers["content-length"] = str(len(page))
                for name in ("etag", "last-modified"):  # they are the file's, which may stay when SCRIPT changes
                    del headers[name]
                await send(start)
                await send({"type": "http.response.body", "body": page})
                return
            await send(message)

        await self.app(scope, receive, through)
