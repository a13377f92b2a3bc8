"""A study of preferences from files to a bundle: pair networks over two answers, and over a question and two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from dissensus.errors import InputError
from dissensus.items import Items
from dissensus.votes.reading import Options
from dissensus_train.bundles import export_bundle, load_model
from dissensus_train.studies import read_study, run
from dissensus_train.studies.beginning import first_study
from dissensus_train.studies.data import study_data

if TYPE_CHECKING:
    from pathlib import Path

STUDY = """\
[dataset]
votes = "votes.csv"
format = "preferences"
texts = "texts.csv"
text = {text}
encoder = "{encoder}"

[grid]
deliveries = ["majority", "multipass"]
models = ["pair-linear", "pair-spread"]

[training]
epochs = 2
batch_size = 16
"""


def preferred(path: Path, items: list[str]) -> None:
    """Three votes on each pair."""
    said = np.random.default_rng(1).choice(["A", "tie", "B"], (len(items), 3), p=[0.4, 0.3, 0.3])
    rows = [(item, f"p{k}", said[n, k]) for n, item in enumerate(items) for k in range(3)]
    pl.DataFrame(rows, schema=["item", "annotator", "winner"], orient="row").write_csv(path)


@pytest.mark.parametrize(
    ("columns", "encoder"), [(["left", "right"], "tfidf"), (["question", "left", "right"], "char-ngrams")]
)
def test_a_bundle_of_a_pair_network_says_the_mirror_image_of_swapped_answers(
    tmp_path: Path, columns: list[str], encoder: str
) -> None:
    generator = np.random.default_rng(0)
    words = np.array(["good", "fine", "bad", "poor"])
    said = words[generator.integers(4, size=(60, 3, 5))]
    texts = {
        name: [" ".join(row) for row in said[:, place]] for place, name in enumerate(("question", "left", "right"))
    }
    items = [f"i{number}" for number in range(60)]
    pl.DataFrame({"item": items, **texts}).write_csv(tmp_path / "texts.csv")
    preferred(tmp_path / "votes.csv", items)
    (tmp_path / "study.toml").write_text(STUDY.format(text=columns, encoder=encoder))
    scored = run(tmp_path / "study.toml", tmp_path / "store", engine="loop", device="cpu")
    assert len(scored.systems) == 4
    export_bundle(scored, tmp_path / "model")
    model = load_model(tmp_path / "model")
    given = [texts[name] for name in columns]
    one, other = (model.predict_proba(lists, device="cpu") for lists in (given, [*given[:-2], given[-1], given[-2]]))
    np.testing.assert_allclose(one, other[:, ::-1], atol=1e-6)
    assert np.ptp(one[:, 0]) > 1e-4, "items are told apart"
    with pytest.raises(InputError, match=r"give (two|three) lists"):
        model.predict_proba(given[:1])
    one_column = Items(names=np.array(items), texts=(np.array(given[0], dtype=np.dtypes.StringDType()),))
    with pytest.raises(InputError, match=r"reads (pairs|triples), and these are texts; name the columns"):
        model.predict_proba(one_column)


def test_three_columns_are_not_for_words_nor_people_for_pairs(tmp_path: Path) -> None:
    study = STUDY.format(text=["a", "b", "c"], encoder="tfidf")
    items = [f"i{number}" for number in range(30)]
    preferred(tmp_path / "votes.csv", items)
    pl.DataFrame({"item": items, "a": "one two", "b": "three", "c": "four"}).write_csv(tmp_path / "texts.csv")
    (tmp_path / "study.toml").write_text(study)
    with pytest.raises(InputError, match="tfidf reads one or two columns"):
        run(tmp_path / "study.toml", tmp_path / "store")
    known = study.replace('"pair-linear"', '{ name = "pair-linear", people = "annotator-bias" }')
    (tmp_path / "study.toml").write_text(known)
    with pytest.raises(InputError, match="favour a side"):
        read_study(tmp_path / "study.toml")


def test_a_first_study_of_preferences_has_a_pair_network_which_other_votes_are_refused(tmp_path: Path) -> None:
    items = [f"i{number}" for number in range(30)]
    preferred(tmp_path / "votes.csv", items)
    pl.DataFrame({"item": items, "response_a": "one two", "response_b": items}).write_csv(tmp_path / "texts.csv")
    path = tmp_path / "study.toml"
    text, _ = first_study(
        tmp_path / "votes.csv", tmp_path / "texts.csv", path=path, options=Options(format="preferences")
    )
    path.write_text(text)
    study = read_study(path)
    assert (study.models, study.format, len(study.parts)) == (("pair",), "preferences", 1)
    assert "annotator-bias" not in text
    assert study_data(study).human.classes == ("left", "tie", "right")
    path.write_text(text.replace('format = "preferences"', 'format = "long"\nreading = { label = "winner" }'))
    with pytest.raises(InputError, match="pair compares two answers, and the votes are no preferences"):
        study_data(read_study(path))


def test_texts_lie_as_the_votes_name_their_pair_or_are_refused(tmp_path: Path) -> None:
    """The first row on a pair names its sides, and the file of texts has them either way round."""
    pairs = [{"item": f"q{k}", "model_a": "xerxes", "model_b": "yves"} for k in range(40)]
    turned = [{"item": f"q{k}", "model_a": "yves", "model_b": "xerxes"} for k in range(0, 40, 3)]
    rows = [{**pair, "annotator": who, "winner": "model_a"} for pair in pairs for who in ("ann", "ben")]
    rows += [{**pair, "annotator": "cleo", "winner": "model_a"} for pair in turned]
    pairs = [{row["item"]: row for row in (*pairs, *turned)}[f"q{k}"] for k in range(40)]
    pl.DataFrame(rows).write_csv(tmp_path / "votes.csv")
    texts = [{**pair, "one": f"by {pair['model_a']}", "two": f"by {pair['model_b']}"} for pair in pairs]
    pl.DataFrame(texts).write_csv(tmp_path / "texts.csv")
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(text='["one", "two"]', encoder="tfidf"))
    items = study_data(read_study(path)).items
    assert items is not None
    assert [set(column.tolist()) for column in items.texts] == [{"by xerxes"}, {"by yves"}]
    sides = [{"item": pair["item"], "one": pair["model_a"], "two": pair["model_b"]} for pair in pairs]
    pl.DataFrame(sides).write_csv(tmp_path / "texts.csv")
    items = study_data(read_study(path)).items
    assert items is not None
    assert [set(column.tolist()) for column in items.texts] == [{"xerxes"}, {"yves"}]
    pl.DataFrame(texts).drop("model_a", "model_b").write_csv(tmp_path / "texts.csv")
    with pytest.raises(InputError, match=r"14 pairs \(first 'q0'\) were shown either way round, and nothing says"):
        study_data(read_study(path))
