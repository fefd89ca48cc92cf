"""Whether a request comes from this machine itself, to a server that no other machine reaches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address

# A proxy says with one of these that the browser is somewhere else.
PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def is_local(host: str) -> bool:
    """Whether a host, with its port or without, is what a machine calls itself."""
    found = re.fullmatch(r"\[(.*)\](?::\d+)?|([^:]*)(?::\d+)?|(.*)", host)  # [::1]:8501, localhost:8501, ::1
    name = next(part for part in (*(found.groups() if found else ()), "") if part is not None)
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost" or name.lower().endswith(".localhost")


def is_own(headers: Mapping[str, str], listens_at: str | None) -> bool:
    """Whether a server that listens at this address was asked by a browser of its own machine, with nothing in between."""
    said = {name.lower(): value for name, value in headers.items()}
    direct = not any(name in said for name in PASSED_ON)
    return listens_at is not None and is_local(listens_at) and direct and is_local(said.get("host", ""))
