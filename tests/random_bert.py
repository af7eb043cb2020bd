"""A tiny random BERT reranker, with all pieces of a vocabulary or with few of them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification


def save_random_bert(words: str | Path, folder: Path, text: str | None = None) -> None:
    """Save it with hidden 32, 2 layers, 2 heads and one logit.

    Args:
        words: a folder with a tokenizer of word pieces.
        folder: where to write.
        text: given, only the first 4000 pieces, those of one letter and those of the text are kept.
    """
    tokenizer = AutoTokenizer.from_pretrained(words)
    if text is not None:
        tokenizer.save_pretrained(folder)
        file = folder / "tokenizer.json"
        read = json.loads(file.read_text("utf-8"))
        pieces = read["model"]["vocab"]
        kept = [p for p, id in pieces.items() if id < 4000 or len(p.removeprefix("##")) == 1]
        kept = dict.fromkeys([*sorted(kept, key=pieces.get), *tokenizer.tokenize(text)])
        read["model"]["vocab"] = {piece: id for id, piece in enumerate(kept)}
        file.write_text(json.dumps(read), "utf-8")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        assert len(tokenizer) == len(kept)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
