"""Renders an untrusted Jinja chat template, within bounds of work and size.

jinja2's sandbox denies access to files, the network and Python attributes. It does not prevent an endless loop or a string of
gigabytes. So the template is rewritten before it is compiled: every iteration, call, filter and new value is counted, and the size of
values is bounded. The dialect is that of transformers (`utils/chat_template_utils.py`), so that the same template gives the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, ClassVar

from jinja2 import Template, TemplateError, TemplateSyntaxError, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.runtime import BlockReference, Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace, _PassArg
from jinja2.visitor import NodeTransformer

from ..errors import TextError

LONGEST_TEMPLATE = 1 << 17  # characters; the longest published ones have 20,000
LARGEST = 1 << 20  # characters of one value with its contents
ITEM = 16  # characters that an item of a list counts as
DEEPEST = 64  # levels of nested values
MAX_BITS = 4096  # of an integer
WORK = 1 << 22  # steps of a rendering; a chat of ten turns takes a few thousand
STEP = 16  # steps of an iteration, a call or a filter, which run in Python
CHARS = 16  # characters that are copied in one step
WIDEST = 10_000  # characters to which a text may be padded
SAID = 300  # characters of a template's own message in an error
WORK_OF = "\0work"  # key of the context; names in templates cannot contain the character 0
TEXT_METHODS = (
    "capitalize casefold center count endswith find format format_map index isalnum isalpha isascii isdecimal isdigit "
    "isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip partition removeprefix "
    "removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title "
    "upper zfill"
)
METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(TEXT_METHODS.split()),
    dict: frozenset(("copy", "get", "items", "keys", "values")),
    list: frozenset(("copy", "count", "index")),
    tuple: frozenset(("count", "index")),
    LoopContext: frozenset(("changed", "cycle")),
    Cycler: frozenset(("next", "reset")),
}
FILTERS = (
    "abs attr batch capitalize center count d default dictsort e escape first float format groupby indent int items join last "
    "length list lower map max min reject rejectattr replace reverse round safe select selectattr slice sort string sum title "
    "trim truncate unique upper wordcount wordwrap xmlattr"
)


class _TooMuch(Exception):
    """The template exceeds a limit."""


class _Refused(Exception):
    """The template called raise_exception()."""


class Work:
    """The remaining steps of a rendering, and the maximum size of a value."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.largest = self.left = LARGEST  # of the input values
        given, _ = self.weigh(values)
        self.largest = LARGEST + 8 * given
        self.left = WORK + 16 * given

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _TooMuch("It has run for too long: it may hold a loop without end.")

    def admit(self, size: int) -> None:
        """Raises if a value of this size is too large, before it is created."""
        if size > self.largest:
            raise _TooMuch(f"It asks for a value as large as {size:,} characters, and {self.largest:,} are allowed.")

    def weigh(self, value: Any) -> tuple[int, int]:
        """Size of a value with its contents, in characters, and its depth. Contents that occur twice count twice."""
        size, level, depth = 0, [value], 0
        while level:
            inner: list[Any] = []
            for part in level:
                size += ITEM
                if isinstance(part, str):
                    size += len(part)
                    self.spend(len(part) // CHARS)
                elif isinstance(part, int):
                    if part.bit_length() > MAX_BITS:
                        raise _TooMuch("It asks for a whole number of more than a thousand digits.")
                elif isinstance(part, Mapping):
                    self.admit(size + 2 * ITEM * len(part))
                    inner += [*part.keys(), *part.values()]
                elif isinstance(part, list | tuple | set | frozenset) or type(part).__name__.startswith("dict_"):
                    self.admit(size + ITEM * len(part))
                    inner += part
                elif isinstance(part, Namespace):
                    inner.append(part._Namespace__attrs)
                self.admit(size + ITEM * len(inner))
            self.spend(2 * len(level))
            level, depth = inner, depth + 1
            if depth > DEEPEST:
                raise _TooMuch(f"It puts lists into lists more than {DEEPEST} deep.")
        return size, depth

    def checked(self, value: Any) -> Any:
        """The value, if its size is allowed. An iterator becomes a list."""
        if isinstance(value, Iterator) and not isinstance(value, LoopContext):
            value = list(value)
        self.weigh(value)
        return value

    def admit_format(self, text: str, given: object) -> None:
        """Raises for a format with a wide field, or with a long value in many fields."""
        if re.search(r"\d{4}", text) or "*" in text or re.search(r"\{[^{}]*:[^{}]*\{", text):
            raise _TooMuch("It formats a value with a width of its own, or of thousands of characters.")
        size, _ = self.weigh(given)
        self.admit(len(text) + (text.count("%") + text.count("{")) * size)

    def admit_call(self, name: str, text: str, given: list[Any]) -> None:
        """Raises for a call of a string method whose result would be too large."""
        if name in ("format", "format_map"):
            self.admit_format(text, given)
        elif name in ("center", "ljust", "rjust", "zfill"):
            self.admit_width(given)
        elif name == "join" and given:
            self.admit_join(text, given[0])
        elif name == "replace":
            self.admit_replace(text, given)

    def admit_width(self, given: list[Any]) -> None:
        if any(isinstance(each, int) and each > WIDEST for each in given):
            raise _TooMuch(f"It fills a text up to more than {WIDEST:,} characters.")

    def admit_join(self, between: str, items: Any) -> None:
        if not isinstance(items, str | list | tuple | dict | range) and not type(items).__name__.startswith("dict_"):
            return
        size, _ = self.weigh(items)
        self.admit(size + len(between) * len(items))

    def admit_replace(self, text: str, given: list[Any]) -> None:
        texts = [each for each in given if isinstance(each, str)]
        if len(texts) > 1:
            self.admit(len(text) + text.count(texts[0]) * len(texts[1]))


def _work(context: Context) -> Work:
    return context.parent[WORK_OF]


@pass_context
def _made(context: Context, value: Any) -> Any:
    """Filter around every list, dictionary and slice of a template."""
    return _work(context).checked(value)


@pass_context
def _each(context: Context, items: Any, literal: int) -> Iterator[Any]:
    """Filter around the iterable of a loop: counts each iteration with the characters of its body."""
    work = _work(context)
    for item in items:
        work.spend(STEP + literal // CHARS)
        yield item


@pass_context
def _turn(context: Context, value: Any, literal: int) -> Any:
    """Filter at the beginning of the body of a recursive loop: counts the iteration."""
    _work(context).spend(STEP + literal // CHARS)
    return value


@pass_context
def _joined(context: Context, parts: list[Any]) -> str:
    """Filter that replaces the operator ~."""
    work = _work(context)
    work.weigh(parts)
    return work.checked("".join(map(str, parts)))


@pass_context
def _written(context: Context, value: Any) -> Any:
    """Finalizer of every value that is inserted into the text."""
    work = _work(context)
    work.spend(STEP)
    return work.checked(value)


class _Counted(NodeTransformer):
    """Inserts the counting filters into a template."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        literal = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        if node.recursive:  # counted in the body, because loop() iterates over other items than `iter`
            turn = _filtered(nodes.Const("", lineno=node.lineno), "\0turn", nodes.Const(literal))
            node.body.insert(0, nodes.ExprStmt(turn, lineno=node.lineno))
            return node
        node.iter = _filtered(node.iter, "\0each", nodes.Const(literal))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "\0joined")

    def visit_List(self, node: nodes.List | nodes.Dict) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(node, "\0made")

    visit_Dict = visit_List

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(node, "\0made") if node.ctx == "load" else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(node, "\0made") if isinstance(node.arg, nodes.Slice) else node

    def visit_Operand(self, node: nodes.Operand) -> nodes.Operand:
        self.generic_visit(node)
        if not isinstance(node.expr, nodes.Const):
            node.expr = _filtered(node.expr, "\0made")  # the time of a comparison depends on the size
        return node

    def visit_EvalContextModifier(self, node: nodes.Node) -> nodes.Node:
        raise TemplateSyntaxError("changing how text is escaped is not supported", node.lineno)

    def visit_Include(self, node: nodes.Node) -> nodes.Node:
        raise TemplateSyntaxError("it asks for another file, and a chat template has none", node.lineno)

    visit_ScopedEvalContextModifier = visit_EvalContextModifier
    visit_Import = visit_FromImport = visit_Extends = visit_Include


def _filtered(node: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [*args], [], None, None, lineno=node.lineno)


class _Generation(Extension):
    """{% generation %}…{% endgeneration %}, around text that a model is trained to generate. It is rendered unchanged."""

    tags: ClassVar[set[str]] = {"generation"}  # pyrefly: ignore[bad-override]

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.FilterBlock(body, nodes.Filter(None, "\0made", [], [], None, None), lineno=line)


class _Sandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox with counting. Attributes that it would silently leave out raise an error."""

    intercepted_binops = frozenset(("+", "*", "%", "**"))

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        raise SecurityError(f"the attribute {attribute} of a {type(obj).__name__}")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        work = _work(context)
        work.spend(STEP)
        if operator == "*":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, str | list | tuple) and isinstance(other, int):
                    work.admit((len(one) if isinstance(one, str) else work.weigh(one)[0]) * max(0, other))
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            if left.bit_length() * max(0, right) > MAX_BITS:
                raise _TooMuch("It asks for a whole number of more than a thousand digits.")
        elif operator == "%" and isinstance(left, str):
            work.admit_format(left, right)
        return work.checked(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        work = _work(__context)
        work.spend(STEP)
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(__obj, Macro | BlockReference):
            work.spend(__context.parent[f"{WORK_OF}_literal"] // CHARS)
        elif isinstance(__obj, FunctionType) and isinstance(
            wrapped := getattr(__obj, "__wrapped__", None), BuiltinMethodType
        ):
            work.admit_call(name, str(wrapped.__self__), [*args, kwargs])  # the sandbox's own format()
        elif isinstance(__obj, BuiltinMethodType | MethodType):
            known = any(isinstance(owner, kind) and name in names for kind, names in METHODS.items())
            if not (known or isinstance(owner, _Dict)):
                raise SecurityError(f"the method {name}() of a {type(owner).__name__}")
            if isinstance(owner, str):
                work.admit_call(name, owner, [*args, *kwargs.values()])
        return work.checked(super().call(__context, __obj, *args, **kwargs))


def _counting(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """A filter or test of jinja2 with counting."""
    passed = _PassArg.from_obj(own)

    @pass_context
    def counted(context: Context, value: Any = None, *args: Any, **kwargs: Any) -> Any:
        work = _work(context)
        work.spend(STEP)
        if (admit := _ADMIT.get(name)) is not None:
            admit(work, value, [*args, *kwargs.values()])
        first: dict[_PassArg | None, tuple[Any, ...]] = {
            _PassArg.context: (context,),
            _PassArg.eval_context: (context.eval_ctx,),
            _PassArg.environment: (context.environment,),
        }
        return work.checked(own(*first.get(passed, ()), value, *args, **kwargs))

    return counted


def _admit_round(work: Work, value: Any, given: list[Any]) -> None:
    if any(isinstance(each, int) and abs(each) > MAX_BITS // 8 for each in given):
        raise _TooMuch("It rounds to hundreds of digits.")


def _admit_sum(work: Work, value: Any, given: list[Any]) -> None:
    if any(isinstance(each, list | tuple) for each in given):
        size, _ = work.weigh([value, given])
        work.admit(size)
        work.spend(size * size // (ITEM * CHARS))  # each addition copies the sum so far


def _admit_batch(work: Work, value: Any, given: list[Any]) -> None:
    most = max((abs(each) for each in given if isinstance(each, int)), default=0)
    work.admit(work.weigh(value)[0] + ITEM * most)


def _admit_wordwrap(work: Work, value: Any, given: list[Any]) -> None:
    between = max((len(each) for each in given if isinstance(each, str)), default=1)
    work.admit(len(str(value)) * (1 + between))


def _admit_indent(work: Work, value: Any, given: list[Any]) -> None:
    work.admit_width(given)
    widths = (each if isinstance(each, int) else len(each) for each in given if isinstance(each, str | int))
    work.admit(len(str(value)) + (str(value).count("\n") + 1) * max(widths, default=4))


def _admit_tojson(work: Work, value: Any, given: list[Any]) -> None:
    size, depth = work.weigh(value)
    widths = [each if isinstance(each, int) else len(str(each)) for each in given if each is not None]
    work.admit(size * (1 + depth * max(widths, default=0)))


# Filter or test -> a check that raises if its result would be too large or would take too long. Others need no check.
_ADMIT: dict[str, Callable[[Work, Any, list[Any]], object]] = {
    "format": lambda work, value, given: work.admit_format(str(value), given),
    "join": lambda work, value, given: work.admit_join(next((e for e in given if isinstance(e, str)), ""), value),
    "replace": lambda work, value, given: work.admit_replace(str(value), given),
    "round": _admit_round,
    "sum": _admit_sum,
    "batch": _admit_batch,
    "slice": _admit_batch,
    "center": lambda work, value, given: work.admit_width(given),
    "wordwrap": _admit_wordwrap,
    "xmlattr": lambda work, value, given: work.admit(6 * work.weigh(value)[0]),  # the longest escape has 6 characters
    "indent": _admit_indent,
    "tojson": _admit_tojson,
    **dict.fromkeys(
        ("in", "eq", "==", "ne", "!=", "sort", "unique", "groupby", "dictsort", "max", "min"),
        lambda work, value, given: work.weigh([value, *given]),
    ),
}


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """As in transformers, without the HTML escapes of jinja2's filter."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: object = "") -> None:
    raise _Refused(str(message))


def _strftime_now(spelled: str) -> str:
    """The current date and time in the format of strftime(). Some templates contain the date."""
    if len(spelled) > SAID or re.search(r"%[^a-zA-Z%-]|%-?\d", spelled):
        raise _TooMuch("It asks for the date in a way that is not known.")
    return datetime.now().strftime(spelled)


class _Names(Namespace):
    """namespace() of a template, without names that start with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"the attribute {name} of a namespace")


class _Dict:
    """dict() and dict.fromkeys() of a template."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


def _environment() -> _Sandbox:
    sandbox = _Sandbox(
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # constants would be computed before counting starts
        extensions=[_Generation, LoopControlExtension],
        finalize=_written,
    )
    own = {name: sandbox.filters[name] for name in FILTERS.split()} | {"tojson": _tojson}
    marks = {"\0made": _made, "\0each": _each, "\0joined": _joined, "\0turn": _turn}
    sandbox.filters = {name: _counting(name, its) for name, its in own.items()} | marks
    sandbox.tests = {name: _counting(name, its) for name, its in sandbox.tests.items()}
    names: dict[str, Any] = {
        "range": sandbox.globals["range"],
        "dict": _Dict(),
        "cycler": Cycler,
        "joiner": Joiner,
        "namespace": _Names,
        "raise_exception": _raise,
        "strftime_now": _strftime_now,
    }
    sandbox.globals = names
    return sandbox


_SANDBOX = _environment()


@lru_cache(maxsize=64)
def compiled(source: str) -> Template:
    """The compiled template. Raises TextError, with the line, if it is invalid."""
    if len(source) > LONGEST_TEMPLATE:
        raise TextError(
            f"The chat template has {len(source):,} characters, and at most {LONGEST_TEMPLATE:,} are read. {INSTEAD}"
        )
    try:
        code = _SANDBOX.compile(_Counted().visit(_SANDBOX.parse(source)))
        return Template.from_code(_SANDBOX, code, _SANDBOX.make_globals(None))
    except TemplateSyntaxError as error:
        why = f"line {error.lineno}: {error.message or 'not a template'}"
    except (RecursionError, MemoryError):
        why = "its parts are nested too deeply"
    except (SyntaxError, ValueError, TypeError, OverflowError) as error:
        why = str(error)
    raise TextError(f"The chat template of this model cannot be read: {_ended(why)} {INSTEAD}")


INSTEAD = "Read the text as it is."


def render(source: str, values: Mapping[str, Any]) -> str:
    """Render a template with these values, which consist of numbers, strings, lists and dictionaries.

    Raises TextError for a template that cannot be compiled, rejects these values, requests anything that the sandbox denies, or
    exceeds a limit.
    """
    template = compiled(source)
    try:
        work = Work(values)
        known = {**values, WORK_OF: work, f"{WORK_OF}_literal": len(source)}
        parts: list[str] = []
        size = 0
        for part in template.root_render_func(template.new_context(known)):
            size += len(part)
            work.admit(size)
            work.spend(1)
            parts.append(part)
        return "".join(parts)
    except _Refused as error:
        raise TextError(f"The chat template does not take these messages: {_ended(str(error))} {INSTEAD}") from None
    except SecurityError as error:
        why = f"It asks for {shortened(str(error))}, which no template may have."
    except RecursionError:
        why = "It calls itself without end."
    except (_TooMuch, OverflowError) as error:
        why = str(error)
    except MemoryError:
        why = "It asks for more memory than there is."
    except (TemplateError, Exception) as error:  # any error for values that the template did not expect
        why = f"{type(error).__name__}: {error}"
    raise TextError(f"The chat template of this model was stopped. {_ended(why)} {INSTEAD}") from None


def _ended(said: str) -> str:
    line = shortened(said)
    return line if line.endswith((".", "…", "!", "?")) else f"{line}."


def shortened(said: str) -> str:
    """A message of a template or of jinja2, on one line, printable and of bounded length."""
    line = " ".join("".join(char if char.isprintable() else " " for char in said[: 2 * SAID]).split())
    return line if len(line) <= SAID else f"{line[: SAID - 1]}…"
