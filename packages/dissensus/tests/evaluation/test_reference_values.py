"""Published and known numbers, from real votes and real predictions.

ChaosNLI has a hundred votes per item, and even so 14 of 1,514 majorities (SNLI) are tied. The papers break ties by the
order in which classes happen to be stored, and not the same way in every metric. Where that moves a published digit,
the test gives the metric votes whose ties are broken in that order, and says what our own rule gives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from scipy.special import softmax

from dissensus.evaluation import metrics as m

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evaluation.panels import Table

DIGITS: Final = 0.0006
"""Half of the third digit, which is the last that the papers print, and a little for theirs being rounded twice."""

FILES: Final = {"snli": "chaosNLI_snli.jsonl", "mnli_m": "chaosNLI_mnli_m.jsonl", "alphanli": "chaosNLI_alphanli.jsonl"}


@dataclass(frozen=True, eq=False)
class ChaosNLI:
    """Shares of votes, and logits by model name, of the items that have predictions."""

    human: Table
    logits: dict[str, Table]

    def model(self, name: str, *, temperature: float = 1.0) -> Table:
        return np.asarray(softmax(self.logits[name] / temperature, axis=1))

    def mean(self, metric: Any, names: list[str], *, temperature: float = 1.0) -> float:
        """The mean over models of a metric."""
        return float(np.mean([np.mean(metric(self.human, self.model(n, temperature=temperature))) for n in names]))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def chaos(data: Path) -> dict[str, ChaosNLI]:
    folder = data / "chaosNLI_v1.0"
    predicted = {(row["subset"], row["uid"]): row["logits"] for row in lines(folder / "model_logits.jsonl")}
    found = {}
    for subset in ("snli", "mnli_m"):
        rows = [row for row in lines(folder / FILES[subset]) if (subset, row["uid"]) in predicted]
        given = [predicted[subset, row["uid"]] for row in rows]
        counts = np.array([row["label_count"] for row in rows])
        logits = {name: np.array([each[name] for each in given]) for name in given[0]}
        found[subset] = ChaosNLI(human=counts / counts.sum(axis=1, keepdims=True), logits=logits)
    return found


@pytest.fixture(scope="module")
def snli(chaos: dict[str, ChaosNLI]) -> ChaosNLI:
    return chaos["snli"]


def last_wins(human: Table) -> Table:
    """The votes with every tie broken in favour of the class stored last, as `argsort` does."""
    return human + 1e-9 * np.arange(human.shape[1])


def first_wins(human: Table) -> Table:
    """The votes with every tie broken in favour of the class stored first, as `argmax` does."""
    return human - 1e-9 * np.arange(human.shape[1])


# Baan et al. 2022, table 1 -----------------------------------------------------------------------------------------

SEEDS: Final = ["roberta-base_0", "roberta-base_1", "roberta-base_2"]

BAAN: Final = {
    (1, "accuracy"): (0.740, 0.736, 0.752),
    (1, "ece"): (0.147, 0.119, 0.141),
    (1, "rank_cs"): (0.625, 0.596, 0.627),
    (1, "abs_entce"): (0.310, 0.273, 0.314),
    (1, "tvd"): (0.259, 0.249, 0.261),
    (2, "ece"): (0.036, 0.030, 0.020),
    (2, "abs_entce"): (0.208, 0.236, 0.198),
    (2, "tvd"): (0.217, 0.222, 0.214),
}

BROKEN_LIKE_THEIRS: Final = {"accuracy": last_wins, "rank_cs": last_wins, "ece": first_wins}
"""`argsort` gives their accuracy and RankCS, `argmax` their calibration error."""


@pytest.mark.parametrize(("temperature", "name"), BAAN)
def test_the_table_of_baan_et_al(snli: ChaosNLI, temperature: int, name: str) -> None:
    human = BROKEN_LIKE_THEIRS[name](snli.human) if name in BROKEN_LIKE_THEIRS else snli.human
    metric: Any = getattr(m, name)
    values = [np.mean(metric(human, snli.model(seed, temperature=temperature))) for seed in SEEDS]
    assert values == pytest.approx(BAAN[temperature, name], abs=DIGITS)


@pytest.mark.parametrize(("temperature", "name"), [key for key in BAAN if key[1] != "rank_cs"])
def test_our_tie_rule_moves_no_number_of_that_table_by_more_than_the_last_digit(
    snli: ChaosNLI, temperature: int, name: str
) -> None:
    metric: Any = getattr(m, name)
    values = [np.mean(metric(snli.human, snli.model(seed, temperature=temperature))) for seed in SEEDS]
    assert values == pytest.approx(BAAN[temperature, name], abs=0.0015)


def test_rank_cs_is_two_points_higher_where_ties_of_people_may_come_in_any_order(snli: ChaosNLI) -> None:
    tied = np.mean([len(set(row)) < 3 for row in snli.human.tolist()])
    assert tied == pytest.approx(50 / 1514)
    for seed, published in zip(SEEDS, BAAN[1, "rank_cs"], strict=True):
        model = snli.model(seed)
        ours = m.rank_cs(snli.human, model).mean()
        stored_backwards = m.rank_cs(last_wins(snli.human[:, ::-1]), model[:, ::-1]).mean()
        assert stored_backwards - published > 0.009, "their number depends on the order of classes by a point"
        assert m.rank_cs(snli.human[:, ::-1], model[:, ::-1]).mean() == ours
        assert published < stored_backwards < ours < published + tied


def test_people_score_a_calibration_error_of_a_quarter_against_their_own_majority(snli: ChaosNLI) -> None:
    broken = first_wins(snli.human)
    assert m.ece(broken, broken) == pytest.approx(0.245, abs=DIGITS)
    assert m.ece(snli.human, snli.human) == pytest.approx(0.245 - 0.5 * 14 / 1514, abs=DIGITS), "14 ties count half"
    assert m.ece(snli.human, snli.human, against="votes") == pytest.approx(0, abs=1e-12)
    assert m.tvd(snli.human, snli.human).max() == 0


# Hard-label models on ChaosNLI: means over seeds -------------------------------------------------------------------

JS = "JS distance"
COLUMNS: Final[dict[str, Any]] = {
    "kl": m.kl,
    "soft_nll": m.soft_nll,
    "tvd": m.tvd,
    JS: lambda human, model: m.jsd(human, model, base="bits", distance=True),
    "pearson": m.entropy_pearson,
    "spearman": m.entropy_spearman,
}
HARD_LABEL_MODELS: Final = {
    ("snli", "roberta", 1): (0.570, 1.124, 0.257, 0.291, 0.378, 0.391),
    ("snli", "roberta", 2): (0.252, 0.805, 0.218, 0.245, 0.402, 0.399),
    ("snli", "bert", 1): (0.566, 1.119, 0.265, 0.298, 0.358, 0.371),
    ("mnli_m", "roberta", 1): (0.688, 1.430, 0.352, 0.358, 0.122, 0.126),
    ("mnli_m", "roberta", 2): (0.326, 1.068, 0.289, 0.292, 0.138, 0.168),
}


@pytest.mark.parametrize(("subset", "family", "temperature"), HARD_LABEL_MODELS)
def test_hard_label_models_on_chaosnli(chaos: dict[str, ChaosNLI], subset: str, family: str, temperature: int) -> None:
    names = [name for name in chaos[subset].logits if name.startswith(family)]
    values = [chaos[subset].mean(metric, names, temperature=temperature) for metric in COLUMNS.values()]
    assert values == pytest.approx(HARD_LABEL_MODELS[subset, family, temperature], abs=DIGITS)


@pytest.mark.parametrize(
    ("subset", "family", "accuracy"),
    [("snli", "roberta", 0.743), ("snli", "bert", 0.737), ("mnli_m", "roberta", 0.531)],
)
def test_accuracy_of_hard_label_models(chaos: dict[str, ChaosNLI], subset: str, family: str, accuracy: float) -> None:
    names = [name for name in chaos[subset].logits if name.startswith(family)]

    def first_of_tied(human: Table, model: Table) -> Any:
        return m.accuracy(first_wins(human), model)

    assert chaos[subset].mean(first_of_tied, names) == pytest.approx(accuracy, abs=0.001)
    assert chaos[subset].mean(m.accuracy, names) == pytest.approx(accuracy, abs=0.002), "13 or 14 ties count half"


@pytest.mark.parametrize(
    ("subset", "items", "accuracy", "constant", "uniform"),
    [("snli", 1514, 0.536, 0.475, 0.546), ("mnli_m", 1569, 0.465, 0.316, 0.357)],
)
def test_predictors_that_look_at_no_item(
    chaos: dict[str, ChaosNLI], subset: str, items: int, accuracy: float, constant: float, uniform: float
) -> None:
    human = chaos[subset].human
    marginal = np.tile(human.mean(axis=0), (items, 1))
    assert m.accuracy(first_wins(human), marginal).mean() == pytest.approx(accuracy, abs=0.001)
    assert m.kl(human, marginal).mean() == pytest.approx(constant, abs=DIGITS)
    assert m.entropy_pearson(human, marginal) is None
    assert m.entropy_spearman(human, marginal) is None
    nothing = np.full_like(human, 1 / 3)
    assert m.kl(human, nothing).mean() == pytest.approx(uniform, abs=DIGITS)
    assert m.accuracy(human, nothing).mean() == pytest.approx(1 / 3)


def test_on_mnli_a_constant_beats_a_model_trained_on_hard_labels(chaos: dict[str, ChaosNLI]) -> None:
    human = chaos["mnli_m"].human
    assert m.kl(human, np.tile(human.mean(axis=0), (len(human), 1))).mean() < chaos["mnli_m"].mean(m.kl, SEEDS) / 2


# The votes themselves ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subset", "entropy", "kept"), [("snli", 0.553, 0.750), ("mnli_m", 0.743, 0.682), ("alphanli", 0.287, 0.894)]
)
def test_entropy_and_mode_shift_of_chaosnli(data: Path, subset: str, entropy: float, kept: float) -> None:
    rows = lines(data / "chaosNLI_v1.0" / FILES[subset])
    counts = np.array([row["label_count"] for row in rows])
    human = counts / counts.sum(axis=1, keepdims=True)
    assert m.entropy(human).mean() == pytest.approx(entropy, abs=DIGITS)
    assert m.entropy(human) / np.log(2) == pytest.approx([row["entropy"] for row in rows], abs=1e-9), (
        "theirs is in bits"
    )
    names = {"alphanli": [1, 2]}.get(subset, ["e", "n", "c"])
    old, new = ([names.index(row[key]) for row in rows] for key in ("old_label", "majority_label"))
    assert m.mode_shift_rate(np.array(old), np.array(new)) == pytest.approx(1 - kept, abs=DIGITS)


def test_entropy_and_mode_shift_of_cifar_10h(data: Path) -> None:
    counts = np.load(data / "cifar-10h" / "cifar10h-counts.npy")
    human = counts / counts.sum(axis=1, keepdims=True)
    values = m.entropy(human)
    assert values.mean() == pytest.approx(0.1545, abs=5e-5)
    assert np.median(values) == pytest.approx(0.0950, abs=5e-5)
    assert (values == 0).mean() == pytest.approx(0.439, abs=DIGITS)
    records = np.fromfile(data / "cifar-10-batches-bin" / "test_batch.bin", dtype=np.uint8).reshape(10_000, 3073)
    original = records[:, 0].astype(np.int64)
    assert m.mode_shift_rate(original, human.argmax(axis=1)) == pytest.approx(1 - 0.9921, abs=1e-9)
    assert m.accuracy_original(human, human, original=original).mean() == pytest.approx(0.9921, abs=0.001)
