"""Names in a link, which the page's address has as well. No session is needed for them, as in a notebook."""

EDITS = "with"  # the edits of the run, as core.edits writes them
AS, CHAT = "as", "chat"  # as=chat is a text that a chat model reads as a conversation
# Names of the run. With a value, a name belongs to the run only where it has that one: Shapes has an `as` of its own.
OF_THE_RUN = {"model": None, "text": None, AS: CHAT, "target": None, "step": None, EDITS: None}
HEAD = ("site", "layer", "head")  # the attention head, which is one choice
TOKENS = ("query", "key", "hide")  # positions in the text
PINNED = "pinned"  # pinned=true keeps the head when the text changes
SHARED = (*HEAD, *TOKENS, PINNED)  # mean the same in every room that has them
RULE = "rule"  # the names that a rule chose
WAS = "was"  # the key of the run that the rest was chosen on, where that is not the run of the link
