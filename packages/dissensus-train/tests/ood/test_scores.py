"""Every score against its formula, by hand or by another library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from scipy.stats import entropy as scipy_entropy
from sklearn.covariance import EmpiricalCovariance
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus_train.ood.outputs import model_outputs
from dissensus_train.ood.outside import given_outputs
from dissensus_train.ood.scores import (
    OF_ONE_MODEL,
    SCORES,
    disagreement,
    energy,
    entropy,
    knn,
    mahalanobis,
    max_logit,
    msp,
    odin,
    ood_scores,
    react,
    vim,
)
from dissensus_train.ood.settings import SCORE_NAMES


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def net(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 3)
        )


def test_settings_know_every_score_by_name() -> None:
    assert tuple(SCORES) == SCORE_NAMES


def test_scores_of_logits_are_their_formulas() -> None:
    logits = normal(50, 4) * 3
    q = softmax(logits.numpy(), axis=1)
    assert msp(logits).numpy() == pytest.approx(1 - q.max(axis=1))
    assert max_logit(logits).numpy() == pytest.approx(-logits.numpy().max(axis=1))
    assert entropy(logits).numpy() == pytest.approx(scipy_entropy(q, axis=1))
    assert energy(logits).numpy() == pytest.approx(-logsumexp(logits.numpy(), axis=1))


def test_very_sure_items_still_differ_in_msp() -> None:
    logits = torch.tensor([[60.0, 0.0], [70.0, 0.0]], dtype=torch.float64)
    assert msp(logits).tolist() == pytest.approx([np.exp(-60.0), np.exp(-70.0)])
    assert msp(torch.zeros(1, 2)).item() == 0.5


def test_mahalanobis_is_scipys_distance_with_scikit_learns_covariance() -> None:
    training, labels = normal(200, 5) @ normal(5, 5, seed=1), torch.arange(200) % 3
    items = normal(30, 5, seed=2)
    x, y = training.numpy(), labels.numpy()
    means = np.stack([x[y == c].mean(axis=0) for c in range(3)])
    precision = EmpiricalCovariance(assume_centered=True).fit(x - means[y]).precision_
    expected = cdist(items.numpy(), means, "mahalanobis", VI=precision).min(axis=1) ** 2
    assert mahalanobis(items, training, labels).numpy() == pytest.approx(expected)


def test_mahalanobis_leaves_out_directions_without_variance_and_classes_without_items() -> None:
    training, labels = normal(200, 4), torch.arange(200) % 3
    items = normal(30, 4, seed=2)
    dead, repeated = torch.zeros(200, 1), training[:, :1]
    wider = torch.cat([training, dead, repeated], dim=1)
    # The repeated column has the same variance twice: the pseudo-inverse counts it once.
    seen = torch.cat([items, 5 + torch.zeros(30, 1), items[:, :1]], dim=1)
    expected = mahalanobis(items, training, labels)
    assert mahalanobis(seen, wider, labels * 7).numpy() == pytest.approx(expected.numpy())
    with pytest.raises(InputError, match="do not vary within classes"):
        mahalanobis(items, torch.ones(5, 4), torch.zeros(5, dtype=torch.int64))


@pytest.mark.parametrize("k", [1, 7, 120])
def test_knn_is_the_distance_that_scikit_learn_finds(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissensus_train.ood.scores.DISTANCES", 500)
    training, items = normal(120, 6), normal(40, 6, seed=1) * 10
    one, other = (each.numpy() / np.linalg.norm(each.numpy(), axis=1, keepdims=True) for each in (training, items))
    expected = NearestNeighbors(n_neighbors=k).fit(one).kneighbors(other)[0][:, -1]
    assert knn(items, training, k=k).numpy() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("k", [0, -1, 1.5, 21])
def test_a_neighbour_that_is_not_there_is_refused(k: Any) -> None:
    with pytest.raises(InputError, match=f"k is {k}; give a whole number from 1 to 20"):
        knn(torch.zeros(3, 2), torch.zeros(20, 2), k=k)


def test_features_and_labels_that_do_not_fit_are_refused() -> None:
    rows, labels = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 3
    with pytest.raises(InputError, match="19 labels for 20 training items"):
        mahalanobis(rows, rows, labels[1:])
    for score in (lambda features, training: mahalanobis(features, training, labels), knn):
        with pytest.raises(InputError, match=r"features of shape \(20, 2\) and training features of \(20, 1\)"):
            score(rows, rows[:, :1])  # type: ignore[no-untyped-call]


def linear_world(width: int = 6, classes: int = 3) -> tuple[Any, ...]:
    """Features of items and of training items, and a last layer."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(7, width)), rng.normal(size=(80, width)) ** 2, rng.normal(size=(classes, width + 1))


def test_vim_is_its_authors_formula() -> None:
    """As they wrote it: principal space by NumPy's eigenvectors, sorted; their score is larger for ID items."""
    items, training, last = linear_world()
    weight, bias = last[:, :-1], last[:, -1]
    u = -np.linalg.pinv(weight) @ bias
    values, vectors = np.linalg.eig((training - u).T @ (training - u) / len(training))
    rest = vectors[:, np.argsort(values * -1)[3:]]
    alpha = (training @ weight.T + bias).max(axis=-1).mean() / np.linalg.norm((training - u) @ rest, axis=-1).mean()
    vlogit = np.linalg.norm((items - u) @ rest, axis=-1) * alpha
    expected = -vlogit + logsumexp(items @ weight.T + bias, axis=-1)
    np.testing.assert_allclose(-vim(items, training, last), expected, rtol=1e-9)


def test_react_is_the_energy_of_features_cut_off() -> None:
    items, training, last = linear_world()
    cut = np.clip(items, None, np.percentile(training.ravel(), 90))
    assert (cut != items).any()
    np.testing.assert_allclose(react(items, training, last), energy(cut @ last[:, :-1].T + last[:, -1]), rtol=1e-12)


def test_the_last_layer_is_that_of_the_network_or_what_training_items_say() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).eval()
    x, train = torch.randn(9, 4), torch.randn(60, 4)
    logits, features, last = model_outputs(model, train)
    here = model_outputs(model, x)
    assert last is not None
    assert features is not None
    found = ood_scores(model, {"a": x}, scores=["vim", "react"], training=train)["a"]
    np.testing.assert_allclose(found["vim"], vim(here.features, features, last), rtol=1e-9)
    given = given_outputs(logits=logits, features=features)
    told = given.last_layer(0)
    assert told is not None
    np.testing.assert_allclose(react(here.features, features, told), found["react"], rtol=1e-4)
    assert given_outputs(logits=logits[:5], features=features[:5]).last_layer(0) is None
    assert given_outputs(logits=logits**2, features=features).last_layer(0) is None
    assert model_outputs(model, x, layer="0").last_layer is None
    with pytest.raises(InputError, match="vim needs last layer; give the network itself"):
        ood_scores(model, {"a": x}, scores=["vim"], training=train, layer="0")


def test_odin_is_the_step_along_the_gradient_by_hand() -> None:
    weight, bias = normal(3, 6), normal(3, seed=1)
    linear = nn.Linear(6, 3).double()
    linear.load_state_dict({"weight": weight, "bias": bias})
    x, temperature, epsilon = normal(20, 6, seed=2), 10.0, 0.05
    q = softmax((x @ weight.T + bias).numpy() / temperature, axis=1)
    # d ln q_top / dx = (w_top - sum_k q_k w_k) / T
    gradient = (weight.numpy()[q.argmax(axis=1)] - q @ weight.numpy()) / temperature
    moved = x.numpy() + epsilon * np.sign(gradient)
    expected = 1 - softmax((moved @ weight.numpy().T + bias.numpy()) / temperature, axis=1).max(axis=1)
    assert odin(linear, x, temperature=temperature, epsilon=epsilon).numpy() == pytest.approx(expected)
    assert (odin(linear, x, temperature=temperature, epsilon=epsilon) < odin(linear, x, temperature=temperature)).all()


def test_odin_without_a_step_at_temperature_one_is_msp() -> None:
    model, x = net(), normal(20, 6).float()
    expected = msp(model_outputs(model, x).logits)
    assert odin(model, x, temperature=1.0, epsilon=0.0).numpy() == pytest.approx(expected.numpy(), rel=1e-6)


def test_outputs_come_in_batches_from_evaluation_mode_and_leave_the_model_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dissensus_train.training.inputs.EVALUATION_BATCH", 5)
    model, x = net(), normal(23, 6).float()
    model[2].eval()
    modes = [module.training for module in model.modules()]
    out = model_outputs(model, x)
    odin(model, x)
    assert [module.training for module in model.modules()] == modes
    assert all(not module._forward_pre_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    model.eval()
    assert out.features is not None
    assert out.features.numpy() == pytest.approx(model[:-1](x).detach().numpy(), abs=1e-6)
    assert out.logits.numpy() == pytest.approx(model(x).detach().numpy(), abs=1e-6)


class Backwards(nn.Module):
    """Its layers are defined in another order than they run."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.body = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).tanh())  # type: ignore[no-any-return]


def test_features_are_the_input_of_the_linear_layer_that_runs_last_or_the_output_of_a_named_one() -> None:
    model, x = Backwards(), normal(9, 6).float()
    last, named = model_outputs(model, x).features, model_outputs(model, x, layer="body").features
    assert last is not None
    assert named is not None
    assert last.numpy() == pytest.approx(model.body(x).tanh().detach().numpy(), abs=1e-6)
    assert named.numpy() == pytest.approx(model.body(x).detach().numpy(), abs=1e-6)


def test_features_of_maps_are_flattened_and_a_layer_that_is_not_there_is_refused() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x = normal(4, 1, 6, 6).float()
    assert model_outputs(model, x, layer="0").features.shape == (4, 2 * 4 * 4)  # type: ignore[union-attr]
    assert model_outputs(model, x, features=False).features is None
    with pytest.raises(InputError, match=r"no nn.Linear .* one of 0, 1, 2, 3"):
        model_outputs(model, x)
    with pytest.raises(InputError, match="layer 'body' is not in the model; there are 0, 1, 2, 3"):
        model_outputs(model, x, layer="body")


def test_each_set_is_scored_as_the_functions_do() -> None:
    model, sets = net(), {"near": normal(12, 6).float(), "far": normal(8, 6, seed=1).float() * 20}
    training, labels = normal(90, 6, seed=2).float(), torch.arange(90) % 3
    found = ood_scores(model, sets, training=training, labels=labels, k=3, epsilon=0.01)
    seen = model_outputs(model, training).features
    assert seen is not None
    assert {name: set(each) for name, each in found.items()} == {"near": set(OF_ONE_MODEL), "far": set(OF_ONE_MODEL)}
    for name, x in sets.items():
        out = model_outputs(model, x)
        assert out.features is not None
        expected = {
            "energy": energy(out.logits),
            "knn": knn(out.features, seen, k=3),
            "mahalanobis": mahalanobis(out.features, seen, labels),
            "odin": odin(model, x, epsilon=0.01),
        }
        for score, values in expected.items():
            assert found[name][score] == pytest.approx(values.numpy(), rel=1e-5)


def test_scores_are_the_same_every_time() -> None:
    model, sets = net(), {"some": normal(40, 6).float()}
    once, again = (ood_scores(model, sets, scores=("msp", "odin")) for _ in range(2))
    assert all((once["some"][score] == again["some"][score]).all() for score in once["some"])


def test_a_score_that_misses_what_it_needs_says_so() -> None:
    with pytest.raises(InputError, match="mahalanobis needs training features"):
        ood_scores(net(), {"some": normal(4, 6).float()}, scores=("msp", "mahalanobis"))
    with pytest.raises(InputError, match="did you mean 'msp'"):
        ood_scores(net(), {"some": normal(4, 6).float()}, scores=("mps",))


@pytest.mark.parametrize("score", [msp, entropy, energy, max_logit, disagreement])
def test_what_is_no_table_of_logits_is_said(score: Any) -> None:
    for given, sentence in (
        ([["a", "b"]], "not numbers in rows of equal length"),
        ([[1.0], [1.0, 2.0]], "not numbers in rows of equal length"),
        (np.zeros(3), r"shape \(3,\); give"),
        (torch.zeros(3), r"shape \(3,\); give"),
    ):
        with pytest.raises(InputError, match=sentence):
            score(given)


@pytest.mark.parametrize("name", OF_ONE_MODEL)
def test_far_items_are_out_of_distribution_by_every_score(name: str) -> None:
    """A classifier of two clusters; OOD items lie between them, and far from both in a third direction."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    x = rng.normal(0, 0.5, (400, 3))
    x[:, 0] += np.where(y == 1, 3, -3)
    linear = nn.Linear(3, 2)
    linear.load_state_dict({"weight": torch.tensor([[-2.0, 0, 0], [2.0, 0, 0]]), "bias": torch.zeros(2)})
    odd = rng.normal([0, 4, 0], 0.3, (100, 3))
    inputs = {key: torch.from_numpy(each).float() for key, each in {"near": x[:100], "far": odd}.items()}
    found = ood_scores(
        linear,
        inputs,
        scores=(name,),
        training=torch.from_numpy(x[100:]).float(),
        labels=torch.from_numpy(y[100:]),
        k=5,
    )
    assert found["far"][name].min() > np.median(found["near"][name])
    assert SCORES[name].reference
