"""Nothing in core writes what every thread of the process reads: said of the source, and of two threads at work."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import core
from core import ModelConfig, build, trace
from core.checkpoints import Loaded
from core.learn.tasks import TASKS, sample
from core.learn.training import Batch, Recipe, train
from core.model.hooks import hooked
from core.plan import trace_shapes
from tests.every import of_every

CORE = Path(core.__file__).parent
# `core.checkpoints.from_config` is the function, not its module.
BUILD, TRACING = import_module("core.checkpoints.from_config"), import_module("core.plan.tracing")
CAPTURE, FUSED = import_module("core.run.capture"), F.scaled_dot_product_attention
CONFIG = ModelConfig(vocab_size=20, d_model=24, n_heads=2, d_ff=48, n_ctx=32, n_decoder_layers=1)

# What sets something for all threads, by the last part of its name.
SETTERS = frozenset(
    "set_default_dtype set_default_device set_default_tensor_type set_grad_enabled set_num_threads set_num_interop_threads "  # noqa: SIM905
    "set_float32_matmul_precision set_flush_denormal set_printoptions set_deterministic_debug_mode set_warn_always "
    "use_deterministic_algorithms set_anomaly_enabled detect_anomaly set_detect_anomaly set_autocast_enabled "
    "sdpa_kernel sdp_kernel enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp enable_cudnn_sdp "
    "fork_rng set_rng_state set_per_process_memory_fraction "
    "filterwarnings simplefilter catch_warnings seterr setlocale setrecursionlimit setswitchinterval chdir umask putenv "
    "unsetenv setdefaulttimeout basicConfig set_overwrite_module_params_on_conversion set_swap_module_params_on_conversion".split()
)
# Where the generator that everybody shares is seeded; with one of one's own it is generator.manual_seed.
SEEDED = frozenset({"torch", "torch.random", "torch.cuda", "torch.mps", "random", "np.random", "numpy.random"})
# What draws from it unless it is given another.
DRAWS = frozenset({"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial"})


def shared_writes(source: str) -> list[str]:
    """The places in a source that write what all threads of a process read."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if _is_write(node)]


def _is_write(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        base, _, last = ast.unparse(node.func).rpartition(".")
        if last in SETTERS or (base == "os.environ" and last in ("update", "setdefault", "pop", "clear", "popitem")):
            return True
        if last in ("manual_seed", "manual_seed_all", "seed"):
            return base in SEEDED
        own = any(keyword.arg == "generator" for keyword in node.keywords)
        return base == "torch" and last in DRAWS and not own
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        return any(re.match(r"os\.environ\[|torch\.|F\.|sys\.", ast.unparse(target)) for target in targets)
    return False


@pytest.mark.parametrize(
    "line",
    [
        "torch.set_default_dtype(torch.float16)",
        "with sdpa_kernel(SDPBackend.MATH): pass",
        "torch.backends.cuda.enable_flash_sdp(False)",
        "torch.backends.cudnn.benchmark = True",
        "torch.manual_seed(0)",
        "with torch.random.fork_rng(): pass",
        "torch.set_num_threads(1)",
        "os.environ['A'] = 'b'",
        "del os.environ['A']",
        "os.environ.update(A='b')",
        "F.scaled_dot_product_attention = mine",
        "x = torch.rand(3)",
        "with torch.set_grad_enabled(False): pass",
    ],
)
def test_the_walk_finds_them(line: str) -> None:
    assert shared_writes(line)


@pytest.mark.parametrize(
    "line",
    [
        "torch.Generator().manual_seed(3)",
        "torch.rand(3, generator=g)",
        "os.environ.get('A')",
        "with torch.no_grad(): pass",
    ],
)
def test_the_walk_lets_others_be(line: str) -> None:
    assert not shared_writes(line)


# Each sets it for a process that does nothing else.
ALONE = {CORE / "sweep" / "atlas_ray.py", CORE / "service" / "training_process.py"}


@pytest.mark.thorough
@of_every({*CORE.rglob("*.py")} - ALONE)
def test_core_writes_nothing_that_threads_share(path: Path) -> None:
    assert not shared_writes(path.read_text(encoding="utf-8"))


class Midway:
    """A place at which one thread waits until another has done its part."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> None:
        self.reached.set()
        assert self.go_on.wait(60)

    @contextmanager
    def while_at_it(self, work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
        """Inside, `work` is held up midway in another thread; then it goes on. Yields what gives its result."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work)
            assert self.reached.wait(60)
            try:
                yield lambda: future.result(60)
            finally:
                self.go_on.set()


def test_a_plan_in_half_precision_leaves_another_thread_s_numbers_alone(
    tiny: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    midway, record = Midway(), trace(tiny(), ids=[3, 4, 5]).attention[0]
    made = TRACING.Transformer

    def make(config: ModelConfig) -> Any:
        midway()
        return made(config)

    monkeypatch.setattr(TRACING, "Transformer", make)
    with midway.while_at_it(lambda: trace_shapes(CONFIG, source_len=3, dtype="float16")) as result:
        assert record.pattern().dtype == record.thumbnail().values.dtype == torch.float32
        assert torch.empty(1).dtype == torch.float32
    assert {step.dtype for step in result().steps} >= {"float16"}


class Kernels(TorchDispatchMode):
    """The names of the operations that this thread runs."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self.seen.add(func._overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def kernels_of_attention() -> set[str]:
    q = torch.ones(1, 2, 8, 4)
    with Kernels() as kernels:
        F.scaled_dot_product_attention(q, q, q)
    return kernels.seen


def learn(meanwhile: Callable[..., None]) -> set[str]:
    """The operations of one step of a training; `meanwhile` is called in the middle of its forward pass."""
    model, task = build(CONFIG).model, TASKS["copy"]
    with hooked(model, {"decoder.blocks.0.hook_attn_out": meanwhile}), Kernels() as kernels:
        list(train(model, lambda step: Batch(*sample(task, 4, seed=step)), Recipe(steps=1, mixed=False)))
    return kernels.seen


def test_a_training_leaves_another_thread_s_kernel_alone() -> None:
    fused = kernels_of_attention()
    assert any("flash" in name for name in fused)
    midway = Midway()
    with midway.while_at_it(lambda: learn(midway)) as result:
        assert kernels_of_attention() == fused
    assert not any("flash" in name for name in result())  # which itself does without it


def test_trainings_that_overlap_leave_nothing_behind() -> None:
    """The one that began first ends first, so that what the other one found and put back is the first one's."""
    fused, early, late = kernels_of_attention(), Midway(), Midway()
    with early.while_at_it(lambda: learn(early)) as first:
        with late.while_at_it(lambda: learn(late)) as second:
            early.go_on.set()
            first()
        second()
    assert kernels_of_attention() == fused


def test_building_draws_from_its_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = build(CONFIG, seed=4).model.state_dict()
    torch.manual_seed(7)
    expected = torch.rand(50)
    midway, initialise = Midway(), BUILD.initialise

    def slowly(model: Any) -> Any:
        midway()
        return initialise(model)

    monkeypatch.setattr(BUILD, "initialise", slowly)
    torch.manual_seed(7)
    with midway.while_at_it(lambda: build(CONFIG, seed=4)) as result:
        assert torch.equal(torch.rand(50), expected)  # what this thread draws
    made = result().model.state_dict()
    assert all(torch.equal(made[name], weight) for name, weight in alone.items())  # and what that one draws


def test_a_capture_leaves_torch_and_chance_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True), torch.ones(1, 3, 8)
    midway, made = Midway(), CAPTURE.AttentionRecord

    def make(*arguments: Any, **named: Any) -> Any:
        midway()
        return made(*arguments, **named)

    monkeypatch.setattr(CAPTURE, "AttentionRecord", make)

    def record() -> int:
        with core.capture(module) as records:
            module(x, x, x)
        return len(records)

    torch.manual_seed(7)
    expected = torch.rand(50)
    torch.manual_seed(7)
    with midway.while_at_it(record) as result:
        assert F.scaled_dot_product_attention is FUSED
        assert torch.equal(torch.rand(50), expected)
        after = torch.get_rng_state()
    assert result() == 1
    assert not torch.equal(torch.get_rng_state(), after)  # nobody turns the generator back: that pass drew its dropout


@pytest.mark.parametrize("position", ["learned", "relative"])
def test_a_built_model_leaves_chance_alone(position: Any) -> None:
    before = torch.get_rng_state()
    config = ModelConfig(
        vocab_size=20, d_model=24, n_heads=2, d_ff=48, n_ctx=32, n_encoder_layers=1, position=position,
        n_token_types=2, head="mlm", embed_norm=True,
    )  # fmt: skip
    build(config, seed=4)
    assert torch.equal(torch.get_rng_state(), before)
