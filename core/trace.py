"""Trace: a recorded run with its figures, attribution, ablation and notebook screen; and the functions that return one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from html import escape
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from .errors import HeadlightError
from .patching import edited_runs
from .patching.edited_runs import HeadEffects
from .read import attribution, report
from .read.attribution import Contributions, LensLayer
from .read.findings import opening_head
from .run import from_attentions as weights
from .run import trace as runs
from .run.foreign import ForeignRecord
from .run.from_attentions import AttentionsRecord
from .run.predictions import check_class, check_token, checked_positions, head_of
from .run.trace_record import TraceRecord, still
from .run.wrapped_trace import WrappedRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T", bound="Trace")

DEPRECATED = {  # names of 0.2, which warn and are removed after one release
    "value": "activation",
    "contributions": "logit_attribution",
    "ablate_each": "ablate_heads",
    "opens_on": "opening_head",
    "plot_row": "plot_query",
    "head_input": "final_residual",
    "resid": "residual_norms",
    "notices": "warnings",
}


class Trace(TraceRecord):
    """One run of a model, viewed from one text of the batch: the first, or the one selected with text(i), which does
    not copy.

    run["encoder.blocks.3.attn"] is the record of that attention; run["encoder.blocks.3.hook_resid_post"] is the
    activation at that hook point.
    """

    if not TYPE_CHECKING:  # a type checker reports an old name as unknown

        def __getattr__(self, name: str) -> Any:
            """The attribute that an old name stands for."""
            if (new := DEPRECATED.get(name)) is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warnings.warn(f"Trace.{name} is now Trace.{new}.", DeprecationWarning, stacklevel=2)
            return getattr(self, new)

    def _repr_html_(self) -> str:
        """A static picture and table of the opening head, for notebooks. All text is escaped."""
        if not self.records:
            return f"<pre>{escape(repr(self))}</pre>"
        at, head = self.opening_head()
        record = self.attention[at]
        queries, keys = self.tokens_of(record)
        return still(repr(self).strip("<>"), record, head, queries.labels, keys.labels)

    def opening_head(self) -> tuple[int, int]:
        """(record index, head) of the most informative head; (0, 0) if the run is too large to search or not finite."""
        return opening_head(self)

    def show(
        self,
        layer: int | None = None,
        head: int | None = None,
        query: int | None = None,
        room: str = "explore",
        height: int = 640,
    ) -> Any:
        """Show the interactive screen in a notebook cell, without a server or network access. See docs/notebooks.md.

        Return it as the last value of a cell, or call display(). `query` is a token position and `height` is in pixels;
        places left out open on the most informative head and token. With anywidget and a running kernel the selection
        is available as view.layer, view.head and view.query, and assigning view.text runs another text. Raises Refused
        for an invalid place or room, or if the [app] extra is not installed.
        """
        package = (__package__ or "").partition(".")[0]
        name = "app.notebook" if package == "core" else f"{package}.app.notebook"
        try:
            cell = import_module(f"{name}.cell")
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.cell".startswith(error.name):
                raise
            raise HeadlightError(
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
        """Attention map of one head as a vector figure with embedded fonts: run.plot(3, 1).savefig("head.pdf").

        Without `layer` and `head` it plots the head that the screen opens on. `site` is "attn" or "cross_attn", `width`
        is in inches, and sink=False leaves the attention sink out of the colour scale. Raises KeyError for a layer,
        IndexError for a head, and ImportError without matplotlib.
        """
        return report.head_figure(self, *report.resolve_head(self, layer, head, site), sink, width)

    def plot_heads(self, site: str = "attn", *, sink: bool = True, width: float | None = None) -> Figure:
        """Attention maps of all heads of one site as a vector figure, layers down and heads across. See plot().

        Raises KeyError for a site that the model does not have, and ImportError without matplotlib.
        """
        return report.heads_figure(self, report.records_of_site(self, site), sink, width)

    def plot_query(
        self,
        query: int | None = None,
        layer: int | None = None,
        head: int | None = None,
        site: str = "attn",
        *,
        width: float = 3.35,
    ) -> Figure:
        """Attention of one query token as a vector bar chart, one bar per key. query=None is the last token that is not
        padding.

        Raises KeyError for a layer, IndexError for a head or query, and ImportError without matplotlib.
        """
        return report.row_figure(self, *report.resolve_head(self, layer, head, site), query, width)

    def logit_lens(self, k: int = 10, positions: Sequence[int] | None = None) -> tuple[LensLayer, ...]:
        """Logit lens (nostalgebraist 2020): the k most likely tokens after the embedding and after every layer.

        The final norm and the LM head are applied to the residual stream at each position (None: the last token that is
        not padding). The last row is the model's own prediction. Post-norm models have no final norm, because their
        residual stream is already normalised. Raises TextError for models without an LM head, IndexError, TooLarge, and
        Outdated if the model was trained since.
        """
        self.require_model("the residual stream between layers, which the logit lens reads,")
        chosen = checked_positions(self.predicting_tokens, positions)
        return attribution.logit_lens(self.forward, self.index, chosen, k)

    def logit_attribution(self, position: int | None = None, token: int | None = None) -> Contributions:
        """Direct logit attribution (Elhage et al. 2021) of the logit of `token` after `position`.

        Returns the contribution of every component: embedding, positions, each head, each MLP, biases and edits. They
        sum to the logit. The scale of every norm is frozen at its value in this run. A component's contribution is
        direct only: its effect on later layers is attributed to those layers. In post-norm models, every later norm is
        frozen in the same way. None means the most likely token, and the last position that is not padding. Raises
        TextError for models without a linear LM head, IndexError, and Outdated if the model was trained since.
        """
        self.require_model("what each part adds to a logit")
        (chosen,) = checked_positions(self.predicting_tokens, None if position is None else [position])
        check_token(self.loaded, token)
        return attribution.contributions(self.forward, self.index, self.predicting_tokens, chosen, token)

    def ablate_heads(
        self,
        position: int | None = None,
        token: int | None = None,
        watch: Callable[[int, int], object] = lambda done, of: None,
    ) -> HeadEffects:
        """Zero-ablate each head separately and measure the effect on the prediction of `token` after `position`.

        The effect is the change in logit, probability and KL divergence over the vocabulary; for a classifier, of the
        class `token`. For an encoder without `position`, and for models without an LM head, it is the cosine distance
        of the text's vector: the mean of the final residual stream over its tokens. None means the most likely token,
        and the last position that is not padding.

        Heads are ablated in batches, one per row, as many as fit in memory, on top of the edits of this run. `watch` is
        called with (heads done, heads in total) after each batch; an exception it raises stops the work. Raises
        IndexError, TextError for an invalid token id, TooLarge, and Outdated if the model was trained since.
        """
        self.require_model("the effect of every head, which takes further runs of the model,")
        sorts = position is None and self.spec.classes is not None and self.spec.classes.kind != "numbers"
        (check_class if sorts else check_token)(self.loaded, token)
        predicts = self.loaded.model.head is not None and (self.config.kind != "encoder" or position is not None)
        if not sorts and (position is not None or token is not None):
            head_of(self.loaded)
            predicts = True
        at = None
        if predicts:
            (at,) = checked_positions(self.predicting_tokens, None if position is None else [position])
        return edited_runs.ablate_each(self.forward.of(self.index), at, token, watch)


class WrappedTrace(WrappedRecord, Trace):
    """Run of a wrapped model (headlight.wrap). run.cannot lists what is not known of it; asking for that raises Refused."""


class AttentionsTrace(AttentionsRecord, Trace):
    """Run made of existing attention weights: maps, measures, names of heads, findings, comparison and exports.

    run.cannot lists what is not known of it; asking for that raises Refused.
    """


def as_trace(run: TraceRecord) -> Trace:
    """The same run with the methods of Trace. Tensors are shared, not copied."""
    if isinstance(run, Trace):
        return run
    kind = Trace
    if isinstance(run, ForeignRecord):
        kind = WrappedTrace if isinstance(run, WrappedRecord) else AttentionsTrace
    return kind(**{field.name: getattr(run, field.name) for field in fields(run)})


def _returning(kind: type[T], run: Callable[P, TraceRecord]) -> Callable[P, T]:
    """`run` with the same parameters, returning a Trace; a callback `watch` receives one as well."""

    parameters = signature(run)

    @wraps(run)
    def traced(*args: P.args, **options: P.kwargs) -> T:
        call = parameters.bind(*args, **options)
        if watch := call.arguments.get("watch"):
            call.arguments["watch"] = lambda so_far: watch(as_trace(so_far))
        return cast(T, as_trace(run(*call.args, **call.kwargs)))

    traced.__module__ = __name__
    traced.__signature__ = parameters.replace(return_annotation=kind.__name__)  # type: ignore[attr-defined]
    return traced


trace = _returning(Trace, runs.trace)
trace_chat = _returning(Trace, runs.trace_chat)
trace_tokens = _returning(Trace, runs.trace_tokens)
from_attentions = _returning(AttentionsTrace, weights.from_attentions)
from_cache = _returning(AttentionsTrace, weights.from_cache)
