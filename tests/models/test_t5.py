"""T5 as a bi-encoder: the first token of its decoder (Anchor-DR), or the mean of its encoder."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch.nn.functional import normalize
from transformers import (
    AutoTokenizer,
    PreTrainedTokenizerFast,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
    T5Model,
)

from harp_plugin.errors import HarpError
from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.ranking.dense.encoder import Encoder

TEXTS = ["a link leads on", "dogs bark at unaffordable electrocardiograms", "", "one two " * 30]
LENGTH = 24


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    """A random T5 as its authors publish it, with a head and a tokenizer without [CLS]."""
    tokens = Tokenizer(models.Unigram())
    tokens.normalizer = normalizers.Lowercase()
    tokens.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="<unk>")
    tokens.train_from_iterator([*TEXTS, *"abcdefghijklmnopqrstuvwxyz"], trainer)
    tokens.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    folder = tmp_path_factory.mktemp("t5")
    PreTrainedTokenizerFast(
        tokenizer_object=tokens, model_max_length=LENGTH, **names
    ).save_pretrained(folder)
    sizes = {"d_model": 32, "d_ff": 64, "d_kv": 16, "num_heads": 2, "num_layers": 2}
    config = T5Config(vocab_size=len(tokens.get_vocab()), decoder_start_token_id=0, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def by_hand(folder, weights, pooling):
    """One text at a time, by transformers alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    kind = T5Model if pooling == "decoder" else T5EncoderModel
    model, vectors = kind.from_pretrained(weights).eval(), []
    for text in TEXTS:
        tokens = tokenizer(text, truncation=True, return_tensors="pt")
        if pooling == "decoder":
            tokens["decoder_input_ids"] = torch.zeros((1, 1), dtype=torch.long)
        with torch.no_grad():
            states = model(**{k: v for k, v in tokens.items() if k != "token_type_ids"})[0][0]
        vectors.append(normalize(states.mean(0), dim=0).numpy())
    return np.stack(vectors)


def trained(folder, pooling, tmp_path):
    """The folder of an encoder after one step."""
    model, tokenizer = (
        TrainableBiEncoder.load(str(folder), pooling=pooling),
        load_tokenizer(str(folder)),
    )
    batch = model.batches(tokenizer, max_length=LENGTH)([(t, t) for t in TEXTS], [None] * 4, None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    vectors = model(batch["input_ids"], batch["lengths"])
    vectors[:, 0].sum().backward()
    without = {name for name, weight in model.named_parameters() if weight.grad is None}
    assert without == set()
    optimizer.step()
    model.save(tmp_path / "trained")
    tokenizer.save_pretrained(tmp_path / "trained")
    again = TrainableBiEncoder.load(str(folder), pooling=pooling)
    again.load_weights(tmp_path / "trained")
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
    return tmp_path / "trained"


@pytest.mark.parametrize("pooling", ["decoder", "mean"])
def test_vectors_are_those_of_transformers(pooling, t5, tmp_path):
    folder = trained(t5, pooling, tmp_path)
    expected = by_hand(t5, folder, pooling)
    assert abs(expected - by_hand(t5, t5, pooling)).max() > 1e-3
    encoder = Encoder(folder, device="cpu")
    np.testing.assert_allclose(encoder.documents(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.queries(TEXTS), expected, atol=1e-5)


def test_sentence_transformers_takes_the_mean_and_refuses_the_decoder(t5, tmp_path):
    folder = trained(t5, "mean", tmp_path)
    theirs = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, by_hand(t5, folder, "mean"), atol=1e-5)
    (tmp_path / "decoder").mkdir()
    with pytest.raises((ValueError, TypeError, KeyError)):
        SentenceTransformer(str(trained(t5, "decoder", tmp_path / "decoder")), device="cpu")


def test_a_model_without_a_decoder_is_refused(tiny_bert):
    with pytest.raises(HarpError, match="bert has no decoder; take cls, mean or last"):
        TrainableBiEncoder.load(str(tiny_bert), pooling="decoder")
