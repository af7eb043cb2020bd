"""Tiny random rerankers of several architectures, with real or freshly trained tokenizers."""

from pathlib import Path

import pytest
import torch
import transformers
from transformers import AutoTokenizer, RobertaTokenizer

TEXTS = ["information retrieval ranks documents", "hyperlinks of a wiki", "שלום 😀 été"]
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
    "num_labels": 1,
}
DISTILBERT_SIZES = {
    "dim": 32,
    "n_layers": 2,
    "n_heads": 2,
    "hidden_dim": 64,
    "max_position_embeddings": 66,
    "num_labels": 1,
}


def save_reranker(name: str, tokenizer, folder: Path, **config) -> Path:
    """Save a random ``<name>ForSequenceClassification`` whose weights are large enough to tell."""
    config_class = getattr(transformers, f"{name}Config")
    model_class = getattr(transformers, f"{name}ForSequenceClassification")
    special = {
        f"{kind}_token_id": getattr(tokenizer, f"{kind}_token_id")
        for kind in ("pad", "bos", "eos", "cls", "sep")
    }
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = model_class(config_class(vocab_size=len(tokenizer), **special, **config))
        for parameter in model.parameters():
            parameter.data.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_bert(bert_of_few_words):
    return bert_of_few_words


@pytest.fixture(scope="session")
def wordpiece(tiny_bert):
    return AutoTokenizer.from_pretrained(tiny_bert)


@pytest.fixture(scope="session")
def byte_level():
    return RobertaTokenizer().train_new_from_iterator(TEXTS * 20, 400)


@pytest.fixture(scope="session", params=["Bert", "Electra", "DistilBert", "Roberta", "ModernBert"])
def reranker(request, tmp_path_factory, tiny_bert, byte_level) -> Path:
    """A checkpoint folder, one per architecture; all take at least 64 tokens."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "Roberta":
        return save_reranker("Roberta", byte_level, folder, **SIZES)
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    if request.param in ("DistilBert", "ModernBert"):
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    sizes = DISTILBERT_SIZES if request.param == "DistilBert" else SIZES
    return save_reranker(request.param, tokenizer, folder, **sizes)


@pytest.fixture(scope="session")
def telling_bert(tmp_path_factory, wordpiece) -> Path:
    """A tiny BERT (at most 66 tokens) whose scores differ by far more than rounding errors."""
    return save_reranker("Bert", wordpiece, tmp_path_factory.mktemp("telling"), **SIZES)


@pytest.fixture(scope="session")
def another_bert(tmp_path_factory, wordpiece) -> Path:
    """Other weights behind the tokenizer of `telling_bert`."""
    folder = tmp_path_factory.mktemp("another")
    return save_reranker("Bert", wordpiece, folder, **{**SIZES, "hidden_size": 48})


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory, byte_level) -> Path:
    """A model with a tokenizer of its own."""
    return save_reranker("Roberta", byte_level, tmp_path_factory.mktemp("roberta"), **SIZES)
