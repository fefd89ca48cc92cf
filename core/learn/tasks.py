"""Toy tasks, and measures of a head on them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import Tensor

from ..errors import HeadlightError
from ..model.hooks import Hook, hooked
from ..model.transformer import Transformer

PAD, START, END = "<pad>", "<s>", "</s>"
LETTERS = "abcdefghijklmnop"
DIGITS = "0123456789"
PAIRS = {"(": ")", "[": "]", "{": "}"}
HELD_OUT_ONE_IN = 8


@dataclass(frozen=True)
class Task:
    """draw() samples a problem, answer() returns its only right answer; problems with the same key are on the same side of the split.

    sources() returns, for each symbol of the answer, the symbols of the problem that it depends on. With same_place the answer to
    each symbol is predicted at the position of that symbol, and not after the problem.
    """

    name: str
    title: str
    symbols: str
    n_ctx: int  # the longest problem and its answer, including start and end tokens
    draw: Callable[[random.Random], str]
    answer: Callable[[str], str]
    key: Callable[[str], str]
    sources: Callable[[str], tuple[tuple[int, ...], ...]]
    same_place: bool = False

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """By token id."""
        return (PAD, START, END, *self.symbols)

    @property
    def end_id(self) -> int:
        return self.vocabulary.index(END)


def is_right(task: Task, problem: str, written: str) -> bool:
    """True if the answer matches exactly."""
    return written == task.answer(problem)


def is_held_out(task: Task, problem: str) -> bool:
    """True for one key in eight, selected by its CRC-32."""
    return zlib.crc32(f"{task.name}:{task.key(problem)}".encode()) % HELD_OUT_ONE_IN == 0


def problems(task: Task, n: int, *, seed: int | str, held_out: bool = False) -> list[str]:
    """Sample n problems from one side of the split, the same for equal seeds. A problem may repeat."""
    rng = random.Random(f"{task.name} {held_out} {seed}")
    found: list[str] = []
    while len(found) < n:
        problem = task.draw(rng)
        if is_held_out(task, problem) == held_out:
            found.append(problem)
    return found


def encode(task: Task, texts: Sequence[str]) -> Tensor:
    """Encode problems with their answers as ids [text, pos], right-padded. Raises Refused for a symbol that the task does not have."""
    number = {symbol: i for i, symbol in enumerate(task.vocabulary)}
    rows = []
    for text in texts:
        if unknown := [symbol for symbol in text if symbol not in number]:
            raise HeadlightError(f"{task.title} knows no {unknown[0]!r}. It reads {' '.join(task.symbols)}.")
        rows.append([number[START], *(number[symbol] for symbol in text), number[END]])
    longest = max(map(len, rows), default=0)
    return torch.tensor([row + [number[PAD]] * (longest - len(row)) for row in rows])


def problem_of(task: Task, typed: str) -> str:
    """Normalise a typed problem: spaces and a missing "=" are ignored.

    Raises Refused with the invalid symbol or the rule, and an example.
    """
    text = "".join(typed.split())
    if task.symbols.endswith("="):
        text = text.rstrip("=") + "="
    example = problems(task, 1, seed="an example")[0]
    bare = text.rstrip("=")
    if unknown := [symbol for symbol in bare if symbol not in task.symbols]:
        raise HeadlightError(f"{task.title} knows no {unknown[0]!r}. It reads {' '.join(task.symbols)}. Try {example}")
    if not SHAPES[task.name](bare):
        raise HeadlightError(f"{RULES[task.name]} Try {example}")
    n_answer = 0 if task.same_place else len(task.answer(text))
    if (n := len(text) + n_answer + 2) > task.n_ctx:
        raise HeadlightError(f"{bare} and its answer take {n} tokens, and this model reads {task.n_ctx}. Try {example}")
    return text


def sample(task: Task, n: int, *, seed: int | str, held_out: bool = False) -> tuple[Tensor, Tensor]:
    """Sample problems with their answers: (ids [n, pos], counts [n, pos] bool, True for the tokens in the loss).

    Those are the answer and the end token, since the problem is random. In a task with same_place the ids are the problems, and
    every symbol counts.
    """
    return solved(task, problems(task, n, seed=seed, held_out=held_out))


def solved(task: Task, chosen: Sequence[str]) -> tuple[Tensor, Tensor]:
    """sample() of given problems. Raises Refused as encode() does."""
    if task.same_place:
        ids = encode(task, chosen)
        return ids, ids >= len((PAD, START, END))
    answers = [task.answer(problem) for problem in chosen]
    ids = encode(task, [problem + answer for problem, answer in zip(chosen, answers, strict=True)])
    places = torch.arange(ids.shape[1])
    first = torch.tensor([1 + len(problem) for problem in chosen])[:, None]  # after <s> and the problem
    last = first + torch.tensor([len(answer) for answer in answers])[:, None]  # the position of </s>
    return ids, (first <= places) & (places <= last)


def tokenizer_for(task: Task) -> Tokenizer:
    """One token per symbol, without spaces, and <s> before every text."""
    vocab = {symbol: i for i, symbol in enumerate(task.vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(vocab))
    tokenizer.add_special_tokens([PAD, START, END])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("", "isolated")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A", special_tokens=[(START, vocab[START])]
    )
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


# Rules for typed problems.


def _is_sum(bare: str) -> bool:
    parts = bare.split("+")
    return len(parts) == 2 and all(len(part) == 3 and part.isdecimal() for part in parts)


def _is_repeated(bare: str) -> bool:
    letters, bar, from_here = bare.partition("|")
    return bool(bar) and len(set(letters)) == len(letters) and len(from_here) == 1 and from_here in letters[:-1]


def _is_open(bare: str) -> bool:
    try:
        return bool(_open_places(bare))
    except (IndexError, ValueError):
        return False


def _is_word(bare: str) -> bool:
    return bool(bare) and all(letter in LETTERS for letter in bare)


SHAPES: dict[str, Callable[[str], bool]] = {
    "copy": _is_word,
    "reverse": _is_word,
    "sort": _is_word,
    "echo": _is_word,
    "addition": _is_sum,
    "induction": _is_repeated,
    "brackets": _is_open,
}
RULES = {
    **dict.fromkeys(("copy", "reverse", "sort", "echo"), "Give one letter at least."),
    "addition": "Give two numbers of three digits with + between them.",
    "induction": "Give different letters, a bar, and one of them from which to go on; not the last.",
    "brackets": "Give the beginning of a text of brackets: each closes the last one open, and one at least is still open.",
}


# The sources of answers.


def _in_order(problem: str) -> tuple[tuple[int, ...], ...]:
    return tuple((i,) for i in range(len(problem.rstrip("="))))


def _backwards(problem: str) -> tuple[tuple[int, ...], ...]:
    return _in_order(problem)[::-1]


def _sorted_places(problem: str) -> tuple[tuple[int, ...], ...]:
    """Equal letters keep their order."""
    letters = problem.rstrip("=")
    return tuple((i,) for i in sorted(range(len(letters)), key=letters.__getitem__))


def _columns(problem: str) -> tuple[tuple[int, ...], ...]:
    """The two digits of each column; the last digit of a sum is a carry, which depends on the previous column."""
    other = problem.index("+") + 1
    columns = [(place, other + place) for place in (2, 1, 0)]
    return (*columns, columns[-1])


def _later(problem: str) -> tuple[tuple[int, ...], ...]:
    letters, from_here = problem.split("|")
    return tuple((i,) for i in range(letters.index(from_here) + 1, len(letters)))


def _openers(problem: str) -> tuple[tuple[int, ...], ...]:
    return tuple((place,) for place in reversed(_open_places(problem.rstrip("="))))


def _open_places(text: str) -> list[int]:
    """The places of the brackets that are still open. Raises IndexError or ValueError for a text that is not well-formed."""
    places: list[int] = []
    for place, bracket in enumerate(text):
        if bracket in PAIRS:
            places.append(place)
        elif PAIRS[text[places.pop()]] != bracket:
            raise ValueError(f"bracket {place} closes another kind")
    return places


# The six tasks.


def _letters(rng: random.Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(3, 10))) + "="


def _sum(problem: str) -> str:
    """Least significant digit first, so that every carry is known in time."""
    one, other = problem.rstrip("=").split("+")
    return str(int(one) + int(other)).zfill(4)[::-1]


def _numbers(rng: random.Random) -> str:
    """Two numbers of two or three digits, zero-padded to three."""
    a, b = (rng.randint(10, 99) if rng.random() < 0.25 else rng.randint(100, 999) for _ in range(2))
    return f"{a:03}+{b:03}="


def _either_order(problem: str) -> str:
    """a + b and b + a have one key, so that the mirror image of a held-out problem is not trained on."""
    return "+".join(sorted(problem.rstrip("=").split("+")))


def _repeated(rng: random.Random) -> str:
    """Different letters, a bar, and one of the letters, whose continuation is the answer. Only the letter identifies it, not a position."""
    letters = rng.sample(LETTERS, rng.randint(4, 12))
    return f"{''.join(letters)}|{rng.choice(letters[:-1])}"


def _continued(problem: str) -> str:
    letters, from_here = problem.split("|")
    return letters[letters.index(from_here) + 1 :]


def _open_brackets(rng: random.Random) -> str:
    """The start of a well-formed bracket sequence, with one to five brackets open."""
    while True:
        text, waiting = "", []
        for _ in range(rng.randint(2, 12)):
            if waiting and (len(waiting) == 5 or rng.random() < 0.45):
                text += waiting.pop()
            else:
                bracket = rng.choice("([{")
                text += bracket
                waiting.append(PAIRS[bracket])
        if waiting:
            return f"{text}="


def _closing(problem: str) -> str:
    return "".join(PAIRS[problem[place]] for (place,) in _openers(problem))


def _itself(problem: str) -> str:
    return problem


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("copy", "Copy", LETTERS + "=", 23, _letters, lambda p: p.rstrip("="), _itself, _in_order),
        Task("reverse", "Reverse", LETTERS + "=", 23, _letters, lambda p: p.rstrip("=")[::-1], _itself, _backwards),
        # No reordering of a held-out problem is trained on either.
        Task(
            "sort",
            "Sort",
            LETTERS + "=",
            23,
            _letters,
            lambda p: "".join(sorted(p[:-1])),
            lambda p: "".join(sorted(p)),
            _sorted_places,
        ),
        Task("addition", "Addition, lowest digit first", DIGITS + "+=", 14, _numbers, _sum, _either_order, _columns),
        Task(
            "induction", "Go on as before", LETTERS + "|", 27, _repeated, _continued, lambda p: p.split("|")[0], _later
        ),
        Task("brackets", "Close the brackets", "()[]{}=", 19, _open_brackets, _closing, _itself, _openers),
    )
}

# Each letter at its own position, which a model can learn without attention. Only the Train screen has this task.
ECHO = Task("echo", "Echo", LETTERS, 12, lambda rng: _letters(rng)[:-1], _itself, _itself, _in_order, same_place=True)


PROBLEMS = 64  # held out


@dataclass(frozen=True, eq=False)
class HeadMeasures:
    """Mean weights, each [layer, head]."""

    finds: Tensor  # on the source of the next symbol, over the answers
    back: Tensor  # on the previous position, over the problem
    ahead: Tensor  # on the next position, over the answers; 0 with a causal mask


@lru_cache(maxsize=16)
def held_out(task: Task) -> tuple[str, ...]:
    """Held-out problems, the default for measurements."""
    return tuple(problems(task, PROBLEMS, seed="unseen", held_out=True))


@torch.inference_mode()
def head_measures(
    task: Task, model: Transformer, chosen: Sequence[str], hooks: Mapping[str, Hook] | None = None
) -> HeadMeasures:
    """Mean weights of each head on these problems with their answers, with the hooks of a variant."""
    assert model.decoder is not None
    patterns: dict[int, Tensor] = {}

    layers = range(len(model.decoder.blocks))
    ids, counts = solved(task, chosen)
    with (
        hooked(model, dict(hooks or {})),
        hooked(model, {f"decoder.blocks.{i}.attn.hook_pattern": partial(patterns.__setitem__, i) for i in layers}),
    ):
        model.last_residual(ids)
    seen = torch.stack([patterns[i] for i in layers], 1)  # [problem, layer, head, query, key]
    finds, back, ahead = [], [], []
    for row, problem in enumerate(chosen):
        first = 1 if task.same_place else len(problem)
        n = int(counts[row].nonzero()[-1]) + 1  # tokens, the end of the answer included
        sources = task.sources(problem)
        finds += [seen[row, :, :, first + i, [1 + k for k in of]].sum(-1) for i, of in enumerate(sources)]
        back.append(torch.stack([seen[row, :, :, q, q - 1] for q in range(1, len(problem) + 1)]).mean(0))
        ahead += [seen[row, :, :, q, q + 1] for q in range(first, n - 1)]
    means = [torch.stack(some).mean(0) if some else torch.zeros(seen.shape[1:3]) for some in (finds, back, ahead)]
    return HeadMeasures(*means)
