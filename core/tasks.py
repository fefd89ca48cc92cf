"""Tiny problems whose solutions can be watched in attention: copy, reverse, sort, addition, induction, brackets.

A problem is a short text such as "bca=", its one right answer a text as well ("abc" for sort), and every symbol is a token.
The model reads `<s> b c a =` and writes `a b c </s>`. Which problems are held out follows from the problem itself, so no
seed, size or order of drawing can let one of them into training.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import Tensor

from .errors import Refused

PAD, START, END = "<pad>", "<s>", "</s>"
LETTERS = "abcdefghijklmnop"
DIGITS = "0123456789"
PAIRS = {"(": ")", "[": "]", "{": "}"}
HELD_OUT_ONE_IN = 8


@dataclass(frozen=True)
class Task:
    """draw() gives a problem, answer() its only right answer; problems with one key are on the same side of the split."""

    name: str
    title: str
    symbols: str
    n_ctx: int  # the longest problem and its answer, with the marks of start and end
    draw: Callable[[random.Random], str]
    answer: Callable[[str], str]
    key: Callable[[str], str]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """By token id."""
        return (PAD, START, END, *self.symbols)

    @property
    def end_id(self) -> int:
        return self.vocabulary.index(END)


def is_right(task: Task, problem: str, written: str) -> bool:
    """Whether the answer is exact, symbol for symbol."""
    return written == task.answer(problem)


def is_held_out(task: Task, problem: str) -> bool:
    """One key in eight, chosen by its CRC-32."""
    return zlib.crc32(f"{task.name}:{task.key(problem)}".encode()) % HELD_OUT_ONE_IN == 0


def problems(task: Task, n: int, *, seed: int | str, held_out: bool = False) -> list[str]:
    """n problems from one side of the split, the same ones for the same seed. A problem may come up more than once."""
    rng = random.Random(f"{task.name} {held_out} {seed}")
    found: list[str] = []
    while len(found) < n:
        problem = task.draw(rng)
        if is_held_out(task, problem) == held_out:
            found.append(problem)
    return found


def encode(task: Task, texts: Sequence[str]) -> Tensor:
    """[text, pos]: problems with their answers as the model learns them, filled up on the right.

    Raises Refused, naming the symbol, for a text that the task has no token for.
    """
    number = {symbol: i for i, symbol in enumerate(task.vocabulary)}
    rows = []
    for text in texts:
        if unknown := [symbol for symbol in text if symbol not in number]:
            raise Refused(f"{task.title} knows no {unknown[0]!r}. It reads {' '.join(task.symbols)}.")
        rows.append([number[START], *(number[symbol] for symbol in text), number[END]])
    longest = max(map(len, rows), default=0)
    return torch.tensor([row + [number[PAD]] * (longest - len(row)) for row in rows])


def sample(task: Task, n: int, *, seed: int | str, held_out: bool = False) -> tuple[Tensor, Tensor]:
    """(ids [n, pos], counts [n, pos] bool): problems with their answers, and where the tokens stand that have to be known.

    Those are the answer and the end behind it. The problem itself is random and nobody could foretell it.
    """
    chosen = problems(task, n, seed=seed, held_out=held_out)
    answers = [task.answer(problem) for problem in chosen]
    ids = encode(task, [problem + answer for problem, answer in zip(chosen, answers, strict=True)])
    places = torch.arange(ids.shape[1])
    first = torch.tensor([1 + len(problem) for problem in chosen])[:, None]  # behind <s> and the problem
    last = first + torch.tensor([len(answer) for answer in answers])[:, None]  # where </s> stands
    return ids, (first <= places) & (places <= last)


def tokenizer_for(task: Task) -> Tokenizer:
    """One token a symbol, spaces skipped, <s> in front of every text."""
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


# the six


def _letters(rng: random.Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(3, 10))) + "="


def _sum(problem: str) -> str:
    """Least significant digit first, so that every carry is known when it is needed."""
    one, other = problem.rstrip("=").split("+")
    return str(int(one) + int(other)).zfill(4)[::-1]


def _numbers(rng: random.Random) -> str:
    """Two numbers of two or three digits, each written with three."""

    def number() -> int:
        return rng.randint(10, 99) if rng.random() < 0.25 else rng.randint(100, 999)

    return f"{number():03}+{number():03}="


def _either_order(problem: str) -> str:
    """a + b and b + a are one problem: else the held-out ones would be known from their mirror images."""
    return "+".join(sorted(problem.rstrip("=").split("+")))


def _repeated(rng: random.Random) -> str:
    """Different letters, a bar, and one of the letters from which to go on. No place tells which: only the letter does."""
    letters = rng.sample(LETTERS, rng.randint(4, 12))
    return f"{''.join(letters)}|{rng.choice(letters[:-1])}"


def _continued(problem: str) -> str:
    letters, from_here = problem.split("|")
    return letters[letters.index(from_here) + 1 :]


def _open_brackets(rng: random.Random) -> str:
    """The beginning of a well-formed text of brackets, with one at least still open and five at most."""
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
    waiting: list[str] = []
    for bracket in problem.rstrip("="):
        if bracket in PAIRS:
            waiting.append(PAIRS[bracket])
        else:
            waiting.pop()
    return "".join(reversed(waiting))


def _itself(problem: str) -> str:
    return problem


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("copy", "Copy", LETTERS + "=", 23, _letters, lambda p: p.rstrip("="), _itself),
        Task("reverse", "Reverse", LETTERS + "=", 23, _letters, lambda p: p.rstrip("=")[::-1], _itself),
        # No reordering of a held-out problem is trained on either.
        Task(
            "sort", "Sort", LETTERS + "=", 23, _letters, lambda p: "".join(sorted(p[:-1])), lambda p: "".join(sorted(p))
        ),
        Task("addition", "Addition, lowest digit first", DIGITS + "+=", 14, _numbers, _sum, _either_order),
        Task("induction", "Go on as before", LETTERS + "|", 27, _repeated, _continued, lambda p: p.split("|")[0]),
        Task("brackets", "Close the brackets", "()[]{}=", 19, _open_brackets, _closing, _itself),
    )
}
