"""A conversation as the text that a chat model was trained on, with the place of every turn in it.

A chat model reads one text. Its template writes the messages into it, each between marks that say whose turn it is. `chat_text`
renders a template and says of every character whose turn it is in, and whether a message or the template wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import TextError
from .templates import render, shortened
from .text import Tokens

Message = Mapping[str, Any]  # {"role": "user", "content": "Hello"}
Rendered = Callable[..., str]  # of messages, and whether the text ends where the answer begins

MOST_MESSAGES = 256
SYSTEM, ANSWERS = "system", "assistant"
REASONING = ("reasoning_content", "thinking", "reasoning")  # names of a message's reasoning; the first one wins
# Characters that no text means anything by (Unicode's private use): a message is replaced by its number between two of them, to
# see where the template puts it.
OPENS, CLOSES = "\U000f0a01", "\U000f0a02"
HELD = re.compile(f"{OPENS}(\\d+){CLOSES}")


@dataclass(frozen=True)
class ChatTemplate:
    """A model's template, in Jinja, and the special tokens that it may name: bos_token, eos_token and others, with their texts."""

    text: str
    tokens: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Span:
    """Characters of a rendered text, from `start` to before `end`. `role` is whose turn they are in, "" for none."""

    start: int
    end: int
    role: str
    from_template: bool  # and not from a message


@dataclass(frozen=True)
class ChatText:
    """A rendered conversation. The spans follow each other and cover the text."""

    text: str
    spans: tuple[Span, ...]


def chat_text(template: ChatTemplate, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> ChatText:
    """Messages as the text that the model reads. With `add_generation_prompt` it ends where the assistant's answer begins.

    As `apply_chat_template` of transformers has it. Raises TextError in one sentence for messages that are none, for a
    template that does not take them, and for one that does what no template may (core.model.templates).
    """
    plain = checked(messages)

    def rendered(said: Sequence[Message], prompt: bool = add_generation_prompt) -> str:
        return render(
            template.text,
            dict(template.tokens)
            | {"messages": list(said), "tools": None, "documents": None, "add_generation_prompt": prompt},
        )

    text = rendered(plain)
    if not text:
        raise TextError("The chat template of this model writes nothing for these messages. Read the text as it is.")
    return ChatText(text, _spans(text, plain, rendered, dict(template.tokens), add_generation_prompt))


def checked(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages as plain data. Raises TextError."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise TextError('A chat is a list of messages: [{"role": "user", "content": "Hello"}].')
    found = list(messages)
    if not found:
        raise TextError('The chat has no message. Give at least one: [{"role": "user", "content": "Hello"}].')
    if len(found) > MOST_MESSAGES:
        raise TextError(
            f"The chat has {len(found):,} messages, and at most {MOST_MESSAGES} are read. Leave the oldest out."
        )
    plain = []
    for i, message in enumerate(found):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise TextError(
                f"Message {i + 1} of the chat is {shortened(repr(message))[:60]}, but each is an object with a role and a content: "
                '{"role": "user", "content": "Hello"}.'
            )
        plain.append(_normalized(_plain(message, 0)))
    return plain


def _normalized(message: dict[str, Any]) -> dict[str, Any]:
    """The message without null keys, and with its reasoning under every name that templates read, as transformers does it."""
    message = {key: value for key, value in message.items() if value is not None}
    reasoning = next((message[name] for name in REASONING if name in message), None)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _plain(value: Any, depth: int) -> Any:
    """Numbers, strings, lists and dictionaries alone: the template meets no other object. Raises TextError."""
    if depth > 16:
        raise TextError("A message of the chat has parts more than 16 deep. Give its content as text.")
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, depth + 1) for part in value]
    raise TextError(
        f"A message of the chat holds a {type(value).__name__}, which no template reads. Give its content as text."
    )


def with_answer(chat: ChatText, answer: str) -> ChatText:
    """The conversation with the beginning of an answer after it."""
    if not answer:
        return chat
    text = chat.text + answer
    return ChatText(text, (*chat.spans, Span(len(chat.text), len(text), ANSWERS, False)))


def with_roles(tokens: Tokens, chat: ChatText) -> Tokens:
    """The tokens of a rendered conversation, each with the role whose turn it is in and whether the template wrote it.

    A token that holds a character of a message counts as the message's.
    """
    roles: list[str | None] = []
    written: list[bool] = []
    at = 0
    for start, end in tokens.offsets:
        while at and chat.spans[at].start > start:
            at -= 1
        while at + 1 < len(chat.spans) and chat.spans[at].end <= start:
            at += 1
        met = [span for span in chat.spans[at:] if span.start < max(end, start + 1) and span.end > start]
        own = next((span for span in met if not span.from_template), met[0] if met else None)
        roles.append(own.role or None if own is not None else None)
        written.append(own is None or own.from_template)
    return replace(tokens, roles=tuple(roles), from_template=tuple(written))


# where the turns are


@dataclass
class _Piece:
    """Part of a rendering: characters of the template, or those of one content."""

    start: int  # in the text
    end: int
    marked: int  # where it begins where the messages are replaced by their numbers
    content: int | None  # which of the contents, None for the template's


def _spans(
    text: str, messages: list[dict[str, Any]], rendered: Rendered, tokens: Mapping[str, str], prompt: bool
) -> tuple[Span, ...]:
    """The turns of a rendered text, found by rendering again with every content replaced by its number.

    A template that does otherwise with other contents, or that takes them apart, cannot be followed that way: its contents are
    then looked for in the text, one after the other.
    """
    roles = [str(message["role"]) for message in messages]
    contents, of = _contents(messages)
    held, marked = [], ""
    if not HELD.search(text):
        held = _replaced(messages)
        marked = _tried(rendered, held) or ""
    pieces = (_aligned(text, marked, contents) if marked else None) or _found(text, contents)
    first = _own_system(text, marked, held, roles, rendered) if marked else None
    borders = _borders(marked, held, rendered, prompt, tokens.get("eos_token", "")) if marked else {}
    found: list[Span] = []
    if first is not None:
        found.append(Span(0, first, SYSTEM, True))
    last = -1
    for i, piece in enumerate(pieces):
        if piece.content is not None:
            last = of[piece.content]
            found.append(Span(piece.start, piece.end, roles[last], False))
            continue
        coming = next((of[later.content] for later in pieces[i:] if later.content is not None), len(roles))
        found += _template(piece, last, coming, roles, borders, prompt)
    bos = tokens.get("bos_token", "")
    # Some models begin every turn with it.
    outside = len(bos) if bos and text.startswith(bos) and (marked or text).count(bos) == 1 else 0
    return _tidied(found, outside)


def _template(
    piece: _Piece, before: int, after: int, roles: list[str], borders: Mapping[int, int], prompt: bool
) -> list[Span]:
    """Characters of the template between the contents of two turns: the end of one, and the beginning of the other."""

    def role(turn: int) -> str:
        return roles[turn] if turn < len(roles) else ANSWERS if prompt else ""

    if before == after or before < 0:
        return [Span(piece.start, piece.end, role(after), True)]
    border = borders.get(after)
    if border is None or piece.marked < 0 or not piece.marked <= border <= piece.marked + piece.end - piece.start:
        whose = before if after == len(roles) else after
        return [Span(piece.start, piece.end, role(whose), True)]
    middle = piece.start + border - piece.marked
    return [Span(piece.start, middle, role(before), True), Span(middle, piece.end, role(after), True)]


def _contents(messages: list[dict[str, Any]]) -> tuple[list[str], list[int]]:
    """The texts of all messages, and the message that each belongs to."""
    found, of = [], []
    for i, message in enumerate(messages):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        for part in parts:
            said = part.get("text") if isinstance(part, dict) else part
            if isinstance(said, str) and said.strip():
                found.append(said)
                of.append(i)
    return found, of


def _replaced(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same messages with a number in place of each text of _contents()."""
    n = 0

    def number(said: Any) -> Any:
        nonlocal n
        if not isinstance(said, str) or not said.strip():
            return said
        n += 1
        return f"{OPENS}{n - 1}{CLOSES}"

    held = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            new: Any = [
                {**part, "text": number(part.get("text"))}
                if isinstance(part, dict) and "text" in part
                else number(part)
                for part in content
            ]
        else:
            new = number(content)
        held.append({**message, "content": new} if "content" in message else message)
    return held


def _tried(rendered: Rendered, messages: Sequence[Message], *prompt: bool) -> str | None:
    """A rendering that says where a turn is; None where the template does not take these messages."""
    try:
        return rendered(messages, *prompt)
    except TextError:
        return None


def _aligned(text: str, marked: str, contents: list[str]) -> list[_Piece] | None:
    """The pieces of the text, from the one in which contents are numbers; None where the two differ otherwise."""
    split = HELD.split(marked)
    literals, numbers = split[::2], [int(number) for number in split[1::2]]
    if any(number >= len(contents) for number in numbers):
        return None
    pieces: list[_Piece] = []
    at = there = 0
    for i, literal in enumerate(literals):
        if not text.startswith(literal, at):
            return None
        pieces.append(_Piece(at, at + len(literal), there, None))
        at, there = at + len(literal), there + len(literal)
        if i == len(numbers):
            break
        content = contents[numbers[i]]
        forms = (content, content.strip(), content.lstrip(), content.rstrip())
        follows = literals[i + 1]
        own = next((f for f in forms if text.startswith(f, at) and text.startswith(follows, at + len(f))), None)
        if own is None:
            return None
        pieces.append(_Piece(at, at + len(own), there, numbers[i]))
        at, there = at + len(own), there + len(f"{OPENS}{numbers[i]}{CLOSES}")
    return pieces if at == len(text) else None


def _found(text: str, contents: list[str]) -> list[_Piece]:
    """The pieces of the text, where each content is at its first place after the one before."""
    pieces: list[_Piece] = []
    at = 0
    for i, content in enumerate(contents):
        own = content if content in text[at:] else content.strip()
        start = text.find(own, at)
        if start < 0:
            continue
        pieces += [_Piece(at, start, -1, None), _Piece(start, start + len(own), -1, i)]
        at = start + len(own)
    return [*pieces, _Piece(at, len(text), -1, None)]


def _borders(marked: str, held: list[dict[str, Any]], rendered: Rendered, prompt: bool, eos: str) -> dict[int, int]:
    """{turn: where it begins in the marked text}: as far as the conversation before it is written without it.

    Some templates put the end of a text after any conversation; it is not compared.
    """
    found = {}
    for turn in range(1, len(held) + 1):
        if turn == len(held) and not prompt:
            break
        before = _tried(rendered, held[:turn], False)
        if before and not marked.startswith(before):
            before = before.removesuffix(eos)
        if before:
            found[turn] = _alike(marked, before)
    return found


def _alike(one: str, other: str) -> int:
    """How many characters two texts have in common before they differ."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _own_system(text: str, marked: str, held: list[dict[str, Any]], roles: list[str], rendered: Rendered) -> int | None:
    """Where a system turn ends that the template itself writes before a conversation that has none; None where it writes none.

    It is found by giving it one: what is around that is around its own as well.
    """
    if roles[0] == SYSTEM:
        return None
    given = {"role": SYSTEM, "content": f"{OPENS}{OPENS}{CLOSES}{CLOSES}"}
    known = _tried(rendered, [given, *held])
    before, mark, after = (known or "").partition(given["content"])
    if not mark or given["content"] in after or not (marked.startswith(before) and marked.endswith(after)):
        return None
    end = len(marked) - len(after)
    if end < len(before) or HELD.search(marked[:end]):
        return None
    alone = _tried(rendered, [given], False) or ""
    shared = _alike(known or "", alone) - len(before) - len(mark)
    found = end + max(0, shared)
    first = HELD.search(marked)
    alike = (first is None or found <= first.start()) and text.startswith(marked[:found])
    return found if alike else None


def _tidied(spans: list[Span], outside: int) -> tuple[Span, ...]:
    """The spans in order, without overlaps and empty ones. The first `outside` characters, which begin every text, are in no turn."""
    found = [Span(0, outside, "", True)] if outside else []
    at = outside
    for span in spans:
        start = max(at, span.start)
        if start >= span.end:
            continue
        last = found[-1] if found else None
        if (
            last is not None
            and (last.role, last.from_template) == (span.role, span.from_template)
            and span.from_template
        ):
            found[-1] = replace(last, end=span.end)
        else:
            found.append(replace(span, start=start))
        at = span.end
    return tuple(found)
