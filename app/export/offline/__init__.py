"""The page that works offline: ES modules as one script."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app import languages
from app.export import words
from app.export.offline.bare import bare
from app.transport import edited, modules

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

HERE = Path(__file__).parent
STILL, DATA = "{{STILL}}", "{{DATA}}"  # the places of a page that are filled, in its order; its script comes after them
IMPORT = re.compile(r"^import\s+(\w+|\{[^}]*\})\s+from\s+\"(\.[^\"\n]+)\";\n", re.MULTILINE)
NAMED_EXPORT = re.compile(r"^export ((?:(?:async )?function\*?|class|const|let)\s+(\w+))", re.MULTILINE)
DEFAULT_EXPORT = re.compile(
    r"^export default (?=(?:function )?\(|[a-z]\w*\(|[A-Z]\w*;)", re.MULTILINE
)  # a value, or a class by its name
LEFT_OVER = re.compile(r"^\s*(?:import|export)\b(?!\(|\s*:)", re.MULTILINE)


def answer(entry: str, page_style: Callable[[], str]) -> Callable[[Request], Awaitable[Response]]:
    """The route that gives the page of a module, without its data; computed when a visitor first asks."""
    from starlette.responses import PlainTextResponse

    @edited.cached_by
    def text(language: str) -> str:
        return page(entry, page_style())

    async def found(_: Request) -> Response:
        return PlainTextResponse(
            text(languages.current()), headers={"Cache-Control": "no-cache", "Vary": "Accept-Language"}
        )

    return found


def page(entry: str, page_style: str) -> str:
    """The page that works offline: everything but its data, which the browser puts in. `entry` is the module that draws it.

    Its policy allows this one script, by its hash, and no request whatever.
    """
    return _frame(page_style, bundle(entry), "").replace(STILL, words.NO_SCRIPT, 1)


def packed(entry: str, page_style: str) -> str:
    """The same for load_head(), with its script as base64 of gzip, which a few lines unpack: a third of the bytes."""
    script = bundle(entry).encode()
    code = base64.b64encode(gzip.compress(script, 9, mtime=0)).decode()
    element = f'<script type="text/plain" id="program">{code}</script>\n'
    return _frame(page_style, bare((HERE / "unpack.js").read_text(encoding="utf-8")), element, script)


def _frame(page_style: str, script: str, code: str, *allowed: bytes) -> str:
    """A page without a still and without data. `allowed` are scripts that its own one may put into it."""
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the script would end the element that holds it")
    hashes = (base64.b64encode(hashlib.sha256(one).digest()).decode() for one in (script.encode(), *allowed))
    text = (HERE / "page.html").read_text(encoding="utf-8")
    text = text.replace("{{LANGUAGE}}", languages.current()).replace(
        "{{SCRIPT-HASHES}}", " ".join(f"'sha256-{digest}'" for digest in hashes)
    )
    return text.replace("{{PAGE-STYLE}}", page_style.strip()).replace("{{CODE}}", code).replace("{{SCRIPT}}", script)


def filled(frame: str, still: str, data: bytes) -> str:
    """A packed page with its data: `still` is the HTML that a browser without scripts shows, `data` the message that the script draws."""
    before, _, rest = frame.partition(STILL)
    between, _, after = rest.partition(DATA)
    data += bytes(-len(data) % 2)
    apart = gzip.compress(data[::2] + data[1::2], 6, mtime=0)  # unpack.js puts them together again
    return "".join((before, still, between, base64.b64encode(apart).decode(), after))


def bundle(entry: str) -> str:
    """A module of the registry and all that it imports, as one script without imports.

    Every module becomes a function that returns what it exports, in an order in which each finds what it imports. Comments
    and indentation stay behind. Raises ValueError for an import or export that this does not understand, and for modules that
    import each other in a ring.
    """
    script = ['"use strict";', "const modules = {};"]
    for name in modules.closure(entry):
        source = bare(modules.source(name))

        def constants(found: re.Match[str], name: str = name) -> str:
            return _as_constants(found, modules.resolved(name, found[2]))

        names = [found[2] for found in NAMED_EXPORT.finditer(source)]
        if DEFAULT_EXPORT.search(source):
            names.append("default: byDefault")
        body = DEFAULT_EXPORT.sub("const byDefault = ", NAMED_EXPORT.sub(r"\1", IMPORT.sub(constants, source)))
        if left := LEFT_OVER.search(body):
            raise ValueError(f"{name}: bundle does not know {body[left.start() :].strip().splitlines()[0]!r}")
        script.append(f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(names)} }};\n}})();')
    return "\n".join(script)


def _as_constants(found: re.Match[str], module: str) -> str:
    """import { a, b as c } from "../x.js" -> const { a, b: c } = modules["kit/browser/x.js"]"""
    names = (
        re.sub(r"(\w+)\s+as\s+(\w+)", r"\1: \2", found[1]) if found[1].startswith("{") else f"{{ default: {found[1]} }}"
    )
    return f'const {names} = modules["{module}"];\n'
