"""Tiny random models of several architectures, each with a tokenizer as its kin have them."""

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, RobertaTokenizer

from .conftest import TEXT

LIMIT = 64
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": LIMIT,
}
KINDS = {
    "bert": SMALL,
    # It counts positions from behind the padding index, 1.
    "roberta": SMALL | {"type_vocab_size": 1, "max_position_embeddings": LIMIT + 2},
    "electra": SMALL | {"embedding_size": 16},
    "modernbert": SMALL | {"local_attention": 8, "global_attn_every_n_layers": 2},
}


def save_tiny_model(kind: str, wordpieces: Path, folder: Path) -> Path:
    """Save a base model without heads, whose scores differ from pair to pair.

    Args:
        kind: one of `KINDS`.
        wordpieces: a checkpoint whose tokenizer is BERT's.
        folder: where to write.
    """
    if kind == "roberta":
        tokenizer = RobertaTokenizer().train_new_from_iterator([TEXT] * 20, 400)
    else:
        tokenizer = AutoTokenizer.from_pretrained(wordpieces)
    if kind == "modernbert":
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    special = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
        for name in ("pad", "bos", "eos", "cls", "sep")
    }
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **special, **KINDS[kind])
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = AutoModel.from_config(config)
        for weight in model.parameters():
            weight.data.add_(torch.randn_like(weight) * 0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
