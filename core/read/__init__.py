"""What can be read from a run: measures and roles of heads, attributions, comparisons, walks through a layer, a page about it."""
