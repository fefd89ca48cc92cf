"""What a file from Generate says about itself, and the code that gives its numbers again."""

from __future__ import annotations

import re
from datetime import date

from app.export import about
from app.rooms.generate import words
from core.run.request import Request
from core.service import Facts

PATH = "PATH"  # in the code: where the browser puts the tokens that were taken


def described(facts: Facts, request: Request) -> dict[str, str]:
    """Caption, code and a name for the files; the browser adds what was taken."""
    title = re.sub(r"[^a-z0-9]+", "-", facts.spec.title.lower()).strip("-") or "model"
    ran = [facts.spec.title, words.EXPORT, f"{facts.device} {facts.dtype}"]
    versions = [f"Headlight {about.version()}", f"torch {facts.torch_version}", date.today().isoformat()]
    return {
        "caption": about.line(ran + versions),
        "snippet": snippet(facts, request),
        "name": f"{title}-generate",
    }


def snippet(facts: Facts, request: Request) -> str:
    """Python that gives the columns, with PATH for the tokens that were taken."""
    arguments = ["loaded", about.literal(facts.source.text)]
    if facts.target is not None and (request.target_text or request.write):
        arguments.append(f"target={about.literal(facts.target.text)}")
    opens = [f"opening = writer.opening({', '.join(arguments)}, path=path)"]
    begins = ["from headlight.write import writer"]
    if facts.conversation is not None:
        begins = ["from headlight.run.request import Prompt", *begins]
        opens = [
            f"prompt = Prompt((loaded.chat_tokens({about.messages(facts.conversation)}),))",
            "opening = writer.Writer(loaded, prompt, path).open()",
        ]
    lines = [
        "import headlight as hl",
        *begins,
        "",
        about.load_line(facts),
        f"path = [{PATH}]  # the tokens that were taken after the text",
        *opens,
        "for column in opening.readings:  # after each token: what may come next, and how likely it is",
        "    print(column.position, column.ids[:10], column.probs()[:10])",
    ]
    return "\n".join(lines) + "\n"
