"""The tiny problems: answers are right, the split holds by construction, and counted places are those to be known."""

from __future__ import annotations

import pytest
import torch

from core import HeadlightError
from core.learn.tasks import TASKS, Task, encode, is_held_out, is_right, problems, sample, tokenizer_for

every = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


def closes(text: str) -> bool:
    """Whether brackets match, found by striking out pairs: another way than the task's own."""
    before = None
    while before != text:
        before = text
        for pair in ("()", "[]", "{}"):
            text = text.replace(pair, "")
    return text == ""


@pytest.mark.parametrize(
    ("name", "problem", "answer"),
    [
        ("copy", "bcab=", "bcab"),
        ("reverse", "bca=", "acb"),
        ("sort", "bcab=", "abbc"),
        ("addition", "047+905=", "2590"),
        ("addition", "999+999=", "8991"),
        ("induction", "kxjbq|x", "jbq"),
        ("brackets", "([{}{=", "}])"),
    ],
)
def test_answers(name: str, problem: str, answer: str) -> None:
    task = TASKS[name]
    assert task.answer(problem) == answer
    assert is_right(task, problem, answer)
    assert not any(is_right(task, problem, wrong) for wrong in (answer[:-1], answer + answer[-1], "", answer + " "))


def test_answers_found_another_way() -> None:
    for problem in problems(TASKS["addition"], 200, seed=3):
        one, other = map(int, problem.strip("=").split("+"))
        assert min(one, other) >= 10
        assert int(TASKS["addition"].answer(problem)[::-1]) == one + other
    for problem in problems(TASKS["brackets"], 200, seed=3):
        answer = TASKS["brackets"].answer(problem)
        assert answer
        assert closes(problem.strip("=") + answer)
    for problem in problems(TASKS["induction"], 200, seed=3):
        letters, here = problem.split("|")
        assert len(set(letters)) == len(letters)
        assert letters.endswith(here + TASKS["induction"].answer(problem))


@every
def test_the_split_holds_by_construction(task: Task) -> None:
    learnt = {task.key(p) for p in problems(task, 3000, seed=0)}
    kept = {task.key(p) for p in problems(task, 400, seed=1, held_out=True)}
    assert not learnt & kept
    assert len(kept) > 250  # short problems come up again
    assert all(is_held_out(task, p) for p in problems(task, 50, seed=2, held_out=True))


def test_no_other_order_gives_a_held_out_problem_away() -> None:
    for name, other in (("sort", lambda p: p[-2::-1] + "="), ("addition", lambda p: f"{p[4:7]}+{p[:3]}=")):
        for problem in problems(TASKS[name], 50, seed=0, held_out=True):
            assert is_held_out(TASKS[name], other(problem))


@every
def test_a_seed_gives_the_same_problems(task: Task) -> None:
    torch.rand(1)
    assert problems(task, 20, seed=4) == problems(task, 20, seed=4)
    assert problems(task, 20, seed=4) != problems(task, 20, seed=5)
    assert problems(task, 20, seed=4)[:7] == problems(task, 7, seed=4)


@every
def test_what_counts_is_the_answer_and_its_end(task: Task) -> None:
    asked = problems(task, 64, seed=6)
    ids, counts = sample(task, 64, seed=6)
    assert ids.shape == counts.shape
    for problem, row, counted in zip(asked, ids, counts, strict=True):
        assert [task.vocabulary[i] for i in row[counted]] == [*task.answer(problem), "</s>"]
        assert [task.vocabulary[i] for i in row[: 1 + len(problem)]] == ["<s>", *problem]
        assert not counted[: 1 + len(problem)].any()


@every
def test_n_ctx_is_the_longest(task: Task) -> None:
    assert sample(task, 6000, seed=0)[0].shape[1] == task.n_ctx


@every
def test_the_tokenizer_reads_what_the_model_learns(task: Task) -> None:
    tokenizer = tokenizer_for(task)
    for problem in problems(task, 20, seed=1):
        text = problem + task.answer(problem)
        assert tokenizer.encode(text).ids == encode(task, [text])[0, :-1].tolist()
        assert tokenizer.encode(" ".join(text)).ids == tokenizer.encode(text).ids
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_symbol_that_it_does_not_know() -> None:
    with pytest.raises(HeadlightError, match=r"Copy knows no 'z'\. It reads a b c"):
        encode(TASKS["copy"], ["abz="])
