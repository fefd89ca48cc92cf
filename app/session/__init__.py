"""Between a visitor and core: the engine, requests and answers, links, the models that are offered, examples."""
