"""Measure a model that ships, and print what its card says: the same numbers each time.

    python -m scripts.evaluate storyteller --data /somewhere       perplexity, baselines, heads, what it writes
    python -m scripts.evaluate translator --data /somewhere        BLEU (greedy and beam 4), alignment of cross attention
    python -m scripts.evaluate copy                                any task model; its problems are drawn, no data needed
    python -m scripts.evaluate translator --part 40                a slice: 40 sentences, windows or problems
    python -m scripts.evaluate --write                             all that ship, and put it into models/<name>/card.md

scripts/corpora.py says what the data is. BLEU is sacrebleu's (Post 2018), on text as it was written.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from core import generate, load, trace
from core.checkpoints import Loaded
from core.checkpoints.native_format import write_whole
from core.errors import HeadlightError
from core.learn.tasks import TASKS, Task, is_right, problems, sample
from core.learn.training import Batch, evaluate
from core.read import measures
from core.write.beams import beam_search
from scripts import cards
from scripts.alignment import Caption, captions
from scripts.cards import Result, Row
from scripts.corpora import DATA, ROOT, Pairs, books, pairs
from scripts.ngram import kneser_ney, probabilities, unigram
from scripts.shipping import START_ID, steps
from scripts.train_storyteller import HELD_OUT, WINDOW, encode
from scripts.train_tasks import PLANS

STRIDE = WINDOW // 2  # held-out tokens are foretold from at least as many before them, but for the first of a book
REPEATED = 50  # random tokens, said twice, in which heads show whether they do induction
N_REPEATED = 8
BATCH = 32
HELD_OUT_PROBLEMS, PROBLEMS_ALONG, LOOKED_AT = (
    1000,
    200,
    100,
)  # for the answers, for a saved point, for what heads look at
PROMPTS = ("Once upon a time there was a", "The Princess said", '"Where are you going?" asked the')


# storyteller


def storyteller(loaded: Loaded, data: Path, part: int | None) -> Result:
    tokenizer = tokenizer_of(loaded)
    library = books(data)
    missing = [title for title in HELD_OUT if title not in library]
    if missing:
        raise HeadlightError(f"storybooks.txt.gz holds no {missing[0]}, which the storyteller is tested on.")
    held = [encode(tokenizer, library[title])[0] for title in HELD_OUT]
    if part is not None:
        held = [held[0][: part * STRIDE]]
    n_bytes = sum(len(tokenizer.decode(ids.tolist()).encode()) for ids in held)
    nats, n = 0.0, 0
    for ids in held:
        losses = foretold(loaded, ids)
        nats, n = nats + losses.double().sum().item(), n + len(losses)
    rows = [
        Row("perplexity per token", math.exp(nats / n), ".2f"),
        Row("bits per byte", nats / math.log(2) / n_bytes, ".3f"),
    ]
    if part is None:
        rows += baselines(loaded, library, held, n_bytes)
    patterns = repeated_patterns(loaded, N_REPEATED if part is None else 1)
    heads = head_table(patterns)
    rows += [
        Row(f"{what}: layer {layer} head {head}", share, ".2f")
        for what, shares in heads.items()
        for layer, head, share in [best(shares)]
    ]
    prompts = PROMPTS if part is None else PROMPTS[:1]
    texts = {
        f"{prompt} …": generate(loaded, prompt, max_tokens=60, temperature=0.7, top_k=40, seed=1)[0].text
        for prompt in prompts
    }
    return Result(tuple(rows), heads=heads, texts=texts)


def tokenizer_of(loaded: Loaded) -> Tokenizer:
    if loaded.tokenizer is None:
        raise HeadlightError(f"{loaded.spec.title} has no tokenizer.json. Train it again, or put the file back.")
    return loaded.tokenizer


@torch.inference_mode()
def foretold(loaded: Loaded, ids: Tensor) -> Tensor:
    """[token]: the nats that each token of a text costs, behind <s> and up to WINDOW - 2 tokens before it."""
    head, losses = loaded.model.head, []
    assert head is not None
    for at in range(0, len(ids), STRIDE):
        begin = max(0, at + STRIDE - (WINDOW - 1))  # the window ends where the new tokens do
        window = ids[begin : at + STRIDE]
        row = torch.cat([torch.tensor([START_ID]), window])[None].to(loaded.device)
        new = loaded.model.last_residual(row[:, :-1])[0, at - begin :]
        losses.append(F.cross_entropy(head(new).float(), row[0, 1 + at - begin :], reduction="none").cpu())
    return torch.cat(losses)


def baselines(loaded: Loaded, library: dict[str, list[str]], held: list[Tensor], n_bytes: int) -> list[Row]:
    """The same held-out tokens foretold by counts of the books that the storyteller has read."""
    vocab = loaded.config.vocab_size
    n = 5 if vocab**5 < 2**63 else 4
    start = torch.full((n - 1,), START_ID)
    read = [encode(tokenizer_of(loaded), text)[0] for title, text in library.items() if title not in HELD_OUT]
    seen = torch.cat([part for ids in read for part in (start, ids)]).numpy()
    orders = kneser_ney(seen, vocab, n)
    costs = {f"{n}-gram, Kneser–Ney": 0.0, "unigram": 0.0}
    total = sum(map(len, held))
    for ids in held:
        from_counts = probabilities(orders, torch.cat([start, ids]).numpy(), vocab)
        alone = unigram(ids.numpy(), seen, vocab)
        for name, p in zip(costs, (from_counts, alone), strict=True):
            costs[name] -= float(torch.from_numpy(p).log().sum())
    return [
        row
        for name, nats in costs.items()
        for row in (
            Row(f"perplexity per token, {name}", math.exp(nats / total), ".1f"),
            Row(f"bits per byte, {name}", nats / math.log(2) / n_bytes, ".3f"),
        )
    ]


def repeated_patterns(loaded: Loaded, n: int) -> list[tuple[list[int], list[Tensor]]]:
    """(ids, patterns by layer) of random tokens said twice behind <s>: nothing but the repetition can be foretold."""
    found = []
    for seed in range(n):
        generator = torch.Generator().manual_seed(seed)
        said = torch.randint(3, loaded.config.vocab_size, (REPEATED,), generator=generator).tolist()
        ids = [START_ID, *said, *said]
        found.append((ids, [record.pattern() for record in trace(loaded, ids=ids).attention]))
    return found


def head_table(patterns: Sequence[tuple[list[int], list[Tensor]]]) -> dict[str, Tensor]:
    """[layer, head] for each kind of head: the mean weight that lies where such a head looks."""
    later = slice(REPEATED + 1, None)  # the second time
    induction, previous, first = [], [], []
    for ids, layers in patterns:
        queries = torch.arange(REPEATED + 1, len(ids))
        induction.append(torch.stack([measures.induction(p[:, later], ids, queries) for p in layers]))
        previous.append(torch.stack([measures.previous_token(p) for p in layers]))
        first.append(torch.stack([measures.sink_share(p) for p in layers]))
    return {
        "induction head": torch.stack(induction).mean(0),
        "previous-token head": torch.stack(previous).mean(0),
        "rests on <s>": torch.stack(first).mean(0),
    }


def best(shares: Tensor) -> tuple[int, int, float]:
    """(layer, head, share) of the largest entry of [layer, head]."""
    layer, head = divmod(int(shares.argmax()), shares.shape[1])
    return layer, head, float(shares[layer, head])


# translator


def translator(loaded: Loaded, data: Path, part: int | None) -> Result:
    rows = [Row(*row) for row in alignment_rows(loaded)]
    heads, _ = aligned(loaded)
    # Without the corpus there is still a slice to be had: the captions in scripts/alignment.py.
    known = pairs(data, "test_2016_flickr") if part is None else [(c.german, c.english) for c in captions()][:part]
    greedy = [g for chunk in chunks(known) for g in generate(loaded, [german for german, _ in chunk], max_tokens=100)]
    beams = [b[0] for chunk in chunks(known) for b in beam_search(loaded, [german for german, _ in chunk], n_beams=4)]
    english = [text for _, text in known]
    rows = [
        Row("BLEU, greedy", bleu([g.text for g in greedy], english), ".1f"),
        Row("BLEU, beam 4", bleu([b.text for b in beams], english), ".1f"),
        *rows,
    ]
    texts = {german: g.text for (german, _), g in list(zip(known, greedy, strict=True))[:6]}
    return Result(tuple(rows), heads={"cross attention on the right word": heads}, texts=texts)


def chunks(known: Pairs) -> list[Pairs]:
    return [known[i : i + BATCH] for i in range(0, len(known), BATCH)]


def bleu(written: list[str], references: list[str]) -> float:
    import sacrebleu  # a tool of development, which the application does without

    return sacrebleu.corpus_bleu([text.strip() for text in written], [references]).score


def alignment_rows(loaded: Loaded) -> list[tuple[str, float, str]]:
    heads, layers = aligned(loaded)
    layer, head, share = best(heads)
    mean = int(layers.argmax())
    return [
        (f"% of content words aligned, layer {layer} head {head}", 100 * share, ".0f"),
        (f"% of content words aligned, mean of the heads of layer {mean}", 100 * float(layers[mean]), ".0f"),
    ]


def aligned(loaded: Loaded) -> tuple[Tensor, Tensor]:
    """([layer, head], [layer]): the share of content words that find their source word; one head, and a layer's mean.

    The decoder reads the caption's own translation. A word is written from the place before it: the query is the token
    in front of the word's first piece, and finds the source word to whose pieces it gives the most, </s> included.
    """
    right: list[Tensor] = []
    for caption in captions():
        run = trace(loaded, caption.german, target=caption.english)
        records = [record for record in run.attention if record.site == "cross_attn"]
        patterns = torch.stack([record.pattern() for record in records])  # [layer, head, query, key]
        patterns = torch.cat([patterns, patterns.mean(1, keepdim=True)], 1)
        targets, sources = run.tokens_of(records[0])
        words = torch.tensor(word_numbers(caption, sources.offsets, sources.special))
        by_word = torch.stack([patterns[..., words == w].sum(-1) for w in words.unique()], -1)
        for (start, _), places in caption.links.items():
            query = next(i for i, span in enumerate(targets.offsets) if span[0] <= start < span[1]) - 1
            meant = {int(words[key]) for key, span in enumerate(sources.offsets) for p in places if covers(span, p)}
            found = words.unique()[by_word[..., query, :].argmax(-1)]  # [layer, head]
            right.append(torch.isin(found, torch.tensor(sorted(meant))))
    shares = torch.stack(right).float().mean(0)
    return shares[:, :-1], shares[:, -1]


def word_numbers(caption: Caption, offsets: Sequence[tuple[int, int]], special: Sequence[bool]) -> list[int]:
    """For each token the number of the word, or the mark, that its characters stand in; -1 for </s>."""
    words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", caption.german)]
    last = (stop - 1 for _, stop in offsets)  # a token may begin with the space before a word
    return [
        -1 if mark else next((n for n, (start, stop) in enumerate(words) if start <= at < stop), -1)
        for at, mark in zip(last, special, strict=True)
    ]


def covers(span: tuple[int, int], place: tuple[int, int]) -> bool:
    return span[0] < place[1] and place[0] < span[1]


# tasks


def task_model(name: str, folder: Path, part: int | None) -> Result:
    task, loaded = TASKS[PLANS[name].task], load(folder)
    n, n_along, n_looked_at = (min(n, part or n) for n in (HELD_OUT_PROBLEMS, PROBLEMS_ALONG, LOOKED_AT))
    loss, accuracy = evaluate(loaded.model, [Batch(*sample(task, n, seed="card", held_out=True))])
    rows = (
        Row("whole answers exactly right, greedy", solved(loaded, task, n), ".1%"),
        Row("tokens right", accuracy, ".2%"),
        Row("loss, nats per token", loss, ".4f"),
    )
    points = {int(point.name): point for point in sorted((folder / "steps").glob("*"))} if part is None else {}
    if points:
        points[steps(folder)] = folder
    example = problems(task, 1, seed="example", held_out=True)[0]
    return Result(
        rows,
        heads={"looks at what comes next": looks_at_next(loaded, task, n_looked_at)},
        texts={f"`{example}`": f"`{generate(loaded, example, max_tokens=task.n_ctx)[0].text}`"},
        along={step: solved(load(point), task, n_along) for step, point in points.items()},
    )


def solved(loaded: Loaded, task: Task, n: int) -> float:
    """The share of n held-out problems whose whole answer the model writes exactly, greedily."""
    asked = problems(task, n, seed="card", held_out=True)
    right = 0
    for start in range(0, n, BATCH):
        part = asked[start : start + BATCH]
        written = generate(loaded, part, max_tokens=task.n_ctx)
        right += sum(
            g.ending == "end" and is_right(task, problem, g.text) for g, problem in zip(written, part, strict=True)
        )
    return right / n


def looks_at_next(loaded: Loaded, task: Task, n: int) -> Tensor:
    """[layer, head]: the weight that lies on tokens equal to the one about to be written, mean over the answers of n problems.

    What a head does that fetches the answer from the problem: copying, reversing and induction all need one.
    """
    total, count = torch.zeros(loaded.config.n_decoder_layers, loaded.config.n_heads), 0
    for problem in problems(task, n, seed="heads", held_out=True):
        answer = task.answer(problem)
        ids = [task.vocabulary.index(s) for s in ("<s>", *problem, *answer)]
        queries = range(len(problem), len(problem) + len(answer))  # each writes the token behind it
        run = trace(loaded, ids=ids)
        same = torch.tensor([[key == ids[q + 1] for key in ids] for q in queries])
        for record in run.attention:
            total[record.layer] += (record.pattern(None, queries) * same).sum((-1, -2))
        count += len(answer)
    return total / count


# any


def measure(name: str, models: Path, data: Path, part: int | None = None) -> Result:
    """What the card of models/<name> says, measured. Raises HeadlightError for a name that is not known and data that is not there."""
    if name == "storyteller":
        return storyteller(load(models / name), data, part)
    if name == "translator":
        return translator(load(models / name), data, part)
    return task_model(name, models / name, part)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("storyteller", "translator", *PLANS)
    parser.add_argument("names", nargs="*", metavar="model", help=", ".join(names))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    parser.add_argument("--part", type=int, help="only so many sentences, windows or problems")
    parser.add_argument("--write", action="store_true", help="write the card anew")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in names]:
        print(f"No model {unknown[0]!r} ships. Choose from {', '.join(names)}.", file=sys.stderr)
        return 2
    try:
        for name in options.names or names:
            started = time.perf_counter()
            result = measure(name, options.models, options.data, options.part)
            print(cards.printed(name, result, time.perf_counter() - started), flush=True)
            if options.write and options.part is None:
                card = cards.card(name, options.models / name, result)
                write_whole(options.models / name / "card.md", card.encode())
    except HeadlightError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
