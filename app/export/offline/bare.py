"""JavaScript without what only explains it: comments, and the space that lines begin and end with."""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<word>[\w$\#@]+)
    |(?P<mark>\+\+|--|\.\.\.|.)""",
    re.DOTALL | re.VERBOSE,
)
PATTERN = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")  # /[/"]+/gu
TEXT = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)  # of a template, up to its end or its next ${
HOLE = "${"  # of a template, among the brackets that are open
NAME = "name"
# A slash after one of these begins a pattern, after any other word it divides.
BEFORE_A_VALUE = frozenset(
    ["await", "case", "delete", "do", "else", "in", "instanceof", "new", "return", "throw", "typeof", "void", "yield"]
)
BEFORE_A_BRACKET = frozenset({"if", "while", "for", "with"})  # whose closing bracket no division follows


def bare(source: str) -> str:
    """The same program in fewer characters. Strings, templates and patterns stay as they are, and so does every end of a line
    by which a statement ends. Raises ValueError for a template or a bracket that does not end.
    """
    out: list[str] = []
    before = ""  # the last token that is neither space nor comment
    opened: list[str] = []  # brackets that are open, each with the token before it
    at = 0

    def template(start: int) -> int:
        """Take in a template's text from here, up to its end or its next ${; where that is."""
        nonlocal before
        end = TEXT.match(source, start).end()  # type: ignore[union-attr]
        if source.startswith("${", end):
            opened.append(HOLE)
            end, before = end + 2, "{"
        elif source.startswith("`", end):
            end, before = end + 1, "`"
        else:
            raise ValueError("a template does not end")
        out.append(source[start:end])
        return end

    while at < len(source):
        found = TOKEN.match(source, at)
        assert found  # any character is a token
        kind, token = found.lastgroup, found[0]
        at = found.end()
        if kind in ("space", "comment"):
            last = out[-1][-1:] if out else "\n"
            if "\n" in token:
                if last == " ":
                    out.pop()
                if last != "\n" and (last != " " or not out or out[-1][-1:] != "\n"):
                    out.append("\n")
            elif last not in (" ", "\n"):
                out.append(" ")
            continue
        if token == "`":
            out.append(token)
            at = template(at)
            continue
        if token == "/" and divides_not(before):
            pattern = PATTERN.match(source, found.start())
            if not pattern:
                raise ValueError(f"a pattern does not end: {source[found.start() : found.start() + 20]!r}")
            token, at = pattern[0], pattern.end()
        out.append(token)
        if token in "([{":
            opened.append(before)
            before = token
        elif token in ")]}":
            if not opened:
                raise ValueError(f"{token} closes nothing")
            opener = opened.pop()
            if opener == HOLE:
                at = template(at)
            else:
                before = "if" if token == ")" and opener in BEFORE_A_BRACKET else token
        elif kind == "string" or (kind == "word" and before == "."):  # one.of / 2, where a name is no keyword
            before = NAME
        else:
            before = token if kind != "mark" or token[0] != "/" or token == "/" else NAME  # a pattern is a value
    if opened:
        raise ValueError("a bracket does not end")
    return "".join(out)


def divides_not(before: str) -> bool:
    """Whether a slash after this token begins a pattern."""
    if before in BEFORE_A_VALUE or before in BEFORE_A_BRACKET:
        return True
    return before not in (")", "]", "`", "++", "--") and not re.fullmatch(r"[\w$#@]+", before)
