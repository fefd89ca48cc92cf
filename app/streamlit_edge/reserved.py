"""Routes that Streamlit takes below a path that begins with a name of its own, such as /static/."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send


class Beyond(BaseRoute):
    """A route whose path Streamlit does not look at."""

    def __init__(self, route: BaseRoute) -> None:
        self.route = route

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return self.route.matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.route.handle(scope, receive, send)


def beyond(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """The same routes. Streamlit refuses those that begin with /static/, /media/, /component/ or /_stcore/, and reads them without
    server.baseUrlPath: below such a path it would refuse all of ours, which are none of its own. Without this the server does not
    start there.
    """
    return [Beyond(route) for route in routes]
