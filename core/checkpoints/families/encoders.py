"""Encoders: BERT and those that came of it. Post-norm blocks, learned positions, a head that fills in masked words."""

from ..family import Family, activation, number, whole

_BERT_BLOCK = {
    "encoder.embed.token": "embeddings.word_embeddings",
    "encoder.embed.position": "embeddings.position_embeddings",
    "encoder.embed.token_type": "embeddings.token_type_embeddings",
    "encoder.embed.norm": "embeddings.LayerNorm",
    "encoder.blocks.{i}.attn.q": "encoder.layer.{i}.attention.self.query",
    "encoder.blocks.{i}.attn.k": "encoder.layer.{i}.attention.self.key",
    "encoder.blocks.{i}.attn.v": "encoder.layer.{i}.attention.self.value",
    "encoder.blocks.{i}.attn.o": "encoder.layer.{i}.attention.output.dense",
    "encoder.blocks.{i}.attn_norm": "encoder.layer.{i}.attention.output.LayerNorm",
    "encoder.blocks.{i}.mlp.up": "encoder.layer.{i}.intermediate.dense",
    "encoder.blocks.{i}.mlp.down": "encoder.layer.{i}.output.dense",
    "encoder.blocks.{i}.mlp_norm": "encoder.layer.{i}.output.LayerNorm",
}
_BERT_FIELDS = {
    "vocab_size": whole("vocab_size"),
    "d_model": whole("hidden_size"),
    "n_heads": whole("num_attention_heads"),
    "d_ff": whole("intermediate_size"),
    "n_encoder_layers": whole("num_hidden_layers"),
    "n_ctx": whole("max_position_embeddings"),
    "n_token_types": whole("type_vocab_size"),
    "norm_eps": number("layer_norm_eps", 1e-12),
    "activation": activation("hidden_act"),
}
_BERT_FIXED = {"norm_order": "post", "final_norm": False, "embed_norm": True, "head_bias": True}
_BERT_REQUIRES = {
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
}

BERT = Family(  # and MiniLM, which is a small BERT without its head
    model_type="bert",
    title="BERT",
    prefix="bert.",
    head="mlm",
    fields=_BERT_FIELDS,
    fixed=_BERT_FIXED,
    requires=_BERT_REQUIRES,
    weights=_BERT_BLOCK
    | {
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.unembed.weight": "cls.predictions.decoder.weight",
        "head.unembed.bias": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    },
)

ROBERTA = Family(
    model_type="roberta",
    title="RoBERTa",
    prefix="roberta.",
    head="mlm",
    # The table's first rows, up to the padding id, belong to padding, and positions count what is not padding (fairseq).
    fields=_BERT_FIELDS
    | {
        "position_offset": lambda c: c.int("pad_token_id", 1) + 1,
        "n_ctx": lambda c: c.int("max_position_embeddings") - c.int("pad_token_id", 1) - 1,
    },
    fixed=_BERT_FIXED | {"position_counts": "not_padding"},
    requires=_BERT_REQUIRES | {"hidden_act": ("gelu",)},  # its head is always gelu, whatever the layers are
    weights=_BERT_BLOCK
    | {
        "head.dense": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
        "head.unembed.weight": "lm_head.decoder.weight",
        "head.unembed.bias": ("lm_head.bias", "lm_head.decoder.bias"),
    },
)

DISTILBERT = Family(
    model_type="distilbert",
    title="DistilBERT",
    prefix="distilbert.",
    head="mlm",
    fields={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("dim"),
        "n_heads": whole("n_heads"),
        "d_ff": whole("hidden_dim"),
        "n_encoder_layers": whole("n_layers"),
        "n_ctx": whole("max_position_embeddings"),
        "activation": activation("activation"),
    },
    fixed=_BERT_FIXED | {"norm_eps": 1e-12},
    requires={"tie_word_embeddings": (True,)},
    weights={
        "encoder.embed.token": "embeddings.word_embeddings",
        "encoder.embed.position": "embeddings.position_embeddings",
        "encoder.embed.norm": "embeddings.LayerNorm",
        "encoder.blocks.{i}.attn.q": "transformer.layer.{i}.attention.q_lin",
        "encoder.blocks.{i}.attn.k": "transformer.layer.{i}.attention.k_lin",
        "encoder.blocks.{i}.attn.v": "transformer.layer.{i}.attention.v_lin",
        "encoder.blocks.{i}.attn.o": "transformer.layer.{i}.attention.out_lin",
        "encoder.blocks.{i}.attn_norm": "transformer.layer.{i}.sa_layer_norm",
        "encoder.blocks.{i}.mlp.up": "transformer.layer.{i}.ffn.lin1",
        "encoder.blocks.{i}.mlp.down": "transformer.layer.{i}.ffn.lin2",
        "encoder.blocks.{i}.mlp_norm": "transformer.layer.{i}.output_layer_norm",
        "head.dense": "vocab_transform",
        "head.norm": "vocab_layer_norm",
        "head.unembed": "vocab_projector",
    },
)

ENCODERS = (BERT, ROBERTA, DISTILBERT)
