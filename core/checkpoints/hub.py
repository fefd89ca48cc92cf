"""Downloads from the Hugging Face Hub into its own cache, with progress in bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import CheckpointError, missing_extra
from . import weight_transforms
from .catalog import ModelSpec
from .diagnose import (
    HUB_NAME,
    TOKENIZERS,
    Contents,
    missing_shards,
    of_hub,
    without_base,
    without_config,
    without_weights,
)
from .family import SourceConfig, text_backbone
from .files import WEIGHTS, Progress, read_json, shard_names, weight_file, weight_file_of
from .loading import family_of

try:
    from huggingface_hub import HfApi, constants, errors, hf_hub_download, snapshot_download
except ModuleNotFoundError as error:
    raise CheckpointError(missing_extra("A model of the Hub", "huggingface_hub", "hub")) from error


SMALL = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "special_tokens_map.json",
    "added_tokens.json",
    "adapter_config.json",
)
VOCABULARIES = (  # the first complete set is downloaded; some of the last are not supported, but can be named in an error
    ("tokenizer.json",),
    ("vocab.txt",),
    ("vocab.json", "merges.txt"),
    ("source.spm", "target.spm", "vocab.json"),
    *((name,) for name in TOKENIZERS if name not in ("vocab.txt", "vocab.json", "merges.txt")),
)
ADAPTER = (weight_transforms.CONFIG, weight_transforms.WEIGHTS)
# The client's error for failed connections, of httpx2, httpx or requests, depending on its version
HTTPError: type[Exception] = next(kind for kind in errors.HfHubHTTPError.__mro__ if kind.__name__ == "HTTPError")
TIMEOUT_SECONDS = 10.0  # for the Hub's first response


def fetch(spec: ModelSpec, progress: Progress | None = None) -> Path:
    """Download the missing files of a Hub repository and return their folder in the cache, named by the commit.

    For an adapter the base model in adapter_config.json is downloaded as well. Without a connection, an earlier download is used. Raises
    CheckpointError for a missing repository, revision or file, and for a lack of access, connection or disk space.
    """
    return _or_cached(spec, lambda: _download(spec, progress))


def _or_cached(spec: ModelSpec, download: Callable[[], Path]) -> Path:
    """The folder of a download, or of an earlier one if there is no connection."""
    try:
        return download()
    except CheckpointError:
        raise
    except (HTTPError, OSError, errors.HFValidationError) as error:
        if sentence := _refusal(spec, error):
            raise CheckpointError(sentence) from error
        return _cached(spec, error)


def fetch_config(spec: ModelSpec) -> Path:
    """Download only config.json of a repository; without a connection, use an earlier download. Raises CheckpointError like fetch()."""
    try:
        return Path(hf_hub_download(spec.location, "config.json", revision=spec.revision, etag_timeout=TIMEOUT_SECONDS))
    except (HTTPError, OSError, errors.HFValidationError) as error:
        if isinstance(error, errors.EntryNotFoundError) and not isinstance(error, errors.LocalEntryNotFoundError):
            sentence: str | None = (
                f"{spec.location} on the Hub has no config.json, from which a model could be planned."
            )
        else:
            sentence = _refusal(spec, error)
        raise CheckpointError(
            sentence
            or f"The Hub cannot be reached, and the config.json of {spec.location} was not downloaded before "
            f"({type(error).__name__}). Check the connection, or give a config.json that is already here."
        ) from error


class _Repository:
    """Files of a repository with their sizes. All are downloaded from one commit, that of the first file."""

    def __init__(self, spec: ModelSpec):
        info = HfApi().model_info(spec.location, revision=spec.revision, timeout=TIMEOUT_SECONDS, files_metadata=True)
        self.name, self.commit = spec.location, spec.revision
        self.sizes = {entry.rfilename: entry.size or 0 for entry in info.siblings or ()}
        self.found = of_hub(spec.location, self.sizes, self.get)

    def get(self, name: str, bar: type | None = None) -> Path:
        return Path(
            hf_hub_download(self.name, name, revision=self.commit, etag_timeout=TIMEOUT_SECONDS, tqdm_class=bar)
        )

    def first(self, name: str) -> Path:
        """Download a file by the name of the revision, so that the cache knows the revision without a connection."""
        path = self.get(name)
        self.commit = path.parent.name
        return path

    @property
    def is_adapter(self) -> bool:
        return all(name in self.sizes for name in ADAPTER) and weight_file(self.found.names) is None

    def fetch(self, wanted: list[str], progress: Progress | None) -> None:
        total = sum(self.sizes[name] for name in wanted)
        _check_room(total)
        done = 0
        for name in wanted:
            self.get(name, _bar(name, done, total, progress))
            done += self.sizes[name]
            if progress is not None:
                progress(name, done, total)


def _download(spec: ModelSpec, progress: Progress | None) -> Path:
    repository = _Repository(spec)
    return _adapter(repository, progress) if repository.is_adapter else _model(repository, progress)


def _model(repository: _Repository, progress: Progress | None) -> Path:
    """Download a model."""
    found, sizes = repository.found, repository.sizes
    if "config.json" not in sizes:
        raise CheckpointError(without_config(found))
    config = repository.first("config.json")
    # Reject unsupported models before downloading their weights.
    family_of(text_backbone(SourceConfig(read_json(config))), repository.name)
    repository.fetch([*present(SMALL, sizes), *vocabulary(sizes), *weights(found, repository.get)], progress)
    return config.parent


def _adapter(repository: _Repository, progress: Progress | None) -> Path:
    """Download an adapter, after its base model."""
    config = repository.first(weight_transforms.CONFIG)
    settings = SourceConfig(read_json(config), weight_transforms.CONFIG)
    if not weight_transforms.is_lora(settings):
        raise CheckpointError(without_config(repository.found))
    base = settings.str("base_model_name_or_path", "")
    if not HUB_NAME.fullmatch(base) or "--" in base or ".." in base:
        raise CheckpointError(without_base(repository.found))
    spec = ModelSpec(id=base, title=base, source="hub", location=base)
    try:
        _or_cached(spec, lambda: _model(_Repository(spec), progress))
    except CheckpointError as error:
        raise CheckpointError(f"{repository.name} is an adapter of {base}, which does not open. {error}") from error
    sizes = repository.sizes
    repository.fetch([*present(SMALL, sizes), *vocabulary(sizes), weight_transforms.WEIGHTS], progress)
    return config.parent


def present(names: Iterable[str], sizes: dict[str, int]) -> list[str]:
    return [name for name in names if name in sizes]


def vocabulary(sizes: dict[str, int]) -> list[str]:
    """Files of the preferred tokenizer; empty if there is none, because token numbers still work."""
    return next((list(names) for names in VOCABULARIES if all(name in sizes for name in names)), [])


def weights(found: Contents, get: Callable[[str], Path]) -> list[str]:
    """One safetensors file, or an index and its shards."""
    name = weight_file(found.names)
    if name is None:
        raise CheckpointError(without_weights(found))
    if not name.endswith(".json"):
        return [name]
    shards = shard_names(read_json(get(name)), name)
    if missing := [shard for shard in shards if shard not in found.names]:
        raise CheckpointError(missing_shards(found, missing, shards, name))
    return [name, *shards]


def _bar(name: str, done: int, total: int, progress: Progress | None) -> type:
    """A class with the tqdm methods that the Hub's client calls, which reports bytes to `progress`."""

    class Bar:
        def __init__(self, *_: Any, initial: int = 0, **settings: Any):
            self.n, self.total = initial, settings.get("total")

        def update(self, n: float | None = 1) -> None:
            self.n += int(n or 0)
            if progress is not None:
                progress(name, min(total, done + self.n), total)

        def ignore(self, *_: Any, **__: Any) -> None:
            """Does nothing."""

        # If update_transfer exists, the client reports each byte once with every kind of download.
        update_transfer = set_postfix_str = set_transfer_postfix_str = refresh = close = ignore

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None:
            return None

    return Bar


def _check_room(needed: int) -> None:
    folder = Path(constants.HF_HUB_CACHE)
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise CheckpointError(
            f"The files take {needed / 1e9:.1f} GB, but the disk that keeps downloads has {free / 1e9:.1f} GB left. "
            "Choose a smaller model, or make room."
        )


def _refusal(spec: ModelSpec, error: Exception) -> str | None:
    """Message for an error that the cache cannot solve; None for a failed connection."""
    place = f"{spec.location} on the Hub"
    if isinstance(error, errors.GatedRepoError):
        return f"{place} is only for people who have agreed to its terms. Agree on its page, then log in with `hf auth login`."
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"There is no {place}, or it is private. Check the spelling: owner/name, as in openai-community/gpt2."
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{place} has no revision {spec.revision!r}. Give a branch, a tag or a commit, or none for the newest."
    if isinstance(error, errors.DisabledRepoError):
        return f"{place} has been switched off by the Hub. Choose another model."
    if isinstance(error, errors.EntryNotFoundError) and not isinstance(error, errors.LocalEntryNotFoundError):
        return f"{place} lost a file while it was being downloaded. Try again."
    if isinstance(error, errors.HFValidationError):
        return f"{spec.location!r} is not a name that the Hub allows. Check the spelling: owner/name, as in openai-community/gpt2."
    if (
        isinstance(error, errors.HfHubHTTPError)
        and error.response is not None
        and error.response.status_code in (401, 403, 429)
    ):
        refused = (
            "answers too many questions at the moment" if error.response.status_code == 429 else "does not let you in"
        )
        return f"The Hub {refused} (HTTP {error.response.status_code}) at {spec.location}. Try again later, or log in with `hf auth login`."
    return None


def cached(repository: str) -> Path | None:
    """Folder of a model downloaded earlier; None if there is none. Makes no request."""
    try:
        folder = _cached(ModelSpec(id=repository, title=repository, source="hub", location=repository), OSError())
    except CheckpointError:
        return None
    return folder if _is_model(folder) else None


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() and weight_file_of(folder) is not None


def _cached(spec: ModelSpec, error: Exception) -> Path:
    """Folder of an earlier download."""
    names = [*SMALL, *(name for names in VOCABULARIES for name in names), *WEIGHTS, "*.safetensors"]
    try:
        folder = Path(
            snapshot_download(spec.location, revision=spec.revision, local_files_only=True, allow_patterns=names)
        )
    except (OSError, ValueError):
        folder = None
    if folder is None or not (_is_model(folder) or all((folder / name).is_file() for name in ADAPTER)):
        raise CheckpointError(
            f"The Hub cannot be reached, and {spec.location} is not among the models downloaded before "
            f"({type(error).__name__}). Check the connection, or choose a model that is already here."
        ) from error
    return folder
