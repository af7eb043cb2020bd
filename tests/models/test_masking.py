import numpy as np
import pytest
from scipy.stats import chisquare

from harp_plugin.errors import HarpError
from harp_plugin.models.masking import TokenMasker

MASK, VOCABULARY = 3, 60


@pytest.fixture
def masker():
    ordinary = np.ones(VOCABULARY, dtype=bool)
    ordinary[:10] = False
    return TokenMasker(MASK, ordinary, probability=0.15, seed=7)


def draws(masker, tokens, count):
    return [masker.draw(tokens, epoch, 0, 0) for epoch in range(count)]


@pytest.mark.parametrize(("tokens", "budget"), [(1, 1), (3, 1), (10, 2), (100, 15), (0, 0)])
def test_budget_is_exact(masker, tokens, budget):
    for chosen, shown in draws(masker, np.full(tokens, 20), 20):
        assert len(set(chosen.tolist())) == len(chosen) == len(shown) == budget


def test_every_position_is_as_likely(masker):
    chosen = np.concatenate([c for c, _ in draws(masker, np.full(40, 20), 2000)])
    assert chisquare(np.bincount(chosen, minlength=40)).pvalue > 1e-3


def test_kinds_are_80_10_10(masker):
    shown = np.concatenate([s for _, s in draws(masker, np.full(40, 20), 2000)])
    # A random replacement is the token itself once in 50 times.
    masked, kept = (shown == MASK).sum(), (shown == 20).sum()
    expected = np.array([0.8, 0.1 + 0.1 / 50, 0.1 - 0.1 / 50]) * len(shown)
    assert chisquare([masked, kept, len(shown) - masked - kept], expected).pvalue > 1e-3


def test_replacements_are_uniform_over_ordinary_tokens(masker):
    shown = np.concatenate([s for _, s in draws(masker, np.full(40, 20), 6000)])
    replaced = shown[(shown != MASK) & (shown != 20)]
    assert replaced.min() >= 10
    counts = np.delete(np.bincount(replaced, minlength=VOCABULARY)[10:], 20 - 10)
    assert chisquare(counts).pvalue > 1e-3


def test_special_tokens_are_never_chosen_and_do_not_count(masker):
    tokens = np.array([0, 20, 1, 21, 2, 22, 3, 23, 4, 24] * 4)
    for chosen, _ in draws(masker, tokens, 50):
        assert (tokens[chosen] >= 10).all() and len(chosen) == 3


def test_a_draw_depends_on_its_key_alone(masker):
    tokens = np.arange(10, 50)
    first = masker.draw(tokens, 1, 2, 0)
    np.random.seed(0)
    again = masker.draw(tokens, np.int64(1), 2, 0)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    for other in [(2, 2, 0), (1, 3, 0), (1, 2, 1)]:
        assert (masker.draw(tokens, *other)[0] != first[0]).any()


def test_vocabulary_of_a_real_tokenizer(tokenizer):
    masker = TokenMasker.from_tokenizer(tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(masker.replacements.tolist())
    assert len(tokens) == 30522 - 5 - 994
    assert not any(token.startswith("[unused") for token in tokens)
    assert not set(tokens) & set(tokenizer.all_special_tokens)


def test_no_mask_token(tokenizer):
    tokenizer.mask_token = None
    with pytest.raises(HarpError, match="has no mask token"):
        TokenMasker.from_tokenizer(tokenizer)
