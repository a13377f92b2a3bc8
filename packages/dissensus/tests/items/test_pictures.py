"""Image files as people see them: on a stated background, upright, and on one scale for a whole set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from dissensus.errors import InputError
from dissensus.item_names import places_of_items
from dissensus.items.pictures import ImageReading, read_picture

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.arrays import Names

SIDE = 6


def on(colour: str, picture: Image.Image) -> Any:
    """Pillow's own answer: the picture laid over a plain one of that colour."""
    below = Image.new("RGBA", picture.size, colour)
    return np.asarray(Image.alpha_composite(below, picture.convert("RGBA")).convert("RGB")).transpose(2, 0, 1)


def transparent(mode: str) -> Image.Image:
    """A picture in which some pixels are transparent, some half so, some not at all; as far as the mode allows."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 256, (SIDE, SIDE, 4), dtype=np.uint8)
    values[0, :, 3], values[1, :, 3] = 0, 255
    whole = Image.fromarray(values, "RGBA")
    if mode == "P":
        chosen = whole.convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE, colors=8)
        chosen.info["transparency"] = bytes([0, 255, 100, 255, 30, 255, 0, 255])
        return chosen
    return whole.convert(mode)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
@pytest.mark.parametrize("background", ["white", "black", "#ff8000"])
def test_transparent_pixels_show_the_background(tmp_path: Path, mode: str, background: str) -> None:
    transparent(mode).save(tmp_path / "a.png")
    seen = read_picture(tmp_path / "a.png", ImageReading(background))
    with Image.open(tmp_path / "a.png") as stored:
        expected = on(background, stored)
    assert np.abs(np.broadcast_to(seen, expected.shape).astype(int) - expected).max() <= 1
    # Grey on grey stays grey; on orange it cannot.
    assert len(seen) == (1 if mode == "LA" and background != "#ff8000" else 3)


def test_opaque_pictures_do_not_depend_on_the_background(tmp_path: Path) -> None:
    opaque = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    Image.fromarray(opaque).save(tmp_path / "rgb.png")
    Image.fromarray(opaque).convert("RGBA").save(tmp_path / "rgba.png")
    for path in (tmp_path / "rgb.png", tmp_path / "rgba.png"):
        np.testing.assert_array_equal(read_picture(path, ImageReading("black")), opaque.transpose(2, 0, 1))


def test_one_colour_may_be_the_transparent_one(tmp_path: Path) -> None:
    """PNG without a channel of opacity may name a colour, or a grey, that is transparent."""
    red = Image.new("RGB", (4, 4), (255, 0, 0))
    red.putpixel((0, 0), (0, 0, 255))
    red.save(tmp_path / "rgb.png", transparency=(255, 0, 0))
    np.testing.assert_array_equal(read_picture(tmp_path / "rgb.png")[:, 0, :2].T, [[0, 0, 255], [255, 255, 255]])
    Image.new("L", (4, 4), 7).save(tmp_path / "l.png", transparency=7)
    assert (read_picture(tmp_path / "l.png") == 255).all()


def test_the_rest_is_read_as_pillow_reads_it_or_refused_in_a_sentence(tmp_path: Path) -> None:
    stripes = np.zeros((4, 8, 3), dtype=np.uint8)
    stripes[:, 4:] = (250, 120, 10)
    picture = Image.fromarray(stripes)
    picture.convert("CMYK").save(tmp_path / "cmyk.tif")
    assert np.abs(read_picture(tmp_path / "cmyk.tif").astype(int) - stripes.transpose(2, 0, 1)).max() <= 2
    turned = Image.Exif()
    turned[0x0112] = 6
    picture.save(tmp_path / "turned.png", exif=turned)
    np.testing.assert_array_equal(
        read_picture(tmp_path / "turned.png"), np.rot90(stripes, -1).transpose(2, 0, 1), strict=True
    )
    (tmp_path / "half.png").write_bytes((tmp_path / "turned.png").read_bytes()[:80])
    with pytest.raises(InputError, match=r"half.png: the image cannot be read .*save it anew"):
        read_picture(tmp_path / "half.png")
    with pytest.raises(InputError, match="background='wite' is no colour"):
        ImageReading("wite")


def named(*names: str) -> Names:
    return np.array(names, dtype=np.dtypes.StringDType())


@pytest.mark.parametrize(
    ("wanted", "names", "places"),
    [
        (("p0", "p1"), ("p1.png", "p0.JPG"), [1, 0]),
        (("p1.png", "p0.jpg"), ("p0", "p1"), [1, 0]),
        (("p0", "p1.png"), ("p1.png", "p0.tiff"), [1, 0]),
        # Other endings are part of the name, and so are two different ones.
        (("p0.txt", "p0.png"), ("p0", "p0.jpg"), [-1, 0]),
        (("p0.png",), ("p0.jpg",), [-1]),
        # The name itself comes first.
        (("p0",), ("p0.png", "p0", "p0.jpg"), [1]),
    ],
)
def test_names_with_and_without_an_images_ending_are_one_item(
    wanted: tuple[str, ...], names: tuple[str, ...], places: list[int]
) -> None:
    assert places_of_items(named(*wanted), named(*names)).tolist() == places


def test_numbers_may_have_endings_too() -> None:
    assert places_of_items(np.array([7, 3]), named("3.png", "7.png")).tolist() == [1, 0]
    assert places_of_items(named("3.png", "7.png"), np.array([7, 3])).tolist() == [1, 0]


def test_a_name_that_may_be_two_items_is_refused() -> None:
    with pytest.raises(InputError, match=r"item 'p0' may be 'p0.png' or 'p0.jpg'"):
        places_of_items(named("p0"), named("p0.png", "p0.jpg"))
    with pytest.raises(InputError, match=r"items 'p0.png' and 'p0.jpg' are both 'p0'"):
        places_of_items(named("p0.png", "p0.jpg"), named("p0"))
