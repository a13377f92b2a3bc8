"""Duplicates are found however they were changed, and hardly anything else is."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont, ImageOps

from dissensus.datasets import Source, read_source
from dissensus.errors import InputError
from dissensus.progress import Step
from dissensus_train.cores import available_cores
from dissensus_train.curate import find_duplicates
from dissensus_train.curate.duplicates import _all_alike
from dissensus_train.curate.near_images import _posed, _posed_spectrum, canvas, near_images, spectrum_of
from dissensus_train.curate.near_texts import near_texts, plain_forms
from tests.curate.planted import brightened, changed, photographs, scores, shifted

if TYPE_CHECKING:
    from collections.abc import Callable
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


def test_digits_are_judged_by_their_shift_alone(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of digits, a few of them on a busy ground, costs no alignment; the pairs are those of shifts."""
    monkeypatch.setattr("dissensus_train.curate.near_images._likest", lambda *_: pytest.fail("digits were aligned"))
    pixels = read_source(data / "mnist/train-images-idx3-ubyte.gz").images
    assert pixels is not None
    generator = np.random.default_rng(3)
    base = pixels[:5000]
    duplicates = np.stack([changed(image, "all", generator) for image in base[1000:1300]])
    duplicates[:3] = np.maximum(duplicates[:3], photographs(3, size=28) // 8)
    found = find_duplicates([images("digits", np.concatenate([base, duplicates]))])
    pairs = set(zip(found.one.tolist(), found.other.tolist(), strict=True))
    planted = {(1000 + place, 5000 + place) for place in range(300)}
    assert len(pairs & planted) >= 0.99 * 300
    assert pairs - planted == {(743, 781)}


def test_strokes_are_not_bent_onto_one_another_in_the_company_of_photographs() -> None:
    """Sheared a little, a stroke fits many others; alone they are only moved, and so they must be among others."""
    strokes = np.zeros((60, 1, 28, 28), dtype=np.uint8)
    generator = np.random.default_rng(0)
    for stroke in strokes:
        lean, middle, width = generator.uniform(-0.5, 0.5), generator.uniform(11, 17), generator.uniform(1, 2.5)
        row, column = np.mgrid[4:24, :28]
        stroke[0, 4:24] = 255 * np.clip(width - np.abs(column - middle - lean * (row - 14)), 0, 1)
    alone = find_duplicates([images("strokes", strokes)])
    among = find_duplicates([images("strokes", strokes), images("photographs", photographs(60, size=28))])
    assert 0 < len(alone.one) < 30
    assert (among.one.tolist(), among.other.tolist()) == (alone.one.tolist(), alone.other.tolist())


def test_cells_find_what_comparing_all_with_all_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    base = photographs(900, seed=9)
    turned = np.stack([np.rot90(changed(image, "all", generator)[0])[None] for image in base[:150]])
    planes = canvas(np.concatenate([base, turned]))
    every = set(zip(*(each.tolist() for each in near_images(planes)[:2]), strict=True))
    monkeypatch.setattr("dissensus_train.curate.near_images._MANY", 500)
    some = set(zip(*(each.tolist() for each in near_images(planes)[:2]), strict=True))
    assert len(every) >= 148
    assert some <= every
    assert len(some) >= 0.97 * len(every)


def test_the_similarity_is_the_correlation_of_aligned_images() -> None:
    base = photographs(30)
    duplicate = brightened(shifted(base[4], 2, -3), 0.8, 10)
    one, other, similarity = near_images(canvas(np.concatenate([base, duplicate[None]])))
    assert (one.tolist(), other.tolist()) == ([4], [30])
    expected = np.corrcoef(base[4, 0, :-2, 3:].ravel(), duplicate[0, 2:, :-3].ravel())[0, 1]
    assert similarity[0] == pytest.approx(expected, abs=0.005)


KINDS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "mirrored": lambda picture: picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "turned by 90": lambda picture: picture.transpose(Image.Transpose.ROTATE_90),
    "turned by 180": lambda picture: picture.transpose(Image.Transpose.ROTATE_180),
    "turned by 270": lambda picture: picture.transpose(Image.Transpose.ROTATE_270),
    "turned 5 degrees": lambda picture: picture.rotate(5, resample=Image.Resampling.BICUBIC),
    "cropped 10 %": lambda picture: picture.crop((10, 2, 211, 203)).resize((224, 224)),
    "cropped 20 %": lambda picture: picture.crop((20, 30, 199, 209)).resize((224, 224)),
    "border": lambda picture: ImageOps.expand(picture, 12, fill=0).resize((224, 224)),
    "watermark": lambda picture: written_upon(picture),
    "half the size": lambda picture: picture.resize((112, 112)),
    "another shape": lambda picture: picture.resize((224, 150)),
}


def written_upon(picture: Image.Image) -> Image.Image:
    picture = picture.copy()
    ImageDraw.Draw(picture).text((30, 90), "SAMPLE", fill=255, font=ImageFont.load_default(size=40))
    return picture


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_found_at_224_pixels_and_nothing_else(kind: str) -> None:
    base = photographs(120, size=28, seed=6)
    large = [Image.fromarray(image[0]).resize((224, 224), Image.Resampling.BICUBIC) for image in base]
    planes = [canvas(np.asarray(picture)[None]) for picture in (*large, *(KINDS[kind](each) for each in large[:40]))]
    one, other, _ = near_images(np.stack(planes))
    found = set(zip(one.tolist(), other.tolist(), strict=True))
    wanted = {(place, 120 + place) for place in range(40)}
    assert len(found & wanted) >= 0.95 * 40
    assert len(found - wanted) == 0


def test_the_spectrum_of_a_posed_image_is_that_of_the_image_at_other_frequencies() -> None:
    planes = canvas(photographs(5))
    spectrum = spectrum_of(planes)
    for pose in range(8):
        np.testing.assert_allclose(_posed_spectrum(spectrum, pose), spectrum_of(_posed(planes, pose)), atol=1e-5)


def test_a_group_of_many_duplicates_is_one_group() -> None:
    base = photographs(60)
    ways = [base[:1], base[:1, :, ::-1], base[:1, :, :, ::-1], base[:1].swapaxes(2, 3)]
    ways += [brightened(base[0], contrast, 5)[None] for contrast in (0.7, 0.8, 0.9, 0.95)]
    found = find_duplicates([images("all", np.concatenate([base, *ways[1:]]))])
    assert found.groups == 1
    assert np.flatnonzero(found.group == 0).tolist() == [0, *range(60, 67)]


def test_images_are_compared_as_they_look_whatever_their_file(tmp_path: Path) -> None:
    """16 bits and floats are scaled and not cut off, a folder on one scale; EXIF turns are made, sizes differ."""
    base = photographs(40, size=48, seed=2)[:, 0]
    tmp_path, other = tmp_path / "one", tmp_path / "other"
    for folder in (tmp_path, other):
        folder.mkdir()
    for place, image in enumerate(base):
        Image.fromarray(image).save(tmp_path / f"{place:02}.png")
    Image.fromarray(base[0].astype(np.uint16) * 257).save(tmp_path / "deep.png")
    Image.fromarray(base[1].astype(np.uint16) * 16).save(other / "twelve.tiff")
    Image.fromarray((base[2] / 255).astype(np.float32)).save(tmp_path / "float.tiff")
    Image.fromarray(base[3].astype(np.float32)).save(other / "wide.tiff")
    turned = Image.Exif()
    turned[274] = 6
    Image.fromarray(np.rot90(base[4])).save(tmp_path / "turned.png", exif=turned)
    Image.fromarray(base[5]).resize((31, 90)).save(tmp_path / "narrow.png")
    # Two deep images that differ below what a byte can tell are no exact duplicates.
    Image.fromarray(base[6].astype(np.uint16) * 257).save(tmp_path / "one.png")
    Image.fromarray(base[6].astype(np.uint16) * 257 + 1).save(tmp_path / "two.png")
    found = find_duplicates([read_source(folder, streamed=True) for folder in (tmp_path, other)])
    names = found.items.items
    pairs = {frozenset(pair) for pair in zip(names[found.one].tolist(), names[found.other].tolist(), strict=True)}
    originals = ("deep", "twelve", "float", "wide", "turned", "narrow")
    wanted = {
        frozenset((f"{place:02}.png", next(str(each) for each in names if str(each).startswith(name + "."))))
        for place, name in enumerate(originals)
    }
    assert wanted <= pairs
    assert pairs - wanted <= {
        frozenset(pair) for pair in (("06.png", "one.png"), ("06.png", "two.png"), ("one.png", "two.png"))
    }
    exact = {
        frozenset((str(names[one]), str(names[other])))
        for one, other in zip(found.one[found.exact], found.other[found.exact], strict=True)
    }
    assert exact == {frozenset(("04.png", "turned.png"))}


@pytest.mark.parametrize("ink", [0, 255])
def test_icons_that_differ_in_what_is_transparent_are_not_duplicates(tmp_path: Path, ink: int) -> None:
    """All pixels of one colour, black or that of the background itself: what differs is where there are any."""
    rng = np.random.default_rng(1)
    for place in range(30):
        icon = np.full((24, 24, 4), ink, dtype=np.uint8)
        icon[..., 3] = np.kron(rng.integers(0, 2, (6, 6)), np.ones((4, 4))) * 255
        Image.fromarray(icon, "RGBA").save(tmp_path / f"{place:02}.png")
    (tmp_path / "again.png").write_bytes((tmp_path / "00.png").read_bytes())
    found = find_duplicates([read_source(tmp_path, streamed=True)])
    assert found.items.items[~found.kept].tolist() == ["again.png"]


def test_files_that_cannot_be_read_are_all_named_or_left_out(tmp_path: Path) -> None:
    for place, image in enumerate(photographs(12)):
        Image.fromarray(image[0]).save(tmp_path / f"{place:02}.png")
    (tmp_path / "05.png").write_bytes(b"nothing")
    (tmp_path / "07.png").write_bytes((tmp_path / "06.png").read_bytes()[:60])
    Image.fromarray(np.full((9, 9), np.nan, dtype=np.float32)).save(tmp_path / "nan.tiff")
    source = read_source(tmp_path, streamed=True)
    with pytest.raises(InputError, match=r"3 images cannot be read: .*05\.png, .*07\.png, .*nan\.tiff; .*skip_bad="):
        find_duplicates([source])
    splits = np.array([f"s{place}" for place in range(len(source))])
    found = find_duplicates([source], skip_bad=True, splits=splits)
    assert len(found.items) == 10
    assert "07.png" not in found.items.items
    assert found.items.columns["split"].tolist() == [splits[k] for k in (0, 1, 2, 3, 4, 6, 8, 9, 10, 11)]
    assert len(found.skipped) == 3


def test_a_folder_is_read_one_image_after_the_other(tmp_path: Path) -> None:
    """40 images of 600 x 600 x 3 are 43 MB; what is held at once must not grow with them."""
    for place, image in enumerate(photographs(40)):
        Image.fromarray(image[0]).resize((600, 600)).convert("RGB").save(tmp_path / f"{place:02}.png")
    steps: list[Step] = []
    tracemalloc.start()
    find_duplicates([read_source(tmp_path, streamed=True)], near=False, progress=steps.append)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6 * (available_cores() + 1)
    assert steps[-1] == Step("read images", 40, 40)


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


def mistyped(text: str) -> str:
    """A letter too much within a word; which and where depends on the text, as few typing errors are made twice."""
    drawn = sum(map(ord, text))
    place = next(k for k in range(5 + drawn % 37, len(text)) if text[k - 3 : k + 3].isalpha())
    return text[:place] + "bcdfghjklmnpqrstvwxz"[drawn % 20] + text[place:]


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda text: text.replace(" ", "  \n"),
        lambda text: f'"{text[:-1]}!!"',
        lambda text: text.swapcase().replace(" ", ", "),
        mistyped,
        lambda text: f"RT @somebody: {text} https://t.co/x{len(text)}",
    ],
    ids=["case", "space", "marks", "both", "a letter", "addressed"],
)
def test_changed_texts_are_found_and_no_others(change: Any) -> None:
    base = sentences(600)
    long = [place for place, text in enumerate(base) if len(text) > 90][:150]
    found = find_duplicates([texts("base", base), texts("duplicates", [change(base[place]) for place in long])])
    recall, precision = scores(found, np.stack([long, len(base) + np.arange(len(long))], axis=1))
    assert recall >= (0.95 if change is mistyped else 0.99)
    assert precision >= 0.99


def test_the_plain_form_keeps_what_numbers_and_emoticons_mean() -> None:
    forms = plain_forms(
        np.array(["Don't  GO!", "dont go", "2.5 kg", "25 kg", "2,5 KG", ":-)", ":p", '"p."', "ＧＯ", ""])
    )
    assert forms.tolist() == ["dontgo", "dontgo", "2 5kg", "25kg", "2 5kg", "🙂", ":p", "p", "go", ""]


TEXT = "The quick doctor walked slowly over seven old bridges before morning, and nobody asked which."


@pytest.mark.parametrize(
    "changed_text",
    [
        TEXT.replace("o", "ö").replace("e", "é"),
        TEXT.replace("o", "о").replace("a", "а").replace("T", "Т"),
        "\u200b".join(TEXT),
        TEXT.replace("doctor", "docotr").replace("morning", "mornng").replace("bridges", "bridgess"),
        TEXT.replace("quick doctor", "doctor quick"),
        "and nobody asked which. The quick doctor walked slowly over seven old bridges before morning,",
        TEXT + " Thanks for reading this.",
    ],
    ids=["accents", "homoglyphs", "zero-width", "three typing errors", "words swapped", "halves swapped", "appended"],
)
def test_a_text_is_found_however_it_was_changed(changed_text: str) -> None:
    found = find_duplicates([texts("a", [*sentences(300), TEXT, changed_text])])
    size = len(found.items)
    assert (found.one.tolist(), found.other.tolist()) == ([size - 2], [size - 1])


def test_another_word_or_number_makes_another_text() -> None:
    many = [f"{TEXT[:-1]} {place} times." for place in range(1990, 2000)]
    known = [
        f"{start} {who} near the old mill" for start in ("nobody saw the", "we asked some") for who in ("man", "men")
    ]
    known += [
        "without a man the doctor walked",
        "green men burned paper over night",
        "a letter had men and a man in it",
    ]
    assert len(find_duplicates([texts("a", many)]).one) == 0
    assert find_duplicates([texts("a", many)], numbers=True).groups == 1
    assert len(find_duplicates([texts("a", [*known, f"{TEXT} said a man", f"{TEXT} said a men"])]).one) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("walked", "has not walked"),
        ("walked", "never walked"),
        ("could walk", "couldn't walk"),
        ("can walk", "cannot walk"),
        ("was happy", "was unhappy"),
        ("was careful", "was careless"),
        ("met a male clerk", "met a female clerk"),
        ("said she walked", "said he walked"),
        ("said she's walked", "said he's walked"),
        ("saw two", "saw ten"),
        ("saw 2", "saw 3"),
        ("walked quickly", "walked proudly"),
        ("walked", "walked without it"),
        ("walked with it", "walked without it"),
        ("saw sales increase", "saw sales decrease"),
        ("walked north", "walked south"),
        ("walked at +3 degrees", "walked at -3 degrees"),
        ("walked at 3 degrees", "walked at \u22123 degrees"),
        ("gained 5%", "gained -5%"),
        ("gained 5%", "gained 5"),
        ("saw > 50 of them", "saw < 50 of them"),
        ("saw ≥ 50 of them", "saw > 50 of them"),
        ("saw x = y", "saw x ≠ y"),
        ("won 3:2", "won 2:3"),
        ("won by 3 to 2 goals", "won by 2 to 3 goals"),
        ("won 3:2, which was new", "won 2:3, whihc was new"),
        ("paid $20", "paid €20"),
        ("paid $20 and €30", "paid €20 and $30"),
        ("saw -3 and 5", "saw 3 and -5"),
        ("walked 😀", "walked 😡"),
        ("walked", "walked 😡😡😡"),
        ("walked ★★★★★", "walked ★☆☆☆☆"),
        ("walked :)", "walked :-("),
        ("got an A+", "got an A-"),
        ("wrote C++", "wrote C"),
        ("was not right but kind", "was right but not kind"),
    ],
)
@pytest.mark.parametrize("others", [0, 300], ids=["alone", "among others"])
def test_minimal_pairs_are_no_duplicates(one: str, other: str, others: int) -> None:
    pair = [f"The doctor, over seven old bridges before morning, {change}." for change in (one, other)]
    assert len(find_duplicates([texts("a", [*sentences(others), *pair])]).one) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("paid €20, 5%", "PAID 20 €, 5 %"),
        ("walked at 3 degrees", "walked at +3 degrees"),
        ("walked :)", "walked :-))"),
        ("walked ❤️", "walked ❤"),
        ("walked #today", "walked today"),
        ("walked 2-3 days", "walked 2–3 days"),
        ("walked", "● walked ||"),
        ("was right, 3:2 but kind", "3:2 but kind was right"),
        ("walked \n > and slept", "walked and slept >>"),
    ],
)
def test_signs_that_say_the_same_make_no_other_text(one: str, other: str) -> None:
    pair = [f"The doctor, over seven old bridges before morning, {change}." for change in (one, other)]
    assert len(find_duplicates([texts("a", pair)]).one) == 1


def test_of_a_hundred_words_one_may_be_another() -> None:
    long = " ".join(f"{word} {number}" for number, word in enumerate(WORDS * 4))
    rare = [long, long.replace("harbour 0", "cathedral 0")]
    assert len(find_duplicates([texts("a", rare)]).one) == 1
    assert len(find_duplicates([texts("a", [text[: len(text) // 4] for text in rare])]).one) == 0
    assert len(find_duplicates([texts("a", [long, long.replace("the 1 ", "not 1 ")])]).one) == 0


def test_a_letter_is_a_word_in_scripts_without_spaces() -> None:
    base = "医生在早晨之前慢慢地走过七座古老的桥，没有人问他带着哪一封信去哪里。"
    assert len(find_duplicates([texts("a", [base, base.replace("慢慢地", "不慢慢地")])]).one) == 0
    assert len(find_duplicates([texts("a", [base, base.replace("，", " ")])]).one) == 1


def test_addresses_alone_stay_what_they_are() -> None:
    lines = ["@one", "@two", "https://a.org/1", "https://a.org/2", "RT @one", "mail a@b.org", "mail a@c.org"]
    assert len(find_duplicates([texts("a", lines)]).one) == 0


def test_a_sentence_more_may_have_a_number() -> None:
    found = find_duplicates([texts("a", [f"{TEXT} It was 3 o'clock.", f"{TEXT} It was 3 o'clock. So 1999 it was."])])
    assert len(found.one) == 1


def test_russian_is_found_in_capitals_and_marks_of_other_scripts_stay() -> None:
    lines = ["Новый доктор медленно шёл через семь мостов", "НОВЫЙ ДОКТОР МЕДЛЕННО ШЁЛ ЧЕРЕЗ СЕМЬ МОСТОВ", "कि", "की"]
    found = find_duplicates([texts("a", lines)])
    assert (found.one.tolist(), found.other.tolist()) == ([0], [1])


def test_an_encoder_finds_the_same_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An own encoder by which texts mean the same where they have as many words."""
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "def encode(items):\n"
        "    words = [len(text.split()) for text in items.texts[0].tolist()]\n"
        "    return np.eye(20, dtype=np.float32)[words]\n"
    )
    monkeypatch.chdir(tmp_path)
    lines = ["One two three", "Four five six", "Seven", "seven!"]
    found = find_duplicates([texts("a", lines)], encoder="own.py:encode")
    assert found.pairs()["kind"].tolist() == ["semantic", "near"]
    assert found.semantic.tolist() == [True, False]
    assert found.groups == 2
    with pytest.raises(InputError, match="a least cosine of 0"):
        find_duplicates([texts("a", lines)], encoder="own.py:encode", meaning=0)


def test_the_similarity_of_texts_is_the_share_of_common_runs_of_five() -> None:
    lines = [text for text in sentences(200) if len(text) > 60]
    near = [*lines, *map(mistyped, lines)]
    forms = plain_forms(np.array(near))
    one, other, share = near_texts(np.array(near, dtype=np.dtypes.StringDType()), forms)
    runs = [{text[k : k + 5] for k in range(len(text) - 4)} for text in forms.tolist()]
    assert set(zip(one.tolist(), other.tolist(), strict=True)) <= {(k, len(lines) + k) for k in range(len(lines))}
    assert len(one) > 0.9 * len(lines)
    expected = [len(runs[i] & runs[j]) / len(runs[i] | runs[j]) for i, j in zip(one, other, strict=True)]
    np.testing.assert_allclose(share, expected, rtol=1e-12)
    strict = find_duplicates([texts("a", near)], similarity=float(np.median(share)))
    assert (strict.similarity >= np.median(share)).all()
    assert 0 < len(strict.one) < len(one)


Listed = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(50, 100)).filter(lambda pair: pair[0] != pair[1]),
    max_size=40,
    unique_by=lambda pair: frozenset(pair[:2]),
)


@given(Listed)
def test_all_items_of_a_group_are_alike_and_no_two_groups_are(pairs: list[tuple[int, int, int]]) -> None:
    one, other, share = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1, 2))
    group = _all_alike(one, other, share / 100, 12)
    # Pairs of similarity 1 are chains: whoever they join is alike.
    alike = np.eye(12, dtype=bool)
    alike[one, other] = alike[other, one] = True
    chain = np.eye(12, dtype=bool)
    chain[one[share == 100], other[share == 100]] = chain[other[share == 100], one[share == 100]] = True
    for _ in range(12):
        chain = chain @ chain
    alike = chain @ alike @ chain
    names = [k if number < 0 else -1 - number for k, number in enumerate(group.tolist())]
    members = [np.flatnonzero(np.array(names) == name) for name in dict.fromkeys(names)]
    for here in members:
        assert alike[np.ix_(here, here)].all()
        assert len(here) == 1 or (group[here] >= 0).all()
    for a, b in ((a, b) for a in members for b in members if a is not b):
        assert not alike[np.ix_(a, b)].all()
    firsts = [int(here[0]) for here in members if len(here) > 1]
    assert [int(group[first]) for first in firsts] == list(range(len(firsts)))


def test_a_chain_of_likeness_is_no_group_and_its_ends_stay() -> None:
    """Each of ten fields is like its neighbours, as X-rays of one body are; the first is not like the last."""
    ends = photographs(3, seed=5).astype(np.float64)
    steps = [np.cos(turn) * (ends[0] - 128) + np.sin(turn) * (ends[1] - 128) + 128 for turn in np.linspace(0, 1.5, 12)]
    chain = np.clip(np.stack(steps), 0, 255).astype(np.uint8)
    source = images("all", np.concatenate([chain, photographs(40, seed=6)]))
    found = find_duplicates([source], drop="near")
    pairs = set(zip(found.one.tolist(), found.other.tolist(), strict=True))
    assert (0, 1) in pairs
    assert found.groups > 1
    for number in range(found.groups):
        here = np.flatnonzero(found.group == number).tolist()
        assert all((a, b) in pairs for a in here for b in here if a < b)
    assert any("of two groups" in sentence for sentence in found.warnings())
    assert find_duplicates([source], similarity=0.999).near_drop < found.near_drop


def test_near_duplicates_stay_in_the_list_and_together_in_a_split() -> None:
    base = photographs(20)
    source = images("a", np.concatenate([base, brightened(base[3], 0.9, 5)[None], base[4:5]]))
    found = find_duplicates([source])
    assert np.flatnonzero(~found.kept).tolist() == [21]
    clean = found.clean()
    assert np.flatnonzero(clean.column("group") != "").tolist() == [3, 20]
    assert (found.near_drop, found.warnings()) == (2, ())
    near = find_duplicates([source], drop="near")
    assert np.flatnonzero(~near.kept).tolist() == [20, 21]
    assert "group" not in near.clean().columns
    assert near.grouped().columns["duplicate_of"][20] == "a:a-3"


def test_a_link_goes_and_what_it_points_to_stays(tmp_path: Path) -> None:
    for place, image in enumerate(photographs(4)[:, 0]):
        Image.fromarray(image).save(tmp_path / f"{place}.png")
    (tmp_path / "0-before.png").symlink_to(tmp_path / "3.png")
    found = find_duplicates([read_source(tmp_path, streamed=True)])
    assert found.items.items[~found.kept].tolist() == ["0-before.png"]
    (tmp_path / "dead.png").symlink_to(tmp_path / "gone.png")
    with pytest.raises(InputError, match=r"dead\.png: the image cannot be read"):
        find_duplicates([read_source(tmp_path, streamed=True)])


def test_what_cannot_be_compared_is_refused() -> None:
    pictures, lines = images("a", photographs(3)), texts("b", ["one", "two"])
    with pytest.raises(InputError, match="some sources hold texts and some images"):
        find_duplicates([pictures, lines])
    with pytest.raises(InputError, match="two are called 'a'"):
        find_duplicates([pictures, pictures])
    with pytest.raises(InputError, match="2 splits for 3 items"):
        find_duplicates([pictures], splits=np.array(["train", "test"]))
    with pytest.raises(InputError, match=r"least similarity of 1\.2"):
        find_duplicates([lines], similarity=1.2)
    with pytest.raises(InputError, match="no items"):
        find_duplicates([])


def test_images_need_neither_torch_nor_polars() -> None:
    """A study on a bare machine curates its own images; people who only look for duplicates need no PyTorch."""
    program = """
import sys
for name in ("torch", "polars", "rich", "typer"):
    sys.modules[name] = None
import numpy as np
from dissensus_train.curate import ItemList, find_duplicates, select_items, split_groups
from dissensus.datasets import Source
images = np.random.default_rng(0).integers(0, 256, (30, 1, 16, 16), dtype=np.uint8)
images[7] = images[3]
found = find_duplicates([Source(name="a", items=np.arange(30).astype(str), images=images)])
chosen = select_items(found.clean(), 20, quotas={"source": None})
print(len(found.one), split_groups(chosen.items, {"train": 15, "test": 5}, by=[]).sizes)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "1 {'train': 15, 'test': 5}", done.stderr


@pytest.mark.parametrize(
    ("more", "duplicate"),
    [("they all came late", True), ("they did not come", False), ("nobody was there", False), ("why", False)],
)
def test_near_texts_one_sentence_more(more: str, duplicate: bool) -> None:
    """A sentence that is added makes a duplicate, unless it holds a negation and may turn the meaning round."""
    text = "we met the two old friends of my sister at the station before the train left for the coast"
    both = np.array([text, f"{text} {more}"], dtype=np.dtypes.StringDType())
    one, other, _ = near_texts(both, plain_forms(both))
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == ([(0, 1)] if duplicate else [])
