"""What a graphics card is to prove, in one command: parity, the price of a trace, tiles, predicted memory, what fits and written tokens.

    python -m benchmarks.card [--json card.json] [--minutes 8] [--only parity memory]

On a CUDA card it measures everything within eight minutes. Without one it runs a short form on the processor, which shows that
the command works, and says which rows it left out. Parity with the published implementations and the tokens beside theirs need
transformers, a development dependency; without it our eager attention is compared with our fused one alone.
"""
