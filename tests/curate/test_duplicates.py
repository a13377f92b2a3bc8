"""Duplicates are found however they were changed, and hardly anything else is."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus.curate import find_duplicates
from dissensus.curate.duplicates import _components
from dissensus.curate.near_images import near_images, on_canvas
from dissensus.curate.near_texts import near_texts, plain_forms
from dissensus.datasets import Source, read_source
from dissensus.errors import InputError
from tests.curate.planted import brightened, changed, photographs, scores, shifted

if TYPE_CHECKING:
    from pathlib import Path


def images(name: str, pixels: Any) -> Source:
    return Source(name=name, items=np.array([f"{name}-{k}" for k in range(len(pixels))]), images=pixels)


def texts(name: str, lines: list[str]) -> Source:
    made = np.array(lines, dtype=np.dtypes.StringDType())
    return Source(name=name, items=np.array([f"{name}-{k}" for k in range(len(lines))]), texts=made)


@pytest.mark.parametrize("how", ["shifted", "encoded", "brightened", "all"])
def test_changed_photographs_are_found_and_no_others(how: str) -> None:
    generator = np.random.default_rng(1)
    base = photographs(400)
    duplicates = np.stack([changed(image, how, generator) for image in base[:100]])
    found = find_duplicates([images("base", base), images("duplicates", duplicates)])
    recall, precision = scores(found, np.stack([np.arange(100), 400 + np.arange(100)], axis=1))
    assert recall >= 0.99
    assert precision >= 0.99


def test_digits_and_real_photographs_with_planted_copies(data: Path) -> None:
    """The bar of the room on a small made set; benchmarks/curate.py has the large one."""
    generator = np.random.default_rng(0)
    sources, planted, begin = [], [], 0
    for path, name in ((data / "mnist/train-images-idx3-ubyte.gz", "digits"), (data / CIFAR, "photographs")):
        pixels = read_source(path).images
        assert pixels is not None
        base = pixels[:1500]
        how = generator.choice(["shifted", "encoded", "brightened", "all"], 500)
        duplicates = np.stack([changed(image, str(each), generator) for image, each in zip(base, how, strict=False)])
        sources.append(images(name, np.concatenate([base, duplicates])))
        planted.append(begin + np.stack([np.arange(500), 1500 + np.arange(500)], axis=1))
        begin += 2000
    recall, precision = scores(find_duplicates(sources), np.concatenate(planted))
    assert recall >= 0.99
    assert precision >= 0.99


CIFAR = "cifar-10-batches-bin/test_batch.bin"


def test_ones_are_alike_and_not_copies(data: Path) -> None:
    """The hardest case of all: two strokes by two people."""
    source = read_source(data / "mnist/train-images-idx3-ubyte.gz")
    assert source.labels is not None
    ones = source.take(np.flatnonzero(source.labels == "1")[:3000])
    found = find_duplicates([ones])
    assert len(found.one) < 0.01 * len(ones)


def test_the_similarity_is_the_correlation_where_two_images_overlap() -> None:
    base = photographs(30)
    duplicate = brightened(shifted(base[4], 2, -3), 0.8, 10)
    one, other, similarity = near_images(on_canvas([np.concatenate([base, duplicate[None]])]))
    assert (one.tolist(), other.tolist()) == ([4], [30])
    expected = np.corrcoef(base[4, 0, :-2, 3:].ravel(), duplicate[0, 2:, :-3].ravel())[0, 1]
    assert similarity[0] == pytest.approx(expected, abs=1e-5)


def test_a_duplicate_of_another_size_is_found() -> None:
    base = photographs(200, size=64)
    small = base[:20].reshape(20, 1, 32, 2, 32, 2).mean(axis=(3, 5)).astype(np.uint8)
    found = find_duplicates([images("large", base), images("small", small)])
    assert scores(found, np.stack([np.arange(20), 200 + np.arange(20)], axis=1)) == (1.0, 1.0)


def test_an_image_of_one_grey_is_like_no_other() -> None:
    grey = np.repeat(np.arange(0, 200, 20, dtype=np.uint8), 32 * 32).reshape(10, 1, 32, 32)
    found = find_duplicates([images("grey", np.concatenate([grey, grey[:1], photographs(20)]))])
    assert (found.one.tolist(), found.other.tolist(), found.exact.tolist()) == ([0], [10], [True])


def test_exact_copies_and_which_of_them_is_kept() -> None:
    base = photographs(6, size=12)
    first, second = images("first", base[[0, 1, 2, 0]]), images("second", base[[3, 0, 2]])
    found = find_duplicates([first, second], near=False)
    assert found.exact.all()
    assert found.group.tolist() == [0, -1, 1, 0, -1, 0, 1]
    assert found.kept.tolist() == [True, True, True, False, True, False, False]
    assert found.leaks() == {("first", "second"): (2, 0)}
    splits = np.array(["train", "train", "train", "train", "train", "test", "validation"])
    by_split = find_duplicates([first, second], near=False, splits=splits)
    assert by_split.clean().items.tolist() == ["first-1", "second-0", "second-1", "second-2"]
    grouped = by_split.grouped()
    assert grouped.columns["duplicate_of"].tolist() == [
        "second:second-1",
        "",
        "second:second-2",
        "second:second-1",
        "",
        "",
        "",
    ]
    assert grouped.columns["kind"].tolist() == ["exact", "", "exact", "exact", "", "exact", "exact"]
    assert by_split.leaks() == {("test", "train"): (1, 0), ("train", "validation"): (1, 0)}


WORDS = [
    "harbour",
    "the",
    "slowly",
    "green",
    "doctor",
    "under",
    "seven",
    "bridges",
    "walked",
    "without",
    "a",
    "letter",
    "before",
    "morning",
    "and",
    "nobody",
    "asked",
    "which",
    "paper",
    "lamp",
    "had",
    "burned",
    "down",
    "over",
    "night",
    "near",
    "old",
    "mill",
]


def sentences(n: int) -> list[str]:
    generator = np.random.default_rng(3)
    drawn = (generator.choice(WORDS, generator.integers(6, 20), replace=False) for _ in range(n))
    return list(dict.fromkeys(" ".join(words.tolist()).capitalize() + "." for words in drawn))


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda text: text.replace(" ", "  \n"),
        lambda text: f'"{text[:-1]}!!"',
        lambda text: text.swapcase().replace(" ", ", "),
        lambda text: text.replace(" ", " x ", 1),
    ],
    ids=["case", "space", "marks", "both", "a letter"],
)
def test_changed_texts_are_found_and_no_others(change: Any) -> None:
    base = sentences(600)
    long = [place for place, text in enumerate(base) if len(text) > 90][:150]
    found = find_duplicates([texts("base", base), texts("duplicates", [change(base[place]) for place in long])])
    recall, precision = scores(found, np.stack([long, len(base) + np.arange(len(long))], axis=1))
    assert recall >= 0.99
    assert precision >= 0.99


def test_the_plain_form_keeps_what_numbers_and_emoticons_mean() -> None:
    forms = plain_forms(
        np.array(["Don't  GO!", "dont go", "2.5 kg", "25 kg", "2,5 KG", ":-)", ":p", '"p."', "ＧＯ", ""])
    )
    assert forms.tolist() == ["dontgo", "dontgo", "2 5kg", "25kg", "2 5kg", ":-)", ":p", "p", "go", ""]


def test_the_overlap_is_the_share_of_common_runs_of_five() -> None:
    plain = np.array([*plain_forms(np.array(sentences(80))).tolist(), "abc", ""], dtype=np.dtypes.StringDType())
    near = np.concatenate([plain, np.strings.replace(plain[:40], "harbour", "harbor")])
    near = np.unique(near[np.strings.str_len(near) >= 25])
    one, other, overlap = near_texts(near, overlap=0.7)
    runs = [{text[k : k + 5] for k in range(max(len(text) - 4, 1))} for text in near.tolist()]
    expected = {
        (i, j): len(runs[i] & runs[j]) / len(runs[i] | runs[j])
        for i in range(len(runs))
        for j in range(i + 1, len(runs))
        if len(runs[i] & runs[j]) >= 0.7 * len(runs[i] | runs[j])
    }
    assert len(expected) > 5
    assert dict(zip(zip(one.tolist(), other.tolist(), strict=True), overlap.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)).filter(lambda pair: pair[0] != pair[1]), max_size=25))
def test_groups_are_what_pairs_join(pairs: list[tuple[int, int]]) -> None:
    one, other = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    group = _components(one, other, 20)
    joined = {item: {item} for item in range(20)}
    for a, b in pairs:
        union = joined[a] | joined[b]
        for item in union:
            joined[item] = union
    for item in range(20):
        together = {other_item for other_item in range(20) if group[other_item] == group[item]}
        assert (group[item] == -1) == (len(joined[item]) == 1)
        assert group[item] == -1 or together == joined[item]


def test_what_cannot_be_compared_is_refused() -> None:
    pictures, lines = images("a", photographs(3)), texts("b", ["one", "two"])
    with pytest.raises(InputError, match="some sources hold texts and some images"):
        find_duplicates([pictures, lines])
    with pytest.raises(InputError, match="two are called 'a'"):
        find_duplicates([pictures, pictures])
    with pytest.raises(InputError, match="2 splits for 3 items"):
        find_duplicates([pictures], splits=np.array(["train", "test"]))
    with pytest.raises(InputError, match=r"overlap of 0\.2"):
        find_duplicates([lines], overlap=0.2)
    with pytest.raises(InputError, match="no items"):
        find_duplicates([])


def test_images_need_neither_torch_nor_polars() -> None:
    """A study on a bare machine curates its own images; people who only look for duplicates need no PyTorch."""
    program = """
import sys
for name in ("torch", "polars", "rich", "typer"):
    sys.modules[name] = None
import numpy as np
from dissensus.curate import ItemList, find_duplicates, select_items, split_groups
from dissensus.datasets import Source
images = np.random.default_rng(0).integers(0, 256, (30, 1, 16, 16), dtype=np.uint8)
images[7] = images[3]
found = find_duplicates([Source(name="a", items=np.arange(30).astype(str), images=images)])
chosen = select_items(found.clean(), 20, quotas={"source": None})
print(len(found.one), split_groups(chosen.items, {"train": 15, "test": 5}, by=[]).sizes)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "1 {'train': 15, 'test': 5}", done.stderr
