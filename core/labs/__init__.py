"""Small experiments for lessons: masks, positions, sizes and worked examples. Only the app and notebooks import them."""
