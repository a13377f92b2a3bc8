"""`VotesClassifier` is a classifier like any other, fitted on votes; its scores are those of the evaluation."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import dissensus as dis
from dissensus.errors import InputError
from dissensus.evaluation.metrics.registry import METRICS

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

INAPPLICABLE = {
    "check_array_api_input": "arrays of other libraries: scikit-learn runs it only where SCIPY_ARRAY_API is set",
}
"""Checks of scikit-learn that do not apply, and why; all others must pass."""

VotesClassifier, scorer = dis.sklearn.VotesClassifier, dis.sklearn.scorer

TRUTH = np.random.default_rng(0).dirichlet([0.4, 0.4, 0.4], 120)
X = np.log(TRUTH + 0.05) + np.random.default_rng(1).normal(size=TRUTH.shape, scale=0.3)
VOTES = dis.simulate_votes(TRUTH, 7, annotators=20, seed=0)
LABELS = dis.label(VOTES)


def boosted(library: str) -> Any:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "lightgbm":
        return module.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1)
    return module.XGBClassifier(n_estimators=10, n_jobs=1)


@pytest.mark.parametrize("inner", [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(random_state=0)])
def test_it_passes_every_check_of_scikit_learn_that_applies(inner: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(VotesClassifier(inner), on_fail=None)
    assert len(found) > 40
    missed = {each["check_name"] for each in found if each["status"] != "passed"}
    assert missed <= INAPPLICABLE.keys()


def test_one_label_an_item_is_one_vote_an_item() -> None:
    label = np.array(["c", "a", "b"])[LABELS.majority().label]
    plain, ours = LogisticRegression().fit(X, label), VotesClassifier(LogisticRegression()).fit(X, label)
    assert ours.classes_.tolist() == ["a", "b", "c"]
    assert (ours.predict(X) == plain.predict(X)).all()
    np.testing.assert_allclose(ours.predict_proba(X), plain.predict_proba(X))


class Spy(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Keeps what it is fitted on."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Spy:
        self.given_ = X, y, sample_weight
        return self


def test_what_a_classifier_is_given_are_the_examples_of_the_delivery_repeated() -> None:
    delivery = dis.deliver("repeated", LABELS)
    examples = np.column_stack([X[delivery.examples.numpy()], delivery(0).numpy()])
    x, label, weight = VotesClassifier(Spy()).fit(X, LABELS.counts).estimator_.given_
    given = np.repeat(np.column_stack([x, label]), weight.astype(int), axis=0)
    np.testing.assert_array_equal(given[np.lexsort(given.T)], examples[np.lexsort(examples.T)])


@pytest.mark.parametrize(("library", "far"), [("logistic", 1e-4), ("lightgbm", 0.01), ("xgboost", 0.01)])
def test_weights_do_what_an_example_for_each_vote_does(library: str, far: float) -> None:
    # Trees come close and no closer: how large a leaf or a bin must be is counted in rows, whatever their weight.
    inner = LogisticRegression(tol=1e-8, max_iter=500) if library == "logistic" else boosted(library)
    if library == "lightgbm":
        inner.set_params(min_child_samples=1, min_data_in_bin=1)
    delivery = dis.deliver("repeated", LABELS)
    every_vote = clone(inner).fit(X[delivery.examples.numpy()], delivery(0).numpy())
    ours = VotesClassifier(inner).fit(X, LABELS.counts)
    assert np.abs(ours.predict_proba(X) - every_vote.predict_proba(X)).mean() < far


def test_probabilities_count_every_item_alike_and_sample_weights_on_top() -> None:
    counts = LABELS.counts * np.random.default_rng(0).integers(1, 4, (120, 1))
    inner = LogisticRegression(tol=1e-8, max_iter=500)
    by_item = VotesClassifier(inner).fit(X, LABELS.probabilities, sample_weight=counts.sum(axis=1))
    by_vote = VotesClassifier(inner).fit(X, counts)
    np.testing.assert_allclose(by_item.predict_proba(X), by_vote.predict_proba(X), atol=1e-4)
    unweighted = VotesClassifier(inner).fit(X, LABELS.probabilities)
    assert not np.allclose(unweighted.predict_proba(X), by_vote.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_columns_of_a_frame_are_classes_by_their_names(frame: Any) -> None:
    counts = frame(dict(zip("zam", LABELS.counts.T, strict=True)))
    by_name = VotesClassifier(LogisticRegression()).fit(X, counts)
    assert by_name.classes_.tolist() == ["z", "a", "m"]
    ordered = VotesClassifier(LogisticRegression(), classes=["a", "m", "z"]).fit(X, counts)
    np.testing.assert_allclose(ordered.predict_proba(X), by_name.predict_proba(X)[:, [1, 2, 0]], atol=1e-3)
    assert ordered.score(X, counts) == pytest.approx(ordered.score(X, LABELS.counts[:, [1, 2, 0]]))
    assert cross_val_score(ordered, X, counts, cv=3) == pytest.approx(
        cross_val_score(ordered, X, LABELS.counts[:, [1, 2, 0]], cv=3)
    )


@pytest.mark.parametrize("library", ["logistic", "lightgbm", "xgboost"])
def test_a_class_without_votes_has_no_probability_and_keeps_its_place(library: str) -> None:
    inner = LogisticRegression() if library == "logistic" else boosted(library)
    counts = np.insert(LABELS.counts, 1, 0, axis=1)
    ours = VotesClassifier(inner, classes=["cat", "never", "dog", "owl"]).fit(X, counts)
    said = ours.predict_proba(X)
    assert said.shape == (120, 4)
    assert (said[:, 1] == 0).all()
    np.testing.assert_allclose(said.sum(axis=1), 1, atol=1e-6)
    assert (ours.predict(X) == np.array(["cat", "never", "dog", "owl"])[said.argmax(axis=1)]).all()


def test_the_score_is_minus_the_soft_nll_of_the_evaluation() -> None:
    model = VotesClassifier(LogisticRegression()).fit(X[:80], LABELS.counts[:80])
    held = LABELS.take(np.arange(80, 120))
    by_hand = -np.mean(np.sum(held.probabilities * np.log(model.predict_proba(X[80:])), axis=1))
    assert -model.score(X[80:], held.counts) == pytest.approx(by_hand)
    assert model.score(X[80:], held.counts) == pytest.approx(scorer()(model, X[80:], held.counts))
    assert model.score(X[80:], held.probabilities) == pytest.approx(model.score(X[80:], held.counts))
    label = held.majority().label
    hard = np.log(model.predict_proba(X[80:])[np.arange(40), label]).mean()
    assert model.score(X[80:], label) == pytest.approx(hard)


@pytest.mark.parametrize("name", ["soft_nll", "kl", "tvd", "accuracy", "entropy_spearman", "entce"])
def test_scorers_are_our_metrics_higher_is_better_and_can_be_pickled(name: str) -> None:
    model, metric = VotesClassifier(LogisticRegression()), METRICS[name]
    found = cross_val_score(model, X, LABELS.counts, scoring=pickle.loads(pickle.dumps(scorer(name))), cv=3)
    for score, (train, test) in zip(found, KFold(3).split(X), strict=True):
        said = clone(model).fit(X[train], LABELS.counts[train]).predict_proba(X[test])
        human = LABELS.probabilities[test]
        value: Any = metric.per_item(human, said).mean() if metric.per_item else metric.over_items(human, said)  # type: ignore[misc]
        assert score == pytest.approx(value if metric.better == "higher" else -abs(value))


def test_it_stands_in_pipelines_and_searches_and_takes_sparse_features() -> None:
    around = make_pipeline(StandardScaler(), VotesClassifier(LogisticRegression()))
    search = GridSearchCV(around, {"votesclassifier__estimator__C": [1e-4, 1.0]}, cv=3).fit(X, LABELS.counts)
    assert search.best_params_ == {"votesclassifier__estimator__C": 1.0}
    dense, thin = (VotesClassifier(LogisticRegression()).fit(each, LABELS.counts) for each in (X, sparse.coo_array(X)))
    np.testing.assert_allclose(dense.predict_proba(X), thin.predict_proba(sparse.csr_matrix(X)), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: VotesClassifier(KNeighborsClassifier()).fit(X, LABELS.counts),
            r"KNeighborsClassifier.fit takes no sample_weight, .*; choose a classifier that does",
        ),
        (
            lambda: VotesClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, LABELS.counts),
            r"put pipelines and searches around the VotesClassifier",
        ),
        (
            lambda: VotesClassifier(LogisticRegression(), classes=["a", "b"]).fit(X, LABELS.counts),
            r"3 columns for 2 classes; give one column per class",
        ),
        (
            lambda: VotesClassifier(LogisticRegression()).fit(X[:2], [[1, 0], [0, 0]]),
            r"row 1 of y is \[0, 0\]; give counts or shares of 0 or more, not all of them 0",
        ),
        (lambda: VotesClassifier(LogisticRegression()).fit(X[:2], [[1, -1], [0, 1]]), r"row 0 of y is \[1, -1\]"),
        (lambda: VotesClassifier(LogisticRegression()).fit(X[:2], [["a", "b"], ["a", "b"]]), r"what is no number"),
        (
            lambda: VotesClassifier(LogisticRegression()).fit(X, LABELS.majority().label).score(X[:1], [7]),
            r"'7' is no class; choose 0, 1, 2",
        ),
        (lambda: VotesClassifier(LogisticRegression()).fit(X, LABELS), r"y is a LabelDistribution; give its counts"),
        (lambda: VotesClassifier(LogisticRegression()).fit(X, VOTES), r"y is Votes; give dis.label\(votes\).counts"),
        (
            lambda: VotesClassifier(LogisticRegression()).fit(X, sparse.csr_array(LABELS.counts)),
            r"sparse table; give it as",
        ),
        (
            lambda: VotesClassifier(LogisticRegression(), classes=["a", "b", "b"]).fit(X, LABELS.counts),
            r"the classes a, b, b are not all different; name each once",
        ),
        (
            lambda: VotesClassifier(LogisticRegression(), classes=["a", "b", "c"]).fit(
                X, pd.DataFrame(LABELS.counts, columns=["a", "b", "d"])
            ),
            r"the columns of y are a, b, d, and the classes a, b, c; give one column",
        ),
        (lambda: VotesClassifier(LogisticRegression()).fit(X, None), r"requires y to be passed"),
        (lambda: scorer("nothing"), r"'nothing' is no metric; choose kl, "),
        (lambda: scorer("accuracy_original"), r"'accuracy_original' compares with original labels"),
    ],
)
def test_what_cannot_be_fitted_is_told_in_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()
