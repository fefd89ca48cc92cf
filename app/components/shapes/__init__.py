"""The Shapes view's browser component, and what is drawn in it."""
