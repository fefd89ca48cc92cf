"""A conversation as one text in the format of a chat model, with the position of every turn.

The chat template of a model surrounds every message with markers of its role. `chat_text` renders a template and returns, for every
character, the role of its turn and whether it comes from a message or from the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from ..errors import TextError
from .templates import render, shortened
from .text import Tokens

Message = Mapping[str, Any]  # {"role": "user", "content": "Hello"}
Rendered = Callable[..., str]  # (messages, whether the text ends where the answer begins) -> text

MAX_MESSAGES = 256
SYSTEM, ANSWERS = "system", "assistant"
REASONING = ("reasoning_content", "thinking", "reasoning")  # keys of a message's reasoning; the first match is used
# Private-use characters of Unicode. A message is replaced by its number between the two, to find its position in the rendering.
OPENS, CLOSES = "\U000f0a01", "\U000f0a02"
HELD = re.compile(f"{OPENS}(\\d+){CLOSES}")


@dataclass(frozen=True)
class ChatTemplate:
    """A model's Jinja template, and the (name, text) of special tokens that it may use: bos_token, eos_token and others."""

    text: str
    tokens: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Span:
    """Characters of a rendered text from `start` to before `end`. `role` is that of their turn, "" outside of turns."""

    start: int
    end: int
    role: str
    from_template: bool  # False if from a message


@dataclass(frozen=True)
class ChatText:
    """A rendered conversation. The spans are in order and cover the text."""

    text: str
    spans: tuple[Span, ...]


def chat_text(template: ChatTemplate, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> ChatText:
    """Messages as the text that the model reads, as `apply_chat_template` of transformers renders them.

    With `add_generation_prompt` the text ends where the assistant's answer begins. Raises TextError for invalid messages, for a
    template that rejects them, and for one that exceeds the limits of core.model.templates.
    """
    plain = checked(messages)
    tokens = dict(template.tokens)

    def rendered(messages: Sequence[Message], prompt: bool = add_generation_prompt) -> str:
        values = {"messages": list(messages), "tools": None, "documents": None, "add_generation_prompt": prompt}
        return render(template.text, tokens | values)

    text = rendered(plain)
    if not text:
        raise TextError("The chat template of this model writes nothing for these messages. Read the text as it is.")
    return ChatText(text, _spans(text, plain, rendered, tokens, add_generation_prompt))


def checked(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages as plain data. Raises TextError."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise TextError('A chat is a list of messages: [{"role": "user", "content": "Hello"}].')
    messages = list(messages)
    if not messages:
        raise TextError('The chat has no message. Give at least one: [{"role": "user", "content": "Hello"}].')
    if len(messages) > MAX_MESSAGES:
        raise TextError(
            f"The chat has {len(messages):,} messages, and at most {MAX_MESSAGES} are read. Leave the oldest out."
        )
    plain = []
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise TextError(
                f"Message {i + 1} of the chat is {shortened(repr(message))[:60]}, but each is an object with a role and a content: "
                '{"role": "user", "content": "Hello"}.'
            )
        plain.append(_normalized(_plain(message, 0)))
    return plain


def _normalized(message: dict[str, Any]) -> dict[str, Any]:
    """The message without null values, and with its reasoning under every key that templates use, as in transformers."""
    message = {key: value for key, value in message.items() if value is not None}
    reasoning = next((message[name] for name in REASONING if name in message), None)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _plain(value: Any, depth: int) -> Any:
    """The value as numbers, strings, lists and dictionaries, the only objects for a template. Raises TextError."""
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
    """The conversation followed by the beginning of an answer."""
    if not answer:
        return chat
    text = chat.text + answer
    return ChatText(text, (*chat.spans, Span(len(chat.text), len(text), ANSWERS, False)))


def with_roles(tokens: Tokens, chat: ChatText) -> Tokens:
    """The tokens of a rendered conversation with their roles, and whether they come from the template.

    A token with any character of a message belongs to the message.
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


# the positions of the turns


@dataclass
class _Piece:
    """Part of a rendering: characters of the template, or those of one content."""

    start: int  # in the text
    end: int
    marked: int  # start in the rendering in which numbers replace the contents
    content: int | None  # index of the content, None for the template's


@dataclass(frozen=True)
class _Turns:
    """The roles of the messages, the start of each turn in the marked rendering as far as known, and the generation prompt."""

    roles: list[str]
    borders: Mapping[int, int]
    prompt: bool

    def role(self, turn: int) -> str:
        return self.roles[turn] if turn < len(self.roles) else ANSWERS if self.prompt else ""

    def of_template(self, piece: _Piece, before: int, after: int) -> list[Span]:
        """Spans of the template's characters between the contents of two turns: the end of one, and the beginning of the other."""
        if before == after or before < 0:
            return [Span(piece.start, piece.end, self.role(after), True)]
        border = self.borders.get(after)
        if border is None or piece.marked < 0 or not piece.marked <= border <= piece.marked + piece.end - piece.start:
            turn = before if after == len(self.roles) else after
            return [Span(piece.start, piece.end, self.role(turn), True)]
        middle = piece.start + border - piece.marked
        return [
            Span(piece.start, middle, self.role(before), True),
            Span(middle, piece.end, self.role(after), True),
        ]


def _spans(
    text: str, messages: list[dict[str, Any]], rendered: Rendered, tokens: Mapping[str, str], prompt: bool
) -> tuple[Span, ...]:
    """The turns of a rendered text, found by rendering again with a number in place of every content.

    This fails for a template that depends on the contents or splits them. Its contents are then searched in the text, in order.
    """
    roles = [str(message["role"]) for message in messages]
    contents, message_of = _contents(messages)
    numbered = [] if HELD.search(text) else _numbered(messages)
    marked = (_try_render(rendered, numbered) if numbered else None) or ""
    pieces, spans, borders = None, list[Span](), {}
    if marked:
        pieces = _aligned(text, marked, contents)
        borders = _borders(marked, numbered, rendered, prompt, tokens.get("eos_token", ""))
        if (end := _own_system(text, marked, numbered, roles, rendered)) is not None:
            spans.append(Span(0, end, SYSTEM, True))
    spans += _content_spans(pieces or _searched(text, contents), message_of, _Turns(roles, borders, prompt))
    bos = tokens.get("bos_token", "")
    # Some models begin every turn with the bos token.
    outside = len(bos) if bos and text.startswith(bos) and (marked or text).count(bos) == 1 else 0
    return _tidied(spans, outside)


def _content_spans(pieces: Sequence[_Piece], message_of: Sequence[int], turns: _Turns) -> Iterator[Span]:
    last = -1
    for i, piece in enumerate(pieces):
        if piece.content is not None:
            last = message_of[piece.content]
            yield Span(piece.start, piece.end, turns.roles[last], False)
        else:
            coming = next((message_of[p.content] for p in pieces[i:] if p.content is not None), len(turns.roles))
            yield from turns.of_template(piece, last, coming)


def _contents(messages: list[dict[str, Any]]) -> tuple[list[str], list[int]]:
    """The texts of all messages, and the index of the message of each."""
    contents, message_of = [], []
    for i, message in enumerate(messages):
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) and isinstance(content, list) else part
            if isinstance(text, str) and text.strip():
                contents.append(text)
                message_of.append(i)
    return contents, message_of


def _numbered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same messages with a number in place of each text of _contents()."""
    numbers = count()

    def number(text: Any) -> Any:
        if not isinstance(text, str) or not text.strip():
            return text
        return f"{OPENS}{next(numbers)}{CLOSES}"

    def part_of(part: Any) -> Any:
        return {**part, "text": number(part["text"])} if isinstance(part, dict) and "text" in part else number(part)

    numbered = []
    for message in messages:
        content = message.get("content")
        replaced = [part_of(part) for part in content] if isinstance(content, list) else number(content)
        numbered.append({**message, "content": replaced} if "content" in message else message)
    return numbered


def _try_render(rendered: Rendered, messages: Sequence[Message], *prompt: bool) -> str | None:
    """The rendering, or None if the template rejects these messages."""
    try:
        return rendered(messages, *prompt)
    except TextError:
        return None


def _aligned(text: str, marked: str, contents: list[str]) -> list[_Piece] | None:
    """The pieces of the text, by comparison with the marked rendering; None if they differ in more than the contents."""
    split = HELD.split(marked)
    literals, numbers = split[::2], [int(number) for number in split[1::2]]
    if any(number >= len(contents) for number in numbers):
        return None
    pieces: list[_Piece] = []
    at = marked_at = 0  # positions in the text and in the marked rendering
    for i, literal in enumerate(literals):
        if not text.startswith(literal, at):
            return None
        pieces.append(_Piece(at, at + len(literal), marked_at, None))
        at, marked_at = at + len(literal), marked_at + len(literal)
        if i == len(numbers):
            break
        content = contents[numbers[i]]
        forms = (content, content.strip(), content.lstrip(), content.rstrip())
        follows = literals[i + 1]
        own = next((f for f in forms if text.startswith(f, at) and text.startswith(follows, at + len(f))), None)
        if own is None:
            return None
        pieces.append(_Piece(at, at + len(own), marked_at, numbers[i]))
        at, marked_at = at + len(own), marked_at + len(f"{OPENS}{numbers[i]}{CLOSES}")
    return pieces if at == len(text) else None


def _searched(text: str, contents: list[str]) -> list[_Piece]:
    """The pieces of the text if each content is at its first occurrence after the previous one."""
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


def _borders(marked: str, numbered: list[dict[str, Any]], rendered: Rendered, prompt: bool, eos: str) -> dict[int, int]:
    """{turn: its start in the marked text}: the length of the common prefix with the conversation that ends before the turn.

    Some templates append the end-of-text token to every conversation; it is not compared.
    """
    borders = {}
    for turn in range(1, len(numbered) + 1):
        if turn == len(numbered) and not prompt:
            break
        before = _try_render(rendered, numbered[:turn], False)
        if before and not marked.startswith(before):
            before = before.removesuffix(eos)
        if before:
            borders[turn] = _common_prefix(marked, before)
    return borders


def _common_prefix(one: str, other: str) -> int:
    """Length of the common prefix of two texts."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _own_system(
    text: str, marked: str, numbered: list[dict[str, Any]], roles: list[str], rendered: Rendered
) -> int | None:
    """The end of the system turn that the template adds to a conversation without one; None if it adds none.

    The template is rendered with a system message. The markers around that message are also those of the template's own.
    """
    if roles[0] == SYSTEM:
        return None
    system = {"role": SYSTEM, "content": f"{OPENS}{OPENS}{CLOSES}{CLOSES}"}
    with_system = _try_render(rendered, [system, *numbered])
    before, mark, after = (with_system or "").partition(system["content"])
    if not mark or system["content"] in after or not (marked.startswith(before) and marked.endswith(after)):
        return None
    end = len(marked) - len(after)
    if end < len(before) or HELD.search(marked[:end]):
        return None
    system_only = _try_render(rendered, [system], False) or ""
    shared = _common_prefix(with_system or "", system_only) - len(before) - len(mark)
    own_end = end + max(0, shared)
    first = HELD.search(marked)
    matches = (first is None or own_end <= first.start()) and text.startswith(marked[:own_end])
    return own_end if matches else None


def _tidied(spans: list[Span], outside: int) -> tuple[Span, ...]:
    """The spans in order, without overlaps and empty ones. The first `outside` characters belong to no turn."""
    tidied = [Span(0, outside, "", True)] if outside else []
    at = outside
    for span in spans:
        start = max(at, span.start)
        if start >= span.end:
            continue
        if tidied and span.from_template and tidied[-1].from_template and tidied[-1].role == span.role:
            tidied[-1] = replace(tidied[-1], end=span.end)
        else:
            tidied.append(replace(span, start=start))
        at = span.end
    return tuple(tidied)
