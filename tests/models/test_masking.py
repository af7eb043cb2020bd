from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from harp_plugin.errors import HarpError
from harp_plugin.models import masking
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


@pytest.fixture
def of_words(masker):
    """Tokens below 40 begin a word, the others go on with it."""
    return replace(masker, continues=np.arange(VOCABULARY) >= 40)


def test_whole_words_are_chosen_or_left(of_words):
    """Words of one, two and three tokens; of 40 tokens six are chosen, so 5 where only one fits."""
    tokens = np.array([20, 21, 41, 22, 42, 43] * 6 + [20, 21, 22, 0])
    words = [
        range(n, n + size) for s in range(0, 36, 6) for n, size in ((s, 1), (s + 1, 2), (s + 3, 3))
    ]
    words += [range(36, 37), range(37, 38), range(38, 39)]
    seen = set()
    for chosen, shown in draws(of_words, tokens, 400):
        whole = [word for word in words if set(word) <= set(chosen.tolist())]
        assert sum(map(len, whole)) == len(chosen) == len(shown) == 6
        seen |= {word.start for word in whole}
    assert seen == {word.start for word in words}


def test_each_word_is_as_likely_to_come_first(of_words):
    """With a budget of one token, one word is chosen, however long it is."""
    tokens = np.array([20, 41, 42, 21, 22, 43])
    starts = np.array([chosen[0] for chosen, _ in draws(of_words, tokens, 3000)])
    assert chisquare([(starts == start).sum() for start in (0, 3, 4)]).pvalue > 1e-3
    lengths = {chosen[0]: len(chosen) for chosen, _ in draws(of_words, tokens, 50)}
    assert lengths == {0: 3, 3: 1, 4: 2}


def test_a_word_ends_at_a_special_token(of_words):
    tokens = np.array([20, 0, 41, 0])
    assert {len(chosen) for chosen, _ in draws(of_words, tokens, 50)} == {1}


@pytest.mark.parametrize(
    ("vocabulary", "continues"),
    [
        (["[MASK]", "play", "##ing"], [False, False, True]),
        (["<mask>", "Ġplay", "ing"], [True, False, True]),
        (["<mask>", "▁play", "ing"], [True, False, True]),
        (["<mask>", "##", "Ġplay", "Ġ##", "ing"], [True, True, False, False, True]),
        (["[MASK]", "Ġ", "##Ġ", "play", "##ing"], [False, False, True, False, True]),
    ],
)
def test_vocabularies_say_where_words_begin(vocabulary, continues):
    found = masking._continues({token: number for number, token in enumerate(vocabulary)})
    assert found.tolist() == continues
    with pytest.raises(HarpError, match="does not say where words begin: leave mlm_whole_words"):
        masking._continues({"play": 0, "ing": 1})


def test_words_of_a_real_tokenizer(tokenizer):
    masker = TokenMasker.from_tokenizer(tokenizer, probability=0.3, whole_words=True)
    ids = np.array(tokenizer("an unaffable tokenizer hyperlinks documentation")["input_ids"])
    tokens = tokenizer.convert_ids_to_tokens(ids.tolist())
    assert any(token.startswith("##") for token in tokens)
    for chosen, _ in draws(masker, ids, 50):
        for place in chosen.tolist():
            if tokens[place].startswith("##"):
                assert place - 1 in chosen
            if tokens[place + 1].startswith("##"):
                assert place + 1 in chosen


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
