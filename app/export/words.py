"""Words that every export may carry."""

EXPORT_HIDDEN_CELL = "hidden"
ALT = "{sentence} {note}"
NO_SCRIPT = "This page draws itself with the script that is in it. Allow scripts to see it."
