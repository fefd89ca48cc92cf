"""Drop-in replacements for bertviz 1.4.1 and CircuitsVis 1.43.3: a notebook only changes its import.

    from headlight.peers import head_view, model_view   # from bertviz
    from headlight.peers.neuron_view import show        # from bertviz.neuron_view
    import headlight.peers as cv                        # import circuitsvis as cv

Signatures are those of the original libraries. Arguments without a meaning here are listed below the picture.
docs/from-weights.md has a table of them.
"""

from . import attention, neuron_view, tokens
from .views import head_view, model_view

__all__ = ["attention", "head_view", "model_view", "neuron_view", "tokens"]
