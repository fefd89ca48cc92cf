"""The calls of bertviz 1.4.1 and CircuitsVis 1.43.3 under their own names: a notebook changes its import and nothing else.

    from headlight.peers import head_view, model_view   # from bertviz
    from headlight.peers.neuron_view import show        # from bertviz.neuron_view
    import headlight.peers as cv                        # import circuitsvis as cv

Every signature is the peer's own. An argument that has no meaning here is named below the picture. docs/from-weights.md has a
table of them.
"""

from . import attention, neuron_view, tokens
from .views import head_view, model_view

__all__ = ["attention", "head_view", "model_view", "neuron_view", "tokens"]
