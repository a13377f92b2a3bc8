"""Small files to try every command with: simulated votes on short reviews, models' predictions, images of digits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.table_file import write_table
from dissensus.votes.simulate import simulate_votes
from dissensus.whole_file import whole_folder

if TYPE_CHECKING:
    from dissensus.arrays import Table

FILES: Final = {
    "votes.csv": "five people's votes on each of 120 short reviews, and the country of each person",
    "texts.csv": "the reviews",
    "gold.csv": "one label for each review, from before the votes",
    "new.csv": "reviews that nobody has judged",
    "weather.csv": "texts of another kind: out-of-distribution items",
    "model.csv": "a model's probabilities for each review",
    "other.csv": "those of a second model, which is too sure of itself",
    "llm.jsonl": "a language model's answers, three for each review",
    "each.csv": "what a third model expects each person to say of each review",
    "digits/": "40 images of digits",
}
"""What `write_sample` writes."""

_WORDS: Final = {"superb": 0.95, "lovely": 0.85, "fine": 0.6, "plain": 0.4, "slow": 0.2, "awful": 0.05}
_CLASSES: Final = ("bad", "good")
_PEOPLE: Final = ("Ana", "Ben", "Chloe", "Dan", "Eva", "Finn", "Gita", "Hugo", "Iris", "Jon", "Kiri", "Leo")
_ITEMS: Final = 120


def write_sample(folder: str | Path = ".") -> list[Path]:
    """Write the sample files into a folder, which is made where there is none. All votes in them are simulated.

    Raises:
        InputError: where one of the files is there already; nothing is written then.
    """
    import polars as pl

    folder = Path(folder)
    if there := [name for name in FILES if (folder / name).exists()]:
        raise InputError(f"{folder / there[0]}: there is such a file already; name another folder for the sample")
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    words = random.choice(list(_WORDS), (_ITEMS, 2))
    good = np.vectorize(_WORDS.get)(words).mean(axis=1)
    truth = np.column_stack([1 - good, good])
    # Half of the people are stricter than the others, so that it matters who is asked.
    strict = np.arange(len(_PEOPLE)) % 2 == 0
    confusion = np.where(strict[:, None, None], [[1.0, 0.0], [0.25, 0.75]], [[0.85, 0.15], [0.0, 1.0]])
    votes = simulate_votes(truth, 5, annotators=len(_PEOPLE), seed=0, confusion=confusion, classes=_CLASSES)
    assert votes.annotators is not None
    country = np.where(strict, "NZ", "UK").astype(np.dtypes.StringDType())
    names = np.array(_PEOPLE, dtype=np.dtypes.StringDType())
    votes = replace(votes, annotators=replace(votes.annotators, names=names, attributes={"country": country}))
    items = pl.Series("item", np.arange(_ITEMS))
    texts = pl.Series("text", [f"The food was {one} and the staff {other}." for one, other in words])
    new = pl.Series("text", [f"The room was {one} and the view {other}." for one, other in words[:20, ::-1]])
    # In words that the reviews have too: of texts without one, an encoder that counts words sees nothing.
    threes = zip(words[:, 0], np.roll(words[:, 1], 7), np.roll(words[:, 0], 13), strict=True)
    days = list({tuple(sorted(three)): three for three in threes}.values())[:20]
    weather = pl.Series(
        "text", [f"Rain was {one}, wind {other}, and the fog was {third}." for one, other, third in days]
    )
    model = 0.6 * truth + 0.4 * random.dirichlet([2, 2], _ITEMS)
    sure = model**3 / (model**3).sum(axis=1, keepdims=True)
    answers = (random.random((_ITEMS, 3)) < sure[:, 1:]).astype(int)
    person, item = (grid.ravel() for grid in np.meshgrid(np.arange(len(_PEOPLE)), np.arange(_ITEMS)))
    expected = np.einsum("nk,nkj->nj", model[item], confusion[person])
    named = pl.Series("annotator", np.array(_PEOPLE)[person])
    tables = {
        # As somebody's own file would be, without what `write_votes` adds to be read back the same.
        "votes.csv": votes.to_polars(),
        "texts.csv": pl.DataFrame([items, texts]),
        "gold.csv": pl.DataFrame([items, pl.Series("label", np.array(_CLASSES)[truth.argmax(axis=1)])]),
        "new.csv": pl.DataFrame([pl.Series("item", [f"new {number}" for number in range(len(new))]), new]),
        "weather.csv": pl.DataFrame([pl.Series("item", np.arange(len(weather))), weather]),
        "model.csv": pl.DataFrame([items, *_columns(model)]),
        "other.csv": pl.DataFrame([items, *_columns(sure)]),
        "llm.jsonl": pl.DataFrame(
            {"item": np.repeat(np.arange(_ITEMS), 3), "answer": np.array(_CLASSES)[answers.ravel()]}
        ),
        "each.csv": pl.DataFrame([pl.Series("item", item), named, *_columns(expected)]),
    }
    for name, table in tables.items():
        write_table(table, folder / name)
    _draw_digits(folder / "digits", random)
    return [folder / name for name in FILES]


def _columns(probabilities: Table) -> list[Any]:
    import polars as pl

    return [pl.Series(name, column.round(6)) for name, column in zip(_CLASSES, probabilities.T, strict=True)]


def _draw_digits(folder: Path, random: np.random.Generator) -> None:
    """Four noisy images of each digit, in a sub-folder for each."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(24)
    with whole_folder(folder) as part:
        for digit in range(10):
            (part / str(digit)).mkdir()
            for number in range(4):
                image = Image.new("L", (28, 28))
                ImageDraw.Draw(image).text(random.integers([4, -4], [12, 4]).tolist(), str(digit), fill=255, font=font)
                turned = np.asarray(image.rotate(random.uniform(-25, 25)), dtype=float)
                pixels = (turned + random.normal(0, 40, turned.shape)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(part / str(digit) / f"{digit}-{number}.png")
