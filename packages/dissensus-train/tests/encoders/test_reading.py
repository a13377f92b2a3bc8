from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dissensus.datasets.sources import read_source
from dissensus.errors import InputError
from dissensus.items import Items
from dissensus.items.pictures import ImageReading, read_picture
from dissensus_train.encoders.encoding import encoded, fit_encoder
from dissensus_train.encoders.reading import read_features, read_images, read_texts

if TYPE_CHECKING:
    from pathlib import Path


def names(*given: str) -> Any:
    return np.array(given, dtype=np.dtypes.StringDType())


def written(folder: Path, text: str, name: str = "texts.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_texts_come_in_the_order_of_the_votes_with_the_other_columns(tmp_path: Path) -> None:
    path = written(tmp_path, 'id,text,gold\na,"one, two",x\nb,three,y\nc,unused,\n')
    items = read_texts(path, names("b", "a"))
    assert [column.tolist() for column in items.texts] == [["three", "one, two"]]
    assert items.columns["gold"].tolist() == ["y", "x"]
    assert items.kind == "texts"


def test_pairs_are_found_by_their_names_or_named(tmp_path: Path) -> None:
    path = written(tmp_path, "item,premise,hypothesis,note\n1,p,h,n\n")
    assert [column.tolist() for column in read_texts(path).texts] == [["p"], ["h"]]
    assert [column.tolist() for column in read_texts(path, text=("note", "premise")).texts] == [["n"], ["p"]]


def test_one_further_column_of_text_is_the_text_whatever_its_name(tmp_path: Path) -> None:
    assert read_texts(written(tmp_path, "item,was_sagt_sie\n1,Guten Tag\n")).texts[0].tolist() == ["Guten Tag"]


def test_an_item_may_stand_in_many_rows_with_one_text_as_in_a_file_of_votes(tmp_path: Path) -> None:
    path = written(tmp_path, "instance_id,user_id,text,rating\n7,a,hello,1\n7,b,hello,2\n8,a,bye,1\n")
    assert read_texts(path, np.array([8, 7])).texts[0].tolist() == ["bye", "hello"]


def test_json_has_an_entry_for_each_item(tmp_path: Path) -> None:
    path = written(tmp_path, '{"1": {"text": "a", "soft_label": {"0": 1}}, "2": {"text": "b"}}', "texts.json")
    assert read_texts(path, names("2")).texts[0].tolist() == ["b"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("item,text\na,one\n", r"texts.csv: no row for item 'b'; every item with votes needs one"),
        ("item,text\na,one\nb,\n", r"texts.csv, line 3: item b has no text in column 'text'; fill it"),
        ("item,text\na,one\nb,two\na,other\n", r"line 4: item a has another text in column 'text' than in line 2"),
        ("item,one,two,three\na,x,y,z\n", "none of the columns .* is known to hold texts; name it, or two, with text="),
        ("wer,text\na,x\n", "none of the columns wer, text is known to name the items; name it with item="),
    ],
)
def test_texts_that_do_not_fit_are_refused_with_the_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_texts(written(tmp_path, text), names("a", "b"))


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "item,text\na,one\n")
    with pytest.raises(InputError, match="there is no column 'id'"):
        read_texts(path, item="id")
    with pytest.raises(InputError, match="there is no column 'body'"):
        read_texts(path, text=("body",))
    with pytest.raises(InputError, match="this is not JSON"):
        read_texts(written(tmp_path, "{", "t.json"))


def photo(path: Path, width: int, height: int, colour: Any = (200, 100, 50), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (width, height), colour).save(path)


def test_images_are_called_by_path_name_or_stem(tmp_path: Path) -> None:
    photo(tmp_path / "cats" / "a.png", 8, 6)
    photo(tmp_path / "dogs" / "b.jpg", 8, 6)
    for called in (("cats/a.png", "dogs/b.jpg"), ("a.png", "b.jpg"), ("a", "dogs/b")):
        items = read_images(tmp_path, names(*called))
        assert [path.name for path in items.files] == ["a.png", "b.jpg"]
    assert read_images(tmp_path).names.tolist() == ["cats/a.png", "dogs/b.jpg"]
    with pytest.raises(InputError, match="no image for item 'c'"):
        read_images(tmp_path, names("a", "c"))
    photo(tmp_path / "dogs" / "a.png", 8, 6)
    with pytest.raises(InputError, match=r"item 'a' may be cats/a.png or dogs/a.png"):
        read_images(tmp_path, names("a"))
    with pytest.raises(InputError, match="there is no such folder"):
        read_images(tmp_path / "nowhere")


def test_images_are_read_at_their_size_and_squared_in_the_middle(tmp_path: Path) -> None:
    """A wide image of three stripes: its middle square is the middle stripe."""
    stripes = np.zeros((10, 30, 3), dtype=np.uint8)
    stripes[:, 10:20] = 255
    Image.fromarray(stripes).save(tmp_path / "a.png")
    photo(tmp_path / "b.png", 5, 8, 128, "L")
    items = read_images(tmp_path)
    assert items.images(np.array([0])).shape == (1, 3, 10, 30)
    squares = items.images(np.array([0, 1]), side=10)
    assert squares.shape == (2, 3, 10, 10)
    assert (squares[0] == 255).all()
    assert (squares[1] == 128).all()
    with pytest.raises(InputError, match=r"b.png: 5 x 8 pixels, while .*a.png has 30 x 10; .*pixels:64"):
        items.images(np.array([0, 1]))
    assert items.images(np.array([0]), channels=1).shape == (1, 1, 10, 30)


def test_items_are_of_one_kind_and_each_has_a_name() -> None:
    with pytest.raises(InputError, match="one of them only"):
        Items(names=names("a"))
    with pytest.raises(InputError, match="give one of each per item"):
        Items(names=names("a", "b"), texts=(names("x"),))


WANTED = names("i0", "i1")


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"items": ["i0", "i1", "i0"], "features": np.zeros((3, 2))}, "item 'i0' is there twice"),
        ({"items": ["i0", "i1"], "features": np.zeros(2)}, "'features' has 1 axis; features are a row of numbers"),
        ({"items": ["i0", "i1"], "features": np.zeros((2, 0))}, "no columns; give at least one number per item"),
        ({"items": ["i0", "i1"], "features": np.zeros((2, 2), complex)}, "of type complex128; give real numbers"),
        ({"items": ["i0", "i1"], "features": np.array([["a"], ["b"]])}, "of type <U1; give real numbers"),
        ({"items": ["i0", "i1"], "features": np.array([[1.0], [np.nan]])}, "features of item i1 hold NaN"),
        ({"items": ["i0", "i1"], "features": np.array([[1.0], [1e300]])}, "item i1 hold .* beyond float32"),
        ({"items": [["i0"], ["i1"]], "features": np.zeros((2, 2))}, "'items' has 2 axes"),
    ],
)
def test_features_that_make_no_sense_are_refused(tmp_path: Path, arrays: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=sentence) as refused:
        read_features(path, WANTED)
    assert str(refused.value).startswith(str(path))


def test_features_of_a_csv_are_refused_by_the_ending(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"features are not read from '.csv' files; give a .npz") as refused:
        read_features(written(tmp_path, "a\n"), WANTED)
    assert "pickle" not in str(refused.value)
    with pytest.raises(InputError, match="there is no such file"):
        read_features(tmp_path / "x.npz", WANTED)


@pytest.mark.parametrize("nested", [True, False])
def test_features_of_a_parquet_file_are_lists_or_columns_of_numbers(tmp_path: Path, nested: bool) -> None:
    path = tmp_path / "x.parquet"
    rows = [[1.0, 2.0], [3.0, 4.0]]
    table = {"vector": rows} if nested else {"first": [1.0, 3.0], "second": [2.0, 4.0]}
    pl.DataFrame({"item": ["i1", "i0"], **table}).write_parquet(path)
    assert read_features(path, WANTED).tolist() == [[3, 4], [1, 2]]
    pl.DataFrame({"item": ["i1", "i0"], "words": ["a", "b"]}).write_parquet(path)
    with pytest.raises(InputError, match="column 'words' holds String, not numbers"):
        read_features(path, WANTED)


def grey(path: Path, *values: float, kind: Any = np.uint16) -> None:
    Image.fromarray(np.array([values], dtype=kind)).save(path)


def test_sixteen_bits_are_scaled_once_for_a_set(tmp_path: Path) -> None:
    """1000 of 1000 and 1000 of 1100 are the same grey: the largest value of all files decides, not that of each."""
    grey(tmp_path / "a.png", 0, 1000)
    grey(tmp_path / "b.png", 1000, 1100)
    images = read_images(tmp_path)
    expected = np.rint(np.array([[0, 1000], [1000, 1100]]) * 255 / 4095)
    np.testing.assert_array_equal(images.images(np.arange(2)).reshape(2, 2), expected)
    # Whatever is looked at, and by whom: one of them alone, a source of curate and OOD, an encoder.
    np.testing.assert_array_equal(images.take(np.array([0])).images(np.array([0])).ravel(), expected[0])
    np.testing.assert_array_equal(np.asarray(read_source(tmp_path).images).reshape(2, 2), expected)
    pixels = fit_encoder("pixels", images, folder=tmp_path)
    np.testing.assert_allclose(encoded(pixels, images).reshape(2, 2), expected / 255, rtol=1e-6)
    assert (
        images.take(np.array([0])).fingerprint
        != replace(images.take(np.array([0])), reading=ImageReading()).fingerprint
    )
    # A new image on the scale of these.
    grey(tmp_path / "new.png", 4095, 5000)
    np.testing.assert_array_equal(read_picture(tmp_path / "new.png", images.read_as).ravel(), [255, 255])
    grey(tmp_path / "new.png", 60000)
    with pytest.raises(InputError, match=r"pixels from 60000 to 60000, and those of its set go from 0 to 4095"):
        read_picture(tmp_path / "new.png", images.read_as)


def test_floats_are_scaled_once_for_a_set_and_bytes_as_ever(tmp_path: Path) -> None:
    for name, values in (("a.tif", (0.0, 0.5)), ("b.tif", (0.25, 1.0))):
        grey(tmp_path / name, *values, kind=np.float32)
    grey(tmp_path / "c.png", 10, 255, kind=np.uint8)
    shown = read_images(tmp_path).images(np.arange(3)).reshape(3, 2)
    np.testing.assert_array_equal(shown, [[0, 128], [64, 255], [10, 255]])
    grey(tmp_path / "d.tif", -2.0, 3.0, kind=np.float32)
    shown = read_images(tmp_path).images(np.arange(4)).reshape(4, 2)
    np.testing.assert_array_equal(shown, [[102, 128], [115, 153], [10, 255], [0, 255]])
    # Whole numbers beside them have a scale of their own.
    grey(tmp_path / "e.png", 0, 65535)
    np.testing.assert_array_equal(read_images(tmp_path).images(np.arange(5)).reshape(5, 2), [*shown, [0, 255]])


def test_two_items_are_not_one_image(tmp_path: Path) -> None:
    grey(tmp_path / "p0.png", 3, kind=np.uint8)
    with pytest.raises(InputError, match=r"items 'p0' and 'p0.png' are both p0.png"):
        read_images(tmp_path, names("p0", "p0.png"))
