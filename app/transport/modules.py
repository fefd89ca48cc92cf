"""Every browser file under an address that carries its hash: one registry for all components, compressed once, kept a year.

They are read once, when a component is registered. While a developer edits them (edited.ON) they are looked at whenever an address
is asked for, and what has changed, and all that imports it, has another address from then on. Only to serve them takes Streamlit: a page for a notebook is made of them without it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import posixpath
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import languages
from app.transport import edited, words

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

FOREVER = "public, max-age=31536000, immutable"  # for names that carry a hash of the content
IMPORT = re.compile(r'^(import\s+(?:\w+|\{[^}]*\})\s+from\s+)"(\.[^"\n]+)";', re.MULTILINE)

TABLES = (
    "WORDS",
    "ANSWER",
    "NO_ANSWER",
)  # constants that are tables of words: they are said in the language of who asks

MOST_SERVED = 3000  # texts, while files are edited: those of many changes, and the oldest go first

_lock = threading.RLock()
_sources: dict[str, tuple[str, str]] = {}  # name -> the folder that it is from, and its text
_addresses: dict[tuple[str, str], str] = {}  # (language, name) -> "<hash>/name.js"
_worded: dict[tuple[str, str], str] = {}  # (language, name) -> the text of a module of constants in another language
_served: dict[str, tuple[bytes, bytes]] = {}  # "<hash>/name.js" -> the text as it is sent, and the same compressed
_folders: dict[str, Path] = {}  # place -> the folder whose files are named by it
_constants: dict[str, dict[str, Any]] = {}  # name -> what add_constants() was given
_stamps: edited.Stamps = {}  # of what was read, while files are edited


def add(place: str, folder: Path) -> None:
    """Take in the .js files of a folder, named as in "kit/browser/dom.js" where `place` is "kit/browser".

    What a file imports it names by a relative path, as it lies on disk. Raises ValueError where another folder has a file
    of that name.
    """
    for path in sorted(folder.glob("*.js")):
        _put(f"{place}/{path.name}", str(folder.resolve()), path.read_text(encoding="utf-8"))
    _folders[place] = folder


def add_constants(name: str, **values: Any) -> None:
    """Take in a module that exports these values: words, colours and styles that Python knows.

    What may be edited while the server runs, or is another in another language, is a function that gives the value. TABLES are said
    in every language.
    """
    with languages.speaking(languages.ENGLISH):
        _put(name, "", _exports(values))
    _constants[name] = values


def _exports(values: dict[str, Any]) -> str:
    with languages.speaking(languages.ENGLISH):  # what is said already is no English text to look up
        tables = {key: value() if callable(value) else value for key, value in values.items() if key in TABLES}
    made = {
        key: languages.translated(tables[key]) if key in tables else value() if callable(value) else value
        for key, value in values.items()
    }
    return "".join(f"export const {key} = {json.dumps(value)};\n" for key, value in made.items())


def style(*paths: Path) -> Callable[[], str]:
    """What gives the text of these style sheets, one after the other."""
    return lambda: "".join(path.read_text(encoding="utf-8") for path in paths)


def look() -> None:
    """While files are edited: take in what has changed on disk since the last look. Else nothing is read a second time."""
    global _stamps
    if not edited.ON:
        return
    with _lock:
        now = edited.stamps(_folders.values())
        if now == _stamps:
            return
        if _stamps:
            edited.reload_words(_stamps, now)
        files = {name: Path(folder, posixpath.basename(name)) for name, (folder, _) in _sources.items() if folder}
        for name in [name for name, path in files.items() if not path.exists()]:
            del _sources[name]
            _forget()
        for place, folder in list(_folders.items()):
            add(place, folder)
        for name, values in list(_constants.items()):
            add_constants(name, **values)
        _stamps = now  # last: what could not be taken in is tried again at the next look


def _put(name: str, folder: str, text: str) -> None:
    with _lock:
        if name in _sources and _sources[name][0] != folder:
            raise ValueError(f"two folders have a browser file {name}: {_sources[name][0]!r} and {folder!r}")
        if _sources.get(name) != (folder, text):
            _sources[name] = (folder, text)
            _forget()


def _forget() -> None:
    """No address is known any more; those that a page may still ask for are served on while files are edited."""
    _addresses.clear()
    _worded.clear()
    if not edited.ON:
        _served.clear()
    while len(_served) > MOST_SERVED:
        del _served[next(iter(_served))]


def names() -> list[str]:
    """Of every browser file there is."""
    return sorted(_sources)


def source(name: str) -> str:
    """The text of a module as it lies on disk; of one with words, in the language that is spoken."""
    language = languages.current()
    if language == languages.ENGLISH or name not in _constants:
        return _sources[name][1]
    if (language, name) not in _worded:
        _worded[language, name] = _exports(_constants[name])
    return _worded[language, name]


def imports(name: str) -> list[str]:
    """The names of the modules that a module imports. Raises ValueError for one that does not exist."""
    found = [resolved(name, match[2]) for match in IMPORT.finditer(source(name))]
    for imported in found:
        if imported not in _sources:
            raise ValueError(f"{name} imports {imported}, and there is no such browser file")
    return found


def resolved(name: str, path: str) -> str:
    """The name of what a module imports by a relative path."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def closure(entry: str) -> list[str]:
    """A module and all that it needs, in an order in which each stands after what it imports.

    Raises ValueError for modules that import each other in a ring.
    """
    done: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"modules import each other in a ring: {' → '.join((*above, name))}")
        if name not in done:
            for imported in imports(name):
                visit(imported, (*above, name))
            done.append(name)

    visit(entry, ())
    return done


def address(entry: str) -> str:
    """Where a module is, below headlight/m/: its hash is of its text and of the addresses of what it imports.

    So a change of one module changes the addresses of all that need it, and of no other.
    """
    look()
    language = languages.current()
    with _lock:
        if (language, entry) not in _addresses:
            for name in closure(entry):
                if (language, name) not in _addresses:
                    _address(language, name)
        return _addresses[language, entry]


def _address(language: str, name: str) -> None:
    def to(match: re.Match[str]) -> str:
        return f'{match[1]}"../{_addresses[language, resolved(name, match[2])]}";'

    text = IMPORT.sub(to, source(name)).encode()
    found = f"{hashlib.sha256(text).hexdigest()[:16]}/{posixpath.basename(name)}"
    _addresses[language, name] = found
    if found not in _served:  # the same in another language, where it has no words
        _served[found] = text, gzip.compress(text, compresslevel=6)


def loader(entry: str, export: str = "default", host: str = "") -> str:
    """The script that a component is registered with: it is what `entry` exports under that name, shown by the module `host` if there
    is one.

    The real modules are fetched once and kept by the browser for as long as they stay the same.
    """
    from app.streamlit_edge import components

    look()
    entries = [entry, host] if host else [entry]
    names = dict.fromkeys([*entries, *(name for one in entries for name in closure(one))])
    return components.loader([f"headlight/m/{address(name)}" for name in names], export, bool(host))


def component(
    name: str,
    entry: str,
    export: str = "default",
    *,
    html: Callable[[], str],
    css: Callable[[], str] | None = None,
    host: str = "",
) -> Callable[..., Any]:
    """Register a component of Streamlit's that is what `entry` exports under that name; what mounts it, in the language of the visit.

    Where that is a part of the page, which knows no host, `host` is the module that shows it in Streamlit's place.

    While files are edited it is registered at every mount, as its files were when the visit began: a page goes on with what it has
    loaded, and one that is loaded after a change has all of it.
    """
    from streamlit.components import v2

    from app.streamlit_edge import components

    def now() -> dict[str, Any]:
        return {"html": html(), "css": None if css is None else css(), "js": loader(entry, export, host)}

    def mount(**given: Any) -> Any:
        language = languages.current()
        own = name if language == languages.ENGLISH else f"{name}_{language.lower().replace('-', '_')}"
        if edited.ON:
            return v2.component(own, **components.of_visit(own, now))(**given)
        with _lock:
            if own not in mounts:
                mounts[own] = v2.component(own, **now())
        return mounts[own](**given)

    mounts: dict[str, Callable[..., Any]] = {}
    if not edited.ON:
        with languages.speaking(languages.ENGLISH):
            mounts[name] = v2.component(name, **now())
    return mount


async def module(request: Request) -> Response:
    """One module. An address that is not one of today's is refused, and no one is to remember that."""
    from starlette.responses import PlainTextResponse, Response

    look()
    wanted = f"{request.path_params['digest']}/{request.path_params['name']}"
    if wanted not in _served:
        for name in list(_sources):  # those that no component has asked for yet
            for language in languages.KNOWN:
                with languages.speaking(language):
                    address(name)
    found = _served.get(wanted)
    if found is None:
        return PlainTextResponse(words.NO_MODULE, 404, headers={"Cache-Control": "no-store"})
    headers = {"Cache-Control": FOREVER, "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding"}
    plain, compressed = found
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(compressed, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})
    return Response(plain, media_type="text/javascript", headers=headers)
