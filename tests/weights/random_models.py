"""Checkpoints of tiny random encoders."""

from pathlib import Path

import torch
import transformers

LIMIT = 66
SHIFTED = ("Roberta", "XLMRoberta", "Camembert")


def save_encoder(kind: str, tokenizer, folder: Path, **config) -> Path:
    """Save a random base model of 3 layers and 4 heads that takes ``LIMIT`` tokens."""
    special = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
        for name in ("pad", "bos", "eos", "cls", "sep")
    }
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
        # RoBERTa and its kin count positions from behind the padding index.
        max_position_embeddings=LIMIT + (tokenizer.pad_token_id + 1) * (kind in SHIFTED),
        **special,
        **config,
    )
    save_random(getattr(transformers, f"{kind}Model"), config, folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_random(model_class, config, folder: Path) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = model_class(config)
        for parameter in model.parameters():
            parameter.data.add_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
