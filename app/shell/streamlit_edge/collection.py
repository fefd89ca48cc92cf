"""What is loaded for good is kept out of the collection of garbage that Streamlit runs after every script."""

import gc


def keep_out() -> None:
    """Collect now, and freeze whatever is left: torch, the figures, the model.

    Streamlit calls gc.collect(2) at the end of each run of a script, holding everybody up. Without this a run of the script costs
    some thirty times as much; with Streamlit's hidden option against it (runner.postScriptGC) the server grows instead.
    """
    gc.collect()
    gc.freeze()
