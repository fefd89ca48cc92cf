"""Visitors: a browser with its signed cookie, and the network address of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.transport import loopback, words
from app.transport.routes import BadParameter
from core import secret
from core.service.queue import Accounts, Askers, asked_from_now_on

COOKIE = "headlight"  # a random name that lasts until the browser is closed
PURPOSE = "visitor"  # of the signature
OURS = re.compile(
    rf"(?:^|;) *{COOKIE}=([A-Za-z0-9_-]+) *(?=;|$)"
)  # in all cookies of a browser, whatever the others say
NETWORK = 64  # bits of an IPv6 address that one household or host has to itself


def new_name() -> str:
    return secret.signed_name(PURPOSE)


def named(cookies: str) -> str:
    """The first name in a Cookie header that this server has signed; "" if there is none."""
    return next((name for name in OURS.findall(cookies) if secret.is_signed(name, PURPOSE)), "")


def name_of(scope: Scope) -> str:
    """The signed name of the browser that sent a request; "" if it has none."""
    return named("; ".join(Headers(scope=scope).getlist("cookie")))


def own_name(scope: Scope) -> str:
    """The signed name, for private data that an address must never identify. Raises BadParameter if there is none."""
    name = name_of(scope)
    if not name:
        raise BadParameter(words.NO_NAME)
    return name


def address_of(scope: Scope) -> str:
    """Network address of a request: an IPv4 address, or the /64 of an IPv6 address."""
    return network((scope.get("client") or ("nowhere",))[0])


def network(host: str) -> str:
    """Normalized address: IPv6 is cut to its /64, since one host can use all addresses in it."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ip_network((address, NETWORK), strict=False))
    return str(address)


def accounts(name: str, address: str) -> Accounts:
    """Accounts of a visitor: the browser and its address. Browsers without a name share one account per address."""
    return (name or f"nameless at {address}", f"at {address}")


def accounts_of(scope: Scope) -> Accounts:
    return accounts(name_of(scope), address_of(scope))


class Named:
    """ASGI middleware: gives a browser its name with the page, and charges the work of each request to its visitor.

    Inside a frame of another site (`embedding`) browsers only send cookies over a secure connection, and keep one jar per site.
    """

    def __init__(self, app: ASGIApp, embedding: Iterable[str] = (), base: str = "") -> None:
        self.app, self.is_framed, self.routes = app, bool([*embedding]), f"{base}/headlight/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked_from_now_on(Askers(accounts_of(scope)))

        async def with_name(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                is_page = headers.get("content-type", "").startswith("text/html")
                if is_page and not scope["path"].startswith(self.routes) and not name_of(scope):
                    headers.append("Set-Cookie", self.cookie(scope))
            await send(message)

        await self.app(scope, receive, with_name)

    def cookie(self, scope: Scope) -> str:
        """Set-Cookie header with a new name. The path is /, since only the proxy knows the path that the browser sees."""
        is_secure = scope.get("scheme") == "https"
        if self.is_framed and (is_secure or loopback.is_local(Headers(scope=scope).get("host", ""))):
            kind = "SameSite=None; Secure; Partitioned"
        else:
            kind = "SameSite=Lax; Secure" if is_secure else "SameSite=Lax"
        return f"{COOKIE}={new_name()}; Path=/; HttpOnly; {kind}"
