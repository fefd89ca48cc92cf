"""LoRA adapters of PEFT (adapter_config.json, adapter_model.safetensors): finds the base model and merges the adapter into it.

W' = W + s·BA with s = alpha / r, or alpha / sqrt(r) with rslora (Hu et al. 2021, arXiv:2106.09685, §4.1; Kalajdzievski 2023,
arXiv:2312.03732); with DoRA each row of W' is then scaled to a learned norm (Liu et al. 2024, arXiv:2402.09353, eq. 5).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torch import Tensor

from ..errors import CheckpointError
from .bare_names import strip_wrappers
from .classifiers import ROWS, SCORE, SUFFIX
from .computed import lazy_tensor
from .family import Family, Theirs, shown, without
from .files import FLOATS, Stored, header, read_json

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BEFORE = "base_model.model."
PART = re.compile(
    r"(?P<module>.+)\.(?P<part>lora_A|lora_B|lora_embedding_A|lora_embedding_B|lora_magnitude_vector)(\.weight)?"
)
# Initialisations that also change the base model, so that the adapter does not fit the published one.
CHANGED_BASE = re.compile(r"pissa.*|olora|corda|loftq")
# Patterns of module names. General regular expressions could take exponential time.
PATTERN = re.compile(r"[\w.^$\\-]{1,200}")


@dataclass(frozen=True)
class Adapter:
    """Config and tensors of an adapter."""

    settings: Theirs
    tensors: Mapping[str, Stored]

    @property
    def base(self) -> str:
        """Name of the base model in the config."""
        return self.settings.str("base_model_name_or_path", "")


def read_config(folder: Path) -> Theirs:
    return Theirs(read_json(folder / CONFIG), CONFIG)


def is_lora(settings: Theirs) -> bool:
    return settings.str("peft_type", "LORA") == "LORA"


def read_adapter(folder: Path) -> Adapter:
    """Read a LoRA folder. Raises CheckpointError for unsupported settings."""
    settings = read_config(folder)
    initialisation = settings.any("init_lora_weights", True)
    if isinstance(initialisation, str) and CHANGED_BASE.fullmatch(initialisation):
        raise CheckpointError(
            f"{CONFIG}: init_lora_weights is {shown(initialisation)}, which changes the weights of the base as well, so that it does not belong to the "
            "published one. Merge it in the program that trained it."
        )
    for key in ("trainable_token_indices", "layer_replication", "lora_bias", "use_qalora", "alora_invocation_tokens"):
        if settings.any(key, None):
            raise CheckpointError(f"{CONFIG}: {key} is not supported. Merge it in the program that trained it.")
    return Adapter(settings, {stored.name: stored for stored in header(folder / WEIGHTS)})


def base_beside(folder: Path, base: str) -> Path | None:
    """Folder of the base next to the adapter, or next to its training folder, by the last part of its name; None if missing."""
    name = PurePosixPath(base.replace("\\", "/")).name
    if not name or name in (".", ".."):
        return None
    places = (folder.resolve().parent, folder.resolve().parent.parent)
    return next((place / name for place in places if (place / name / "config.json").is_file()), None)


def merged(adapter: Adapter, family: Family, bare: Mapping[str, Stored]) -> tuple[dict[str, Stored], str]:
    """The base's tensors with the adapter merged into them, under the names of their files, and a notice.

    `bare` are the base's tensors by the names of its family. Raises CheckpointError naming a tensor of the adapter that does not fit
    the base.
    """
    settings, tensors = adapter.settings, {stored.name: stored for stored in bare.values()}
    layers: dict[str, dict[str, Stored]] = {}
    replaced: list[Stored] = []
    heads: list[str] = []
    for name, stored in adapter.tensors.items():
        if stored.dtype not in FLOATS:
            raise CheckpointError(f"{stored.file}: {stored.name} is stored as {stored.dtype}, which is not read.")
        if match := PART.fullmatch(name):
            layers.setdefault(match["module"], {})[match["part"]] = stored
        elif (head := head_name(name, family)) is not None and head not in bare:
            tensors[head] = _as_float(head, stored)
            heads.append(head)
        else:
            replaced.append(stored)
    tensors |= dict(_replacement(stored, family, bare) for stored in replaced)
    if not layers and not replaced and not heads:
        raise CheckpointError(f"{WEIGHTS} holds no weights of an adapter.")
    numbers: set[tuple[int, float]] = set()
    for module, parts in layers.items():
        target = _target(f"{module}.weight", family, bare, next(iter(parts.values())))
        rank, alpha = _numbers(settings, module)
        tensors[target.name] = _added(target, Update(module, parts, rank, alpha, settings))
        numbers.add((rank, alpha))
    text = _notice(adapter, layers, numbers)
    text += f" {len(replaced)} of its tensors take the place of the base's own." if replaced else ""
    classified = bool(heads) and is_classifier(settings)
    return tensors, f"{text} The head that gives a text its class is the adapter's." if classified else text


def _notice(adapter: Adapter, layers: Collection[str], numbers: Collection[tuple[int, float]]) -> str:
    kind = "DoRA" if adapter.settings.bool("use_dora", False) else "LoRA"
    rslora = ", rslora" if adapter.settings.bool("use_rslora", False) else ""
    modules = ", ".join(sorted({module.rpartition(".")[2] for module in layers}))
    text = (
        f"{kind} of rank {_listed({rank for rank, _ in numbers})} (alpha {_listed({alpha for _, alpha in numbers})}{rslora}) is merged into "
        f"{len(layers)} weight{'s' if len(layers) != 1 else ''} of {PurePosixPath(adapter.base).name or 'its base'}: {modules}."
    )
    return text


def _as_float(name: str, stored: Stored) -> Stored:
    return lazy_tensor(name, stored.file, stored.shape, lambda: stored.read().float())


def _replacement(stored: Stored, family: Family, bare: Mapping[str, Stored]) -> tuple[str, Stored]:
    """A tensor of the adapter that replaces one of the base, with the name of that one."""
    target = _target(stored.name, family, bare, stored)
    if target.shape != stored.shape:
        raise CheckpointError(
            f"{stored.file}: {stored.name} is {list(stored.shape)}, but it takes the place of {target.name}, which is {list(target.shape)}."
        )
    return target.name, _as_float(target.name, stored)


def is_classifier(settings: Theirs) -> bool:
    """True if the adapter was trained for sequence classification."""
    return settings.str("task_type", None) == "SEQ_CLS"


def head_name(name: str, family: Family) -> str | None:
    """Name of an adapter's tensor in the family's classification head; None if it belongs elsewhere."""
    row = ROWS.get(family.model_type, SCORE if family.head == "lm" and not family.start_token else None)
    short = _short(name)
    for each in (short.removeprefix(family.prefix), short):
        if row is not None and each.rpartition(".")[0] in (row.out, row.dense, row.norm):
            return each
    return None


def with_classes(source_config: Theirs, adapter: Adapter, family: Family, tensors: Mapping[str, Stored]) -> Theirs:
    """The base's config.json, changed to that of a classifier if the adapter is one (task_type SEQ_CLS) and has a head.

    An adapter has no names of classes; those of the base are kept if their number matches.
    """
    row = ROWS.get(family.model_type, SCORE)
    out = next((tensors[name] for name in tensors if head_name(name, family) == f"{row.out}.weight"), None)
    if not is_classifier(adapter.settings) or out is None or not out.shape:
        return source_config
    values = dict(source_config.values) | {"architectures": [f"{family.title.replace(' ', '')}{SUFFIX}"]}
    if len(source_config.inside("id2label").values) != out.shape[0]:
        values = without(values, "id2label", "label2id", "num_labels")
    return Theirs(values, source_config.where, source_config.whole)


def _listed(numbers: set[float]) -> str:
    return " or ".join(f"{number:g}" for number in sorted(numbers))


def _target(name: str, family: Family, bare: Mapping[str, Stored], of: Stored) -> Stored:
    """The base's tensor that a tensor of the adapter changes or replaces."""
    short = _short(name)
    for each in (short.removeprefix(family.prefix), short):
        if each in bare:
            return bare[each]
    raise CheckpointError(
        f"{of.file}: {of.name} belongs to {short}, which the base does not have. It may be the adapter of another model."
    )


def _short(name: str) -> str:
    """A tensor's name without the parts inserted by peft."""
    return strip_wrappers(name).removeprefix(BEFORE).replace(".base_layer.", ".").replace(".modules_to_save.", ".")


def _numbers(settings: Theirs, module: str) -> tuple[int, float]:
    """Rank and alpha of one module: those of the first pattern that matches the end of its name, as in peft."""
    path = module.removeprefix(BEFORE)

    def matching(key: str) -> object:
        for pattern, value in settings.inside(key).values.items():
            if not PATTERN.fullmatch(pattern):
                raise CheckpointError(
                    f"{settings.where}: {key} has the pattern {shown(pattern)}, and only names of modules are read there."
                )
            try:
                if re.match(rf"(.*\.)?({pattern})$", path):
                    return value
            except re.error as error:
                raise CheckpointError(
                    f"{settings.where}: {key} has {shown(pattern)}, which is no pattern ({error})."
                ) from error
        return None

    rank, alpha = matching("rank_pattern"), matching("alpha_pattern")
    rank = settings.int("r", 8) if rank is None else rank
    alpha = settings.float("lora_alpha", 8.0) if alpha is None else alpha
    own = Theirs({"r": rank, "lora_alpha": alpha}, settings.where)
    if own.int("r") < 1:
        raise CheckpointError(f"{settings.where}: r is {own.int('r')}, but a rank is at least 1.")
    return own.int("r"), own.float("lora_alpha")


@dataclass(frozen=True)
class Update:
    """The update of one weight, by the parts of its adapter."""

    module: str
    parts: Mapping[str, Stored]
    rank: int
    alpha: float
    settings: Theirs

    @property
    def is_table(self) -> bool:
        return "lora_embedding_A" in self.parts

    @property
    def scale(self) -> float:
        return self.alpha / (math.sqrt(self.rank) if self.settings.bool("use_rslora", False) else self.rank)

    @property
    def factors(self) -> tuple[Stored, Stored]:
        """A [rank, in] and B [out, rank]."""
        names = ("lora_embedding_A", "lora_embedding_B") if self.is_table else ("lora_A", "lora_B")
        if missing := [name for name in names if name not in self.parts]:
            some = next(iter(self.parts.values()))
            raise CheckpointError(
                f"{some.file} has {some.name} and no {self.module}.{missing[0]}: the adapter is not whole."
            )
        return self.parts[names[0]], self.parts[names[1]]

    def norms(self, file: str, n_out: int) -> Stored | None:
        """The learned row norms of DoRA; None without DoRA."""
        norms, dora = self.parts.get("lora_magnitude_vector"), self.settings.bool("use_dora", False)
        fits = norms is None or (not self.is_table and math.prod(norms.shape) == n_out)
        if dora != (norms is not None) or not fits:
            raise CheckpointError(
                f"{file}: {self.module} {'has lengths' if norms is not None else 'has no lengths'} of DoRA (lora_magnitude_vector) that fit: "
                f"use_dora is {str(dora).lower()}, and {n_out} numbers belong there. DoRA of a table is not supported."
            )
        return norms


def _added(target: Stored, update: Update) -> Stored:
    """A weight of the base with the update added to it."""
    down, up = update.factors
    transposed = update.is_table or update.settings.bool("fan_in_fan_out", False)
    n_in, n_out = (target.shape if transposed else target.shape[::-1]) if len(target.shape) == 2 else (0, 0)
    if down.shape != (update.rank, n_in) or up.shape != (n_out, update.rank):
        raise CheckpointError(
            f"{down.file}: {down.name} {list(down.shape)} and {list(up.shape)} of rank {update.rank} do not make {target.name} {list(target.shape)}"
            f"{'' if transposed else ', nor are the two turned, as fan_in_fan_out would have it'}. It may be the adapter of another model."
        )
    scale, norms = update.scale, update.norms(down.file, n_out)

    def make() -> Tensor:
        base = target.read().float()
        rows = base.t() if transposed else base  # [out, in]
        rows = rows + scale * (up.read().float() @ down.read().float())
        if norms is not None:
            rows = rows * (norms.read().float().flatten() / rows.norm(dim=1))[:, None]
        return (rows.t() if transposed else rows).contiguous()

    return lazy_tensor(target.name, target.file, target.shape, make)
