"""Models, devices and options by which nothing can be weighed: one line that says so."""

import warnings

import pytest
import torch
import transformers
from random_models import LIMIT, save_encoder, save_random
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from harp_plugin.errors import HarpError
from harp_plugin.weights.attention import AttentionWeigher


def refused(folder, message, device="cpu"):
    with warnings.catch_warnings(), pytest.raises(HarpError, match=message) as caught:
        warnings.simplefilter("ignore", UserWarning)
        AttentionWeigher(str(folder), device=device)
    assert "\n" not in str(caught.value)


@pytest.fixture
def bare(wordpiece):
    """A tokenizer that adds no special tokens."""
    tokenizer = AutoTokenizer.from_pretrained(wordpiece.name_or_path)
    tokenizer.backend_tokenizer.post_processor = None
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, pad_token="[PAD]", cls_token="[CLS]"
    )


def test_decoder(bare, tmp_path):
    config = transformers.GPT2Config(
        vocab_size=len(bare), n_embd=32, n_layer=2, n_head=4, n_positions=LIMIT
    )
    save_random(transformers.GPT2Model, config, tmp_path)
    bare.save_pretrained(tmp_path)
    refused(tmp_path, r"begins no text with \[CLS\].*name an encoder")


@pytest.mark.parametrize("tokens", ["wordpiece", "bare"])
def test_encoder_and_decoder(tokens, request, tmp_path):
    tokenizer = request.getfixturevalue(tokens)
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_ff=48, num_layers=2, num_heads=4, d_kv=8
    )
    save_random(transformers.T5Model, config, tmp_path)
    tokenizer.save_pretrained(tmp_path)
    refused(tmp_path, "name an encoder")


def test_bert_as_decoder(wordpiece, tmp_path):
    refused(save_encoder("Bert", wordpiece, tmp_path, is_decoder=True), "is a decoder")


def test_no_special_tokens(bare, tmp_path):
    refused(save_encoder("Bert", bare, tmp_path), r"begins no text with \[CLS\]")


@pytest.mark.slow
def test_slow_tokenizer(tmp_path):
    config = transformers.CanineConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48
    )
    save_random(transformers.CanineModel, config, tmp_path)
    transformers.CanineTokenizer().save_pretrained(tmp_path)
    refused(tmp_path, "tells no character offsets")


def test_attention_to_some_tokens_only(byte_level, tmp_path):
    refused(
        save_encoder("Longformer", byte_level, tmp_path, attention_window=[8, 8, 8]),
        "longformer gives no attention of all tokens to all",
    )


def test_no_attention(wordpiece, tmp_path):
    config = transformers.FNetConfig(vocab_size=len(wordpiece), hidden_size=32, num_hidden_layers=2)
    save_random(transformers.FNetModel, config, tmp_path)
    wordpiece.save_pretrained(tmp_path)
    refused(tmp_path, "fnet gives no attention")


@pytest.mark.parametrize("device", ["nonsense", "cuda:x", "meta", "cuda:99"])
def test_no_such_device(bert, device):
    refused(bert, f"device '{device}' cannot be used", device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu(bert):
    refused(bert, "device 'cuda' cannot be used", "cuda")
