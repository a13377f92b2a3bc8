from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.datasets import DATASETS, get
from dissensus.datasets.vader import lexicon_path, read_words, word_texts
from dissensus.errors import InputError
from dissensus.items.ngrams import character_ngrams


def test_words_are_7520_terms_with_ten_ratings_each() -> None:
    votes = read_words()
    assert (len(votes), len(votes.items), len(votes.classes)) == (75_200, 7_520, 5)
    assert (votes.panel_size == 10).all()
    assert len(set(votes.items.tolist())) == 7_520
    assert votes.ordered


def test_without_the_package_of_the_ratings_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DATASETS["words"].present()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"vaderSentiment, which is not installed; get it with `pip install vader"):
        read_words()
    for name in ("words", "words-9"):
        assert not DATASETS[name].present()
        with pytest.raises(InputError, match="pip install vaderSentiment"):
            get(name)


def test_the_package_of_the_ratings_is_installed_for_the_demo_and_for_tests_alone() -> None:
    written = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    project = written["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    assert not [each for each in project["dependencies"] if "vader" in each.lower()]
    extras = project["optional-dependencies"]
    assert [name for name, needs in extras.items() if any("vader" in each.lower() for each in needs)] == ["demo"]
    needed = (Path(__file__).parents[4] / "requirements" / "test.txt").read_text(encoding="utf-8")
    assert "packages/dissensus[demo" in needed


def test_the_mean_rating_is_the_lexicons_own() -> None:
    votes = read_words(classes=9)
    mean = votes.counts @ votes.scale / 10
    printed = [float(line.split("\t")[1]) for line in lexicon_path().read_text(encoding="utf-8").splitlines() if line]
    # The lexicon prints one decimal, and a few of its printed means were rounded by hand.
    assert (np.abs(mean - printed) < 0.051).mean() > 0.995


def test_five_classes_collapse_the_nine() -> None:
    nine, five = read_words(classes=9).counts, read_words().counts
    assert (
        five
        == np.stack([nine[:, :2].sum(1), nine[:, 2:4].sum(1), nine[:, 4], nine[:, 5:7].sum(1), nine[:, 7:].sum(1)], 1)
    ).all()
    with pytest.raises(InputError, match="choose 9"):
        read_words(classes=3)


def test_second_listings_have_their_own_name_and_the_same_text() -> None:
    items = read_words().items
    second = [name for name in items.tolist() if name.endswith(" (2)")]
    assert len(second) == 14
    texts = word_texts(items).tolist()
    assert not any(text.endswith(" (2)") for text in texts)
    assert len(set(texts)) == 7_506


def strings(*values: str) -> np.ndarray:
    return np.array(values, dtype=np.dtypes.StringDType())


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6))
def test_features_are_unit_rows_that_do_not_depend_on_the_company(texts: list[str]) -> None:
    together = character_ngrams(strings(*texts), 64)
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0)
    alone = np.concatenate([character_ngrams(strings(text), 64) for text in texts])
    assert np.allclose(together, alone, atol=1e-6)


def test_features_count_the_grams_of_a_word() -> None:
    # "^ab$": 4 + 3 + 2 + 1 grams up to length 4, all different, so all entries are equal before any collision.
    row = character_ngrams(strings("ab"), 1 << 16)[0]
    assert (row > 0).sum() == 10
    assert np.allclose(row[row > 0], 10**-0.5)


def test_words_of_one_family_are_near_and_case_does_not_matter() -> None:
    features = character_ngrams(strings("abandon", "abandoned", "Abandon", "zest"), 4096)
    near, same, far = features[0] @ features[1], features[0] @ features[2], features[0] @ features[3]
    assert same == pytest.approx(1.0)
    assert near > 0.5 > 0.2 > far
