"""Writing: sampling and beams with a KV cache, and a text as it grows."""
