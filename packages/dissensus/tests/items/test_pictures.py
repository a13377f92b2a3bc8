"""Image files as people see them: on a stated background, upright, and on one scale for a whole set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from dissensus.datasets.sources import read_source
from dissensus.errors import InputError
from dissensus.item_names import places_of_items
from dissensus.items.pictures import ImageReading, read_picture
from dissensus.items.reading import read_images
from dissensus_train.encoders.encoding import encoded, fit_encoder

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


def test_two_items_are_not_one_image(tmp_path: Path) -> None:
    grey(tmp_path / "p0.png", 3, kind=np.uint8)
    with pytest.raises(InputError, match=r"items 'p0' and 'p0.png' are both p0.png"):
        read_images(tmp_path, named("p0", "p0.png"))
