"""Tiny random encoders of several architectures whose attention is far from uniform."""

import shutil
from pathlib import Path

import pytest
import torch
import transformers
from dumps import write_dump
from random_models import LIMIT, SHIFTED, save_encoder, save_random
from transformers import AutoTokenizer, PreTrainedTokenizerFast, RobertaTokenizer

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.graph import GraphOptions, build_graph

TEXTS = ["the old apple tree bears fruit", "hyperlinks of an encyclopedia", "été 😀 naïveté’s"]


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Threads that wait for each other make models this small twenty times slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def linked(request, tmp_path_factory):
    """A corpus and its link graph, of the PAGES of the module that asks."""
    folder = tmp_path_factory.mktemp("linked")
    source = write_dump(folder / "d.xml", request.module.PAGES)
    build_corpus(folder, CorpusOptions(pages_per_shard=2), sources=[source], quiet=True)
    build_graph(folder, GraphOptions(min_words=0))
    return folder


@pytest.fixture
def directory(linked, tmp_path):
    """A copy of it to build into."""
    return shutil.copytree(linked, tmp_path / "build")


@pytest.fixture(scope="session")
def wordpiece(tiny_bert):
    return AutoTokenizer.from_pretrained(tiny_bert)


@pytest.fixture(scope="session")
def byte_level():
    return RobertaTokenizer().train_new_from_iterator(TEXTS * 20, 400)


@pytest.fixture(scope="session")
def metaspace():
    """Pieces that begin with the space before them, as SentencePiece makes them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    special = ["<pad>", "<unk>", "<cls>", "<sep>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<cls> $A <sep>", special_tokens=[("<cls>", 2), ("<sep>", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token="<cls>",
        sep_token="<sep>",
        padding_side="left",
    )


@pytest.fixture(scope="session")
def bert(tmp_path_factory, wordpiece) -> Path:
    return save_encoder("Bert", wordpiece, tmp_path_factory.mktemp("bert"))


_LOCAL, _GLOBAL = "sliding_attention", "full_attention"
CONFIGS = {
    "Electra": {"embedding_size": 16},
    "Albert": {"embedding_size": 16},
    "DebertaV2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    # Each sees 3 tokens to either side.
    "ModernBert": {"local_attention": 6, "layer_types": [_GLOBAL, _LOCAL, _GLOBAL]},
    "ModernBert, local at last": {"local_attention": 6, "layer_types": [_GLOBAL, _GLOBAL, _LOCAL]},
}


@pytest.fixture(
    scope="session",
    params=["Bert", *SHIFTED, "DistilBert", "Bert on metaspace", *CONFIGS],
)
def encoder(request, tmp_path_factory, wordpiece, byte_level, metaspace) -> Path:
    """A checkpoint folder; Albert and DeBERTa have no fast path."""
    kind, _, other = request.param.partition(" on ")
    if kind == "DistilBert":
        return request.getfixturevalue("distilbert")
    tokenizer = byte_level if kind in SHIFTED else metaspace if other else wordpiece
    more = CONFIGS.get(request.param, {})
    kind = kind.partition(",")[0]
    return save_encoder(kind, tokenizer, tmp_path_factory.mktemp(kind), **more)


@pytest.fixture(scope="session")
def albert(tmp_path_factory, wordpiece) -> Path:
    return save_encoder("Albert", wordpiece, tmp_path_factory.mktemp("albert"), embedding_size=16)


@pytest.fixture(scope="session")
def distilbert(tmp_path_factory, wordpiece) -> Path:
    config = transformers.DistilBertConfig(
        vocab_size=len(wordpiece),
        dim=32,
        n_layers=3,
        n_heads=4,
        hidden_dim=48,
        max_position_embeddings=LIMIT,
    )
    folder = tmp_path_factory.mktemp("distilbert")
    save_random(transformers.DistilBertModel, config, folder)
    wordpiece.save_pretrained(folder)
    return folder
