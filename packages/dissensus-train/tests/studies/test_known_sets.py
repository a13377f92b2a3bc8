"""The known sets as studies read them: inputs, official splits, original labels."""

from __future__ import annotations

import os
import pickle
import zipfile
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import softmax

from dissensus.datasets import find
from dissensus.datasets.vader import read_snippets
from dissensus.errors import InputError
from dissensus.labels.schemes import frequency
from dissensus.together.sets import mass_before, set_thresholds
from dissensus.votes.cifar import read_cifar_10n_labels
from dissensus.votes.simulate import simulate_votes
from dissensus_train.studies import read_study
from dissensus_train.studies.data import study_data
from dissensus_train.studies.labelled import LabelledItems
from dissensus_train.studies.labelled_sets import LABELLED_SETS
from dissensus_train.studies.spec import SHARES
from dissensus_train.studies.splitting import study_splits
from dissensus_train.studies.text_sets import chaosnli, whole_texts
from tests.datasets.test_snippets import archive, published

if TYPE_CHECKING:
    from dissensus_train.training.data import TrainingData

real = pytest.mark.skipif("DISSENSUS_DATA" not in os.environ, reason="DISSENSUS_DATA is not set: no real data here")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def data(folder: Path, name: str, rest: str = "", **change: Any) -> TrainingData:
    path = folder / "study.toml"
    path.write_text(f'[dataset]\nname = "{name}"\n{rest}')
    return study_data(replace(read_study(path), **change))


def sizes(made: TrainingData) -> dict[str, int]:
    return {name: len(members) for name, members in made.splits.items()}


def test_words_keep_their_features_and_a_term_listed_twice_is_in_one_split(tmp_path: Path) -> None:
    made = data(tmp_path, "words")
    assert made.shape == (1024,)
    assert made.items is not None
    assert made.items.texts[0][:1].tolist() == ["$:"]
    texts = made.items.texts[0]
    train, test = (set(texts[made.splits[name]].tolist()) for name in ("train", "test"))
    assert not train & test


@real
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hs-brexit", {"train": 784, "validation": 168, "test": 168}),
        ("md-agreement", {"train": 6592, "validation": 1104, "test": 3057}),
        ("convabuse", {"train": 2398, "validation": 812, "test": 840}),
        ("armis", {"train": 657, "validation": 141, "test": 145}),
        ("paraphrase", {"train": 400, "validation": 50, "test": 50}),
    ],
)
def test_lewidi_has_its_official_splits_and_soft_labels(tmp_path: Path, name: str, expected: dict[str, int]) -> None:
    import json

    from dissensus_train.studies.text_sets import LEWIDI

    made = data(tmp_path, name)
    assert sizes(made) == expected
    assert len(made.human.classes) == (11 if name == "paraphrase" else 2)
    path = Path(os.environ["DISSENSUS_DATA"]) / f"{LEWIDI[name]}_dev.json"
    entries = json.loads(path.read_text(encoding="utf-8"))
    places = {str(item): place for place, item in enumerate(made.human.items.tolist())}
    for number, entry in entries.items():
        place = places[f"validation-{number}"]
        stated = [entry["soft_label"].get(k, entry["soft_label"].get(f"{k}.0")) for k in made.human.classes]
        assert made.human.probabilities[place].tolist() == pytest.approx(stated, abs=0.0051)
    assert made.sparse
    assert len(made.items or []) == sum(expected.values())


@real
def test_a_judgement_with_two_labels_is_shared_between_them(tmp_path: Path) -> None:
    made = data(tmp_path, "varierrnli")
    assert sizes(made) == {"train": 388, "validation": 50, "test": 50}
    assert made.items is not None
    (place,) = np.flatnonzero(
        made.items.texts[1]
        == "Investment in the financial sector explains most of the acceleration in labor productivity."
    )
    # Two people said contradiction, and two contradiction and neutral.
    assert dict(zip(made.human.classes, made.human.probabilities[place].tolist(), strict=True)) == pytest.approx(
        {"contradiction": 0.75, "entailment": 0.0, "neutral": 0.25}
    )


@real
@pytest.mark.parametrize(("source", "items", "agrees"), [("snli", 1514, 0.750), ("mnli", 1569, 0.682)])
def test_chaosnli_brings_released_logits_pairs_and_old_labels(
    tmp_path: Path, source: str, items: int, agrees: float
) -> None:
    made = data(tmp_path, "chaosnli", f'sources = ["{source}"]\n[grid]\ntargets = ["frequency", "original"]\n')
    assert len(made.human) == items
    assert made.shape == (9,)
    assert made.items is not None
    assert len(made.items.texts) == 2
    same = made.targets["original"].majority().label == made.human.majority().label
    assert same.mean() == pytest.approx(agrees, abs=0.01)
    # The logits are in the order of the classes: in every other order the networks would be right less often.
    guessed, label = made.features[:, :3].argmax(axis=1), made.targets["original"].majority().label
    right = {order: (np.array(order)[guessed] == label).mean() for order in permutations(range(3))}
    assert max(right, key=lambda order: right[order]) == (0, 1, 2)


@real
def test_popquorn_brings_its_comments(tmp_path: Path) -> None:
    made = data(tmp_path, "popquorn")
    assert made.human.ordered
    assert made.items is not None
    place = made.human.items.tolist().index(530)
    assert str(made.items.texts[0][place]).startswith("I think a lot of Dethklok songs use drop C")
    assert sum(sizes(made).values()) == 1500


@real
def test_sets_of_the_benchmark_bring_their_texts_beside_the_right_votes(tmp_path: Path) -> None:
    def text(made: TrainingData, item: object) -> str:
        assert made.items is not None
        return str(made.items.texts[0][made.human.items.tolist().index(item)])

    crehate = data(tmp_path, "crehate")
    assert text(crehate, "SBIC-0").startswith("if you make a fact filled book")
    assert text(crehate, "AU-YouTube-0").startswith("The National Authoritarian Terrorist")
    davidson = data(tmp_path, "davidson")
    assert "boy dats cold" in text(davidson, 1)
    assert davidson.human.counts[1].tolist() == [0, 3, 0]
    emobank = data(tmp_path, "emobank-valence")
    assert sizes(emobank) == {"train": 8062, "validation": 1000, "test": 1000}
    assert text(emobank, "110CYL068_1079_1110") == "If I wasn't working here."
    assert emobank.human.items[emobank.splits["test"]].tolist().count("110CYL068_1079_1110") == 1
    dices = data(tmp_path, "dices")
    assert text(dices, "859").split("\n")[1] == "B: He costs money vaccines r free"
    assert sum(sizes(dices).values()) == 990


@real
def test_cifar_10h_brings_cifars_own_labels(tmp_path: Path) -> None:
    made = data(tmp_path, "cifar-10h", '[grid]\ntargets = ["original"]\n')
    same = made.targets["original"].majority().label == made.human.majority().label
    assert same.mean() == pytest.approx(0.9921, abs=5e-5)
    assert made.items is not None
    assert made.items.pixels is not None
    assert np.array_equal(made.features, made.items.pixels.astype(np.float32) / np.float32(255))


@real
def test_cifar_10n_is_trained_on_and_cifar_10h_tested_on(tmp_path: Path) -> None:
    # A network that reads the images needs no features, whose 60,000 pictures would take most of the time.
    rest = '[splits]\nvalidation = 0.1\n[grid]\ntargets = ["frequency", "original"]\nmodels = ["timm:any"]\n'
    made = data(tmp_path, "cifar-10n", rest)
    assert sizes(made) == {
        "train": pytest.approx(45_000, abs=10),
        "validation": pytest.approx(5_000, abs=10),
        "test": 10_000,
    }
    votes = made.human.panel_size
    assert set(votes[made.splits["train"]].tolist()) == {3}
    assert votes[made.splits["test"]].min() >= 47
    # Each of the three labels is right for about 83 % of images (Wei et al. 2022).
    right = (made.human.probabilities * made.targets["original"].probabilities).sum(axis=1)
    assert right[made.splits["train"]].mean() == pytest.approx(0.826, abs=0.01)


def test_a_set_whose_splits_are_official_is_split_otherwise_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('[dataset]\nname = "hs-brexit"\n')
    assert read_study(path).splits == {}
    path.write_text('[dataset]\nname = "hs-brexit"\n[splits]\ntrain = 0.7\nvalidation = 0.15\ntest = 0.15\n')
    assert read_study(path).splits == SHARES
    path.write_text('[dataset]\nname = "cifar-10n"\n[splits]\nvalidation = 1.5\n')
    with pytest.raises(InputError, match=r"give a number, 0 or more and 1 or less"):
        read_study(path)


@pytest.mark.parametrize("name", [name for name in LABELLED_SETS if not name.startswith(("soft", "words"))])
def test_a_set_that_is_not_here_is_refused_with_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"is missing; (download|fetch|get) "):
        LABELLED_SETS[name].read()


def labels_file(path: Path, held: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(held, protocol=2))
    return path


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("this must not run",))


def test_labels_of_cifar_10n_are_read_without_running_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("random_label1", "random_label2", "random_label3", "clean_label")
    said = {name: np.arange(50_000) % 10 for name in names}
    votes = read_cifar_10n_labels(labels_file(tmp_path / "a.pt", said))
    assert votes.counts.tolist() == (3 * np.eye(10, dtype=np.int64)[np.arange(50_000) % 10]).tolist()
    for held, sentence in (
        ({**said, "more": Evil()}, "which is no plain array"),
        ({"random_label1": np.arange(3)}, "cannot be read as CIFAR-10_human.pt .'random_label2'."),
        ({**said, "random_label2": 1 + np.arange(50_000) % 10}, "expected three labels from 0 to 9"),
    ):
        path = labels_file(tmp_path / "b.pt", held)
        with pytest.raises(InputError, match=sentence):
            read_cifar_10n_labels(path)
    assert not capsys.readouterr().out
    (tmp_path / "c.pt").write_bytes(b"no zip")
    with pytest.raises(InputError, match="cannot be read as a file of plain arrays"):
        read_cifar_10n_labels(tmp_path / "c.pt")


@pytest.mark.parametrize("by_file", [False, True])
def test_validation_taken_from_training_items_tears_no_group(tmp_path: Path, by_file: bool) -> None:
    """Items of one group in training and in validation would be a leak, whoever says which belong together."""
    human = frequency(simulate_votes(np.random.default_rng(0).dirichlet(np.ones(3), 240), 5, annotators=20, seed=0))
    group = np.random.default_rng(1).permutation(240) // 4
    rows = [f"{item},{number}" for item, number in zip(human.items.tolist(), group.tolist(), strict=True)]
    (tmp_path / "groups.csv").write_text("\n".join(["item,group", *rows]))
    (tmp_path / "study.toml").write_text(
        'dataset = { name = "cifar-10n" }\n[splits]\nvalidation = 0.3\n' + ('file = "groups.csv"\n' if by_file else "")
    )
    given = LabelledItems(
        features=np.zeros((240, 1), dtype=np.float32),
        human=human,
        targets={},
        splits={"train": np.flatnonzero(group < 50), "test": np.flatnonzero(group >= 50)},
        source=np.full(240, ""),
        together=None if by_file else group,
    )
    splits = study_splits(read_study(tmp_path / "study.toml"), given)
    train, validation = (set(group[splits[name]].tolist()) for name in ("train", "validation"))
    assert not train & validation
    assert train | validation == set(range(50))
    assert splits["test"].tolist() == given.splits["test"].tolist()
    assert 0.2 < len(splits["validation"]) / 200 < 0.4


@real
def test_real_people_are_covered_as_promised_over_random_splits() -> None:
    """ChaosNLI's hundred people against released logits: half of the items calibrate, the other half are people."""
    data = chaosnli().of_source("snli")
    said = softmax(np.asarray(data.features, dtype=np.float64).reshape(len(data), 3, 3), axis=2).mean(axis=1)
    before, p = mass_before(said), data.human.probabilities
    majority = np.eye(3)[p.argmax(axis=1)]
    rng = np.random.default_rng(0)
    held: dict[str, list[float]] = {"votes": [], "majorities": []}
    for _ in range(20):
        order = rng.permutation(len(p))
        one, other = order[: len(p) // 2], order[len(p) // 2 :]
        for name, target in (("votes", p), ("majorities", majority)):
            inside = before[other] <= set_thresholds(target[one], before[one], 0.9)
            held[name].append(float((p[other] * inside).sum(axis=1).mean()))
    assert np.mean(held["votes"]) == pytest.approx(0.9, abs=0.01)
    assert np.mean(held["majorities"]) < 0.87


def test_sentences_of_one_piece_and_equal_sentences_of_the_snippets_go_together(tmp_path: Path) -> None:
    votes = read_snippets(archive(tmp_path, published()))
    together = whole_texts(votes, votes.item_attributes["text"])
    # Every piece here has a sentence of piece 1, through which all hang together, across kinds.
    assert len(set(together.tolist())) == 1
    files = {name: text.replace("Good.", f"Good {name}.") for name, text in published().items()}
    votes = read_snippets(
        archive(tmp_path, {name: text.replace("Bad.", f"Bad {name}.") for name, text in files.items()})
    )
    apart = whole_texts(votes, votes.item_attributes["text"])
    assert apart[0] == apart[1] == apart[2]
    assert len(set(apart.tolist())) == 4


@real
def test_the_longest_editorial_of_the_snippets_with_all_that_it_shares_a_sentence_with() -> None:
    known = find("snippets")
    if not known.present():
        pytest.skip("the archive of the snippets is not in DISSENSUS_DATA")
    votes = known.load()
    assert np.bincount(whole_texts(votes, votes.item_attributes["text"])).max() == 70
