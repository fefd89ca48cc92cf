"""trace(): run a model once on a text and keep what happened, small enough to keep for any length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, partial
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .. import frames, memory
from ..bars import bar
from ..checkpoints import Loaded, ModelSpec
from ..device import dtype_name
from ..edits import Intervention
from ..errors import InterventionError, Refused, TextError
from ..model.chat import Message
from ..model.config import ModelConfig
from ..model.hooks import hook_points
from ..model.text import Tokens
from ..plan.runs import run_bytes
from .attention import AttentionRecord
from .chunks import ChunkRecorder, advice, choose, run_in_chunks
from .classes import Classes, check_class, class_logits, classifier_of
from .forward_pass import Pass, prepare
from .moments import value
from .notebook_picture import one_line, still
from .predictions import Predictions, check_token, checked_positions, head_of, likeliest
from .prompt import Keep, Prompt, Side, chat_sources, notices, read_again, reads_again, source_tokens, target_tokens
from .recorder import (
    HELD_BYTES,
    Attentions,
    NonFinite,
    PositionRecord,
    Recorder,
    Step,
    first_non_finite,
    held_bytes,
    logits_step,
    residual_of,
)
from .wrapped import Wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..read.attribution import Contributions, LensLayer
    from ..sweep.ablations import HeadEffects

LOOKED_AT = 4_000_000  # weights: of a run with more, a still is of its first head


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """One run. Of a batch it is seen from one text: the first until text(i) shows another; nothing is copied.

    run["encoder.blocks.3.attn"] is that attention's record, run["encoder.blocks.3.hook_resid_post"] what passed that hook point.
    """

    loaded: Loaded
    sources: tuple[Tokens, ...]
    targets: tuple[Tokens, ...] | None
    records: tuple[AttentionRecord, ...]
    position_records: tuple[PositionRecord, ...]
    steps: tuple[Step, ...]
    norms: dict[str, Tensor]  # hook point of the residual stream or a sublayer's output -> ‖x‖, [batch, pos]
    last_residual: Callable[[Tensor], Tensor]  # positions [pos] -> [batch, pos, d_model]
    forward: Pass  # what was run, to be run again
    seconds: float
    chosen: int | None = None  # the text that it is seen from; None until text(i) says so
    predicted_bytes: int = 0
    chunks: int = 1  # in how many parts the text was read

    @property
    def interventions(self) -> tuple[Intervention, ...]:
        return self.forward.interventions

    @property
    def config(self) -> ModelConfig:
        return self.loaded.config

    @property
    def spec(self) -> ModelSpec:
        return self.loaded.spec

    @property
    def device(self) -> str:
        return str(self.loaded.device)

    @property
    def dtype(self) -> str:
        return dtype_name(self.loaded.dtype)

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences to read before these numbers are believed: about padding that was read like words."""
        return notices(self.loaded, Prompt(self.sources, self.targets))

    @property
    def texts(self) -> int:
        """How many texts ran together."""
        return len(self.sources)

    @property
    def source(self) -> Tokens:
        return self.sources[self.index]

    @property
    def target(self) -> Tokens | None:
        return None if self.targets is None else self.targets[self.index]

    @property
    def index(self) -> int:
        return self.chosen or 0

    @cached_property
    def attention(self) -> Attentions:
        """In the order of the forward pass; attention.at(layer, site) finds one. Of a batch, records say which text is meant."""
        if self.chosen is None and self.texts > 1:
            return Attentions(self.records)
        return Attentions(record.of(self.index) for record in self.records)

    def __getitem__(self, name: str) -> AttentionRecord | Tensor:
        """An attention by its module path, or the numbers at a hook point as value() gives them. Raises KeyError, with the
        name that may have been meant."""
        found = next((record for record in self.attention if record.name == name), None)
        if found is not None:
            return found
        if name not in (points := hook_points(self.loaded.model)):
            near = get_close_matches(str(name), [*(record.name for record in self.records), *points], 1)
            meant = (
                f"Is {near[0]} meant?"
                if near
                else "run.attention and headlight.hook_points(model) say which there are."
            )
            raise KeyError(f"there is no attention and no hook point {name!r}. {meant}")
        return self.value(name)

    def to_frame(self) -> frames.DataFrame:
        """The steps of the pass, a row each. Needs pandas."""
        return frames.of_records(self.steps, Step)

    def __repr__(self) -> str:
        read = f"{len(self.source)} token{'s' * (len(self.source) != 1)}"
        read += f" and {len(self.target)}" if self.target is not None else ""
        of = "" if self.texts == 1 else f", the first of {self.texts} texts"
        of = of if self.chosen is None else f", text {self.index} of {self.texts}"
        n = len(self.interventions)
        edits = f", {n} edit{'s' * (n > 1)}" if n else ""
        return (
            f"<Trace of {one_line(self.spec.title, 40)}: {read}{of}, {one_line(self.source.text)!r}; {len(self.records)} attentions "
            f"of {self.config.n_heads} heads{edits}; {self.dtype} on {self.device}, {self.seconds * 1000:.0f} ms>"
            + "".join(f"\n{notice}" for notice in self.notices)
        )

    def _repr_html_(self) -> str:
        """A still picture with its table, for a notebook, of the head that show() opens on; all text is escaped."""
        if not self.records:
            return f"<pre>{escape(repr(self))}</pre>"
        at, head = self.opens_on()
        record = self.attention[at]
        queries, keys = self.tokens_of(record)
        return still(repr(self).strip("<>"), record, head, queries.labels, keys.labels)

    def opens_on(self) -> tuple[int, int]:
        """The record and the head that say most of this run; the first of a run too long to look for them, or that is not finite."""
        from ..read.findings import opening_look

        weights = sum(record.n_heads * record.n_query * record.n_key for record in self.records)
        if weights > LOOKED_AT or self.texts > 1 or self.non_finite is not None:
            return 0, 0
        try:
            found = opening_look(self)
        except Refused:  # of a model that was trained since
            return 0, 0
        at = next(
            (
                i
                for i, record in enumerate(self.attention)
                if (record.stack, record.site, record.layer) == (found.stack, found.site, found.layer)
            ),
            0,
        )
        return at, found.head

    def show(
        self,
        layer: int | None = None,
        head: int | None = None,
        query: int | None = None,
        room: str = "explore",
        height: int = 640,
    ) -> Any:
        """The whole screen in a notebook's cell, without a server or a network: docs/notebooks.md. It is drawn where it is the last
        value of a cell, or by display().

        query is a token's position, height in pixels. Left out, the picture opens where there is most to see. With anywidget and a
        kernel what is chosen comes back: view.layer, view.head, view.query, and view.text runs another text. Raises Refused for a
        place or a room that there is not, and where the screens are not installed.
        """
        package = (__package__ or "").partition(".")[0]
        name = "app.notebook" if package == "core" else f"{package}.app.notebook"
        try:
            cell = import_module(f"{name}.cell")
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.cell".startswith(error.name):
                raise
            raise Refused(
                "This installation has no screens to show. Install Headlight with its extra [app], or start Python in its folder."
            ) from None
        return cell.show(self, layer, head, query, room, height)

    def plot(
        self,
        layer: int | None = None,
        head: int | None = None,
        site: str = "attn",
        *,
        sink: bool = True,
        width: float = 3.35,
    ) -> Figure:
        """One head as a figure for a paper: vectors that stay readable in grey, with the fonts in the file: .savefig("head.pdf").

        layer and head None take the head that the screen opens on. site is attn or cross_attn, width in inches; without
        `sink` the token that most heads rest on has no part in the colours. Raises KeyError for a layer, IndexError for a
        head, ImportError without matplotlib.
        """
        from ..read import paper_figures

        return paper_figures.head_figure(self, *paper_figures.chosen(self, layer, head, site), sink, width)

    def plot_heads(self, site: str = "attn", *, sink: bool = True, width: float | None = None) -> Figure:
        """All heads of one kind of attention as a figure for a paper, layers down and heads across, as plot() draws one.

        Raises KeyError for a kind that the model does not have, ImportError without matplotlib.
        """
        from ..read import paper_figures

        return paper_figures.heads_figure(self, paper_figures.alike(self, site), sink, width)

    def plot_row(
        self,
        query: int | None = None,
        layer: int | None = None,
        head: int | None = None,
        site: str = "attn",
        *,
        width: float = 3.35,
    ) -> Figure:
        """Where one token looks, a bar for each key, as a figure for a paper; query None is the last real token.

        Raises KeyError for a layer, IndexError for a head or a query, ImportError without matplotlib.
        """
        from ..read import paper_figures

        return paper_figures.row_figure(self, *paper_figures.chosen(self, layer, head, site), query, width)

    @property
    def positions(self) -> tuple[PositionRecord, ...]:
        """One for each stack."""
        return tuple(replace(record, text=self.index) for record in self.position_records)

    @property
    def resid(self) -> dict[str, Tensor]:
        """‖x‖ of the residual stream and of what each sublayer adds, [pos] by hook point, in the order of the pass."""
        return {name: norms[self.index] for name, norms in self.norms.items()}

    @property
    def non_finite(self) -> NonFinite | None:
        """Where the first NaN or infinity of this text arose; None where all numbers are finite.

        Read from the lengths that every run keeps, so it costs nothing to know. What is no number inside an attention or
        an MLP is met where that adds to the residual stream.
        """
        padding: dict[str, tuple[bool, ...]] = {
            stack: self._tokens_of_stack(stack).padding for stack, _ in self.config.stacks
        }
        return first_non_finite(self.resid, padding)

    def _tokens_of_stack(self, stack: str) -> Tokens:
        return self.source if stack == "encoder" or self.target is None else self.target

    @property
    def nbytes(self) -> int:
        """Bytes that the trace holds beside the model."""
        kept = sum(record.nbytes + held_bytes(record.values) + held_bytes(record.edited_z) for record in self.records)
        norms = {id(t): t.nbytes for t in self.norms.values()}  # one of them may be there under two names
        return kept + sum(norms.values()) + held_bytes(self.last_residual)

    def text(self, index: int) -> Trace:
        """The same run seen from another text of the batch."""
        if not 0 <= index < self.texts:
            raise IndexError(f"text {index} of a batch of {self.texts}")
        return replace(self, chosen=index)

    def tokens_of(self, record: AttentionRecord) -> tuple[Tokens, Tokens]:
        """The tokens of its queries and of its keys: for cross-attention, target and source."""
        if record.stack == "encoder" or self.targets is None:
            return self.sources[record.text], self.sources[record.text]
        queries = self.targets[record.text]
        return queries, self.sources[record.text] if record.site == "cross_attn" else queries

    def predictions(self, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        """The k likeliest words at each position, most likely first; None asks for the last real token.

        Logits are computed for these positions alone. Raises TextError for models without a head.
        """
        head_of(self.loaded)
        chosen = checked_positions(self._last_read, positions)
        self.forward.weights.check()
        x = self.head_input(chosen)
        found = likeliest(self.loaded, x, self._last_read, chosen, k)
        self.forward.weights.check()  # a training may go on beside this
        return found

    def classes(self) -> Classes:
        """The answer of a classifier: a number for each class. Raises TextError for models without a classification head."""
        answers = classifier_of(self.loaded).classes
        self.forward.weights.check()
        logits = self.class_logits()
        found = answers.probabilities(logits)
        chances = None if found is None else tuple(found.tolist())
        return Classes(answers.names, answers.kind, tuple(logits.tolist()), chances)

    def class_logits(self) -> Tensor:
        """The numbers [class] of the classification head, float32. Raises TextError for models without one."""
        prompt = Prompt((self.source,), None if self.target is None else (self.target,))
        return class_logits(self.loaded, self.head_input(range(len(self._last_read)))[None], prompt)[0]

    def head_input(self, positions: Sequence[int] | Tensor) -> Tensor:
        """The head's input at these positions of this text, [pos, d_model]: the last residual stream."""
        return self.last_residual(torch.as_tensor(positions, device=self.loaded.device))[self.index]

    @property
    def _last_read(self) -> Tokens:
        """The tokens whose next words the model predicts."""
        return self.source if self.target is None else self.target

    def value(self, point: str, positions: Sequence[int] | None = None) -> Tensor:
        """The numbers that passed any hook point, for this text: the point's axes without the batch, in the run's dtype.

        positions are tokens of the axis pos, query or key (None: all). core.hook_points(model) has every name. What the run
        holds comes at once; scores and pattern are computed from q and k, in float32; the rest comes from another pass
        that goes no further, with the run's edits. Raises KeyError for a point that the model does not have or that has no
        numbers, IndexError for a position, TooLarge with the bytes needed and free, and Outdated after a training.
        """
        return value(self.forward, self.attention, self.last_residual, point, self.index, positions)

    def logit_lens(self, k: int = 10, positions: Sequence[int] | None = None) -> tuple[LensLayer, ...]:
        """What the last norm and the head would make of the stream before the first layer and after each: the k likeliest
        words at each position (None: the last real token). The last one's are the model's own predictions.

        nostalgebraist 2020. In post order the stream is normed as it comes and there is no last norm. Raises TextError for
        models without a head, IndexError, TooLarge, and Outdated after a training.
        """
        from ..read.attribution import logit_lens

        return logit_lens(self.forward, self.index, checked_positions(self._last_read, positions), k)

    def contributions(self, position: int | None = None, token: int | None = None) -> Contributions:
        """The share of each part in the logit of `token` (None: the likeliest) after `position` (None: the last real token):
        embedding, positions, every head, every MLP, biases, edits. They add up to the logit.

        Direct logit attribution (Elhage et al. 2021): the scale of every norm is as it was in this run, and with it a part's
        number is what it would take from the logit to leave it out of the stream but not out of the norms' scales; what it
        told later layers is in their numbers. In post order every norm that follows is passed through in the same way.
        Raises TextError for models whose head is not linear or that have none, IndexError, and Outdated after a training.
        """
        chosen = checked_positions(self._last_read, None if position is None else [position])
        check_token(self.loaded, token)
        from ..read.attribution import contributions

        return contributions(self.forward, self.index, self._last_read, chosen[0], token)

    def ablate_each(
        self,
        position: int | None = None,
        token: int | None = None,
        watch: Callable[[int, int], object] = lambda done, of: None,
    ) -> HeadEffects:
        """The effect of silencing each head alone on the prediction of `token` (None: the likeliest) after `position` (None: the
        last real token): to its logit, its probability and, as a KL divergence, to all words; for a classifier the same of the
        class `token`. For an encoder that is asked
        about no position, and for a model without a head, to the text's vector: the mean of the last residual stream over
        its tokens, as a cosine distance.

        A batch of the text runs with another head silenced in each row, as many as fit in memory, with the run's other
        edits. `watch` is told after each pass how many heads are done, and of how many; what it raises ends the work. Raises
        IndexError, TextError for numbers that are no token, TooLarge with both numbers, and Outdated after a training.
        """
        sorts = position is None and self.spec.classes is not None and self.spec.classes.kind != "numbers"
        (check_class if sorts else check_token)(self.loaded, token)
        predicts = self.loaded.model.head is not None and (self.config.kind != "encoder" or position is not None)
        if not sorts and (position is not None or token is not None):
            head_of(self.loaded)
            predicts = True
        chosen = checked_positions(self._last_read, None if position is None else [position])[0] if predicts else None
        from ..sweep.ablations import ablate_each

        return ablate_each(self.forward.of(self.index), chosen, token, watch)


def trace(
    loaded: Loaded,
    source: str | Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    *,
    ids: Sequence[int] | None = None,
    target_ids: Sequence[int] | None = None,
    keep: Keep = None,
    target_keep: Keep = None,
    interventions: Iterable[Intervention] = (),
    padding_side: Side = "right",
    watch: Callable[[Trace], object] | None = None,
) -> Trace:
    """Run `loaded` on a text, a list of texts, or token ids, and keep what happened.

    keep and target_keep are the masks that came with ids and target_ids (an attention mask: 1 or True for a real token): what
    they hide is padding, which nothing looks at. Ids that end in padding and come without one are attended to as they are, and
    Trace.notices says so.

    target is what an encoder–decoder's decoder has written so far; without one it has only its start token, or, of a classifier,
    the source once more, one token later. Texts of
    different length are padded, which moves and changes nothing. A text with no room in one go is read in chunks where that
    gives the same (core.run.chunks). Interventions apply in order. `watch` is shown how far the run has come, before its first
    layer and as soon as the pass has left an attention: a trace with the tokens and the attentions so far, and nothing else. Without it
    a bar shows that at a terminal and in a notebook (core.bars).

    Raises TextError (empty, not tokenisable, too long for the model's positions), InterventionError, and TooLarge with the
    bytes needed and free, before anything runs.
    """
    if not isinstance(loaded, Loaded):
        raise TypeError(f"the first argument is a loaded model, as headlight.load(name) gives it, and not {loaded!r}")
    if isinstance(loaded, Wrapped) and loaded.no_text:
        raise TextError(loaded.no_text)
    if not isinstance(interventions, Iterable):
        raise InterventionError(f"Interventions are a list, also where there is one alone: [{interventions!r}].")
    sources = source_tokens(loaded, source, ids, "source", padding_side, keep)
    targets = None
    if loaded.config.kind == "encoder-decoder":
        if target is None and target_ids is None and target_keep is None and reads_again(loaded):
            targets = read_again(loaded, sources)
        else:
            targets = target_tokens(loaded, target, target_ids, len(sources), padding_side, target_keep)
    elif target is not None or target_ids is not None or target_keep is not None:
        raise TextError(f"{loaded.spec.title} takes one text, not a source and a target. Leave the target out.")
    return _watched(loaded, sources, targets, tuple(interventions), watch)


def trace_chat(
    loaded: Loaded,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    answer: str = "",
    interventions: Iterable[Intervention] = (),
    watch: Callable[[Trace], object] | None = None,
) -> Trace:
    """trace() on a conversation, [{"role": "user", "content": "Hello"}], as a chat model reads it: written out by its template.

    With `add_generation_prompt` the text ends where the model's answer begins, and `answer` is what it has answered so far. run.source.roles says whose turn each token is in,
    run.source.from_template which ones no message wrote, and run.source.text is the whole text. The ids are those of
    apply_chat_template in transformers. Raises TextError for a model without a template, messages that it does not take, and a
    template that cannot be rendered; else as trace().
    """
    if not isinstance(loaded, Loaded):
        raise TypeError(f"the first argument is a loaded model, as headlight.load(name) gives it, and not {loaded!r}")
    sources = chat_sources(loaded, [messages], add_generation_prompt=add_generation_prompt, answer=answer)
    return _watched(loaded, sources, None, tuple(interventions), watch)


def _watched(
    loaded: Loaded,
    sources: tuple[Tokens, ...],
    targets: tuple[Tokens, ...] | None,
    interventions: tuple[Intervention, ...],
    watch: Callable[[Trace], object] | None,
) -> Trace:
    """trace_tokens(), with a bar where nothing else watches it."""
    if watch is not None:
        return trace_tokens(loaded, sources, targets, interventions, watch)
    config = loaded.config
    layers = config.n_encoder_layers + config.n_decoder_layers * (1 + (config.kind == "encoder-decoder"))
    n = sum(len(tokens) for tokens in sources)
    what = f"{loaded.spec.title}, {n:,} tokens"
    with bar(unit=" attentions") as tell:
        return trace_tokens(
            loaded, sources, targets, interventions, lambda so_far: tell(len(so_far.records), layers, what)
        )


def trace_tokens(
    loaded: Loaded,
    sources: tuple[Tokens, ...],
    targets: tuple[Tokens, ...] | None,
    interventions: tuple[Intervention, ...],
    watch: Callable[[Trace], object] = lambda _: None,
) -> Trace:
    """trace() for texts that are tokens already, of equal length within each batch."""
    config, device = loaded.config, loaded.device
    prompt = Prompt(sources, targets)
    if isinstance(loaded, Wrapped):
        from .wrapped_trace import run_wrapped  # which builds upon Trace

        return run_wrapped(loaded, prompt, interventions, watch)
    forward = prepare(loaded, prompt, interventions)
    predicted = partial(run_bytes, config, forward.workload, edited_rules=forward.edited_rules)
    z_bytes = sum(attention_bytes(prompt, loaded) for name in forward.edited if name.endswith(".hook_z"))
    last = prompt.batch * len(prompt.last_read[0]) * config.d_model * loaded.dtype.itemsize
    hold = predicted().values + z_bytes + last <= HELD_BYTES
    needed = predicted(keep_values=hold, spelled_out=bool(forward.is_eager))
    kept_edits = (z_bytes if hold else 0) + (last if "decoder.embed.hook_position" in forward.edited else 0)
    needed_bytes = needed.captured + needed.transient + kept_edits
    size = f"{prompt.source_len:,} tokens" + (f" and {prompt.target_len:,}" if targets is not None else "")
    free = memory.free_bytes(device)  # asked once: it reads a dozen files
    cut = choose(forward, hold, needed_bytes, kept_edits, free)
    needed_bytes = needed_bytes if cut is None else cut.needed
    memory.admit(needed_bytes, free, f"A run on {size}", advice(forward))
    chunks = 1 if cut is None else -(-prompt.source_len // cut.rows)

    def show(so_far: tuple[AttentionRecord, ...]) -> None:
        watch(Trace(loaded, sources, targets, so_far, (), (), {}, not_yet, forward, seconds=0, chunks=chunks))

    recorder = (Recorder if cut is None else ChunkRecorder)(forward, hold_values=hold, on_attention=show)
    show(())
    start = time.perf_counter()
    if isinstance(recorder, ChunkRecorder) and cut is not None:
        last_residual = run_in_chunks(forward, recorder, cut)
    else:
        again = partial(forward.again, f"{config.stacks[-1][0]}.hook_final")
        last_residual = residual_of(forward.run(recorder.hooks()), again, prompt.last_read, hold)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    forward.weights.check()  # a training that changed them meanwhile would have made this a run of no model
    return Trace(
        loaded,
        sources,
        targets,
        tuple(recorder.records),
        recorder.position_records(),
        (*recorder.steps, *logits_step(loaded, len(sources))),
        recorder.norms,
        last_residual,
        forward,
        seconds,
        predicted_bytes=needed_bytes,
        chunks=chunks,
    )


def attention_bytes(prompt: Prompt, loaded: Loaded) -> int:
    """Of one attention's q, or z, over the longer of the texts."""
    n = max(prompt.source_len, prompt.target_len)
    return prompt.batch * n * loaded.config.n_heads * loaded.config.d_head * loaded.dtype.itemsize


def not_yet(_: Tensor) -> Tensor:
    """The last residual stream of a run that has not ended yet. Raises RuntimeError."""
    raise RuntimeError("The pass has not come to its end yet.")
