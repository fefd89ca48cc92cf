"""Words that every export may carry."""

EXPORT_HIDDEN_CELL = "hidden"
ALT = "{sentence} {note}"
