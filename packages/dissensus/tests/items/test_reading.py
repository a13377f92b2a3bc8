from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dissensus.errors import InputError
from dissensus.items import Items, read_images, read_texts
from dissensus.items.reading import read_features

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
        ("item,one,two,three\na,x,y,z\n", "none of the columns .* is known to hold the texts; set text under"),
        ("wer,text\na,x\n", "none of the columns wer, text is known to name the items; set item under"),
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
