from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from dissensus.dynamics import epoch_divergence
from dissensus.errors import InputError
from dissensus.evaluation.comparison.strata import by_agreement
from tests.dynamics.runs import people, recorded


@given(seed=st.integers(0, 2**20), dtype=st.sampled_from([np.float16, np.float32, np.float64]))
def test_every_step_equals_scipy(seed: int, dtype: type) -> None:
    dynamics = recorded(seed=seed, dtype=dtype)
    made = epoch_divergence(dynamics).values
    exact = dynamics.astype(np.float64)
    assert made.shape == (3, 7, 40)
    np.testing.assert_allclose(made, jensenshannon(exact[:, :-1], exact[:, 1:], axis=-1) ** 2, atol=1e-6)


def test_a_model_that_stands_still_diverges_by_nothing_and_one_that_turns_round_by_ln_2() -> None:
    still = np.broadcast_to(recorded(epochs=1), (3, 5, 40, 4))
    np.testing.assert_array_equal(epoch_divergence(still).values, 0.0)
    turned = np.eye(2)[[[0], [1], [0]]]
    np.testing.assert_allclose(epoch_divergence(turned).values, np.log(2), rtol=1e-6)


def test_the_course_of_a_stratum_is_a_mean_over_items_with_the_spread_of_seeds() -> None:
    human = people()
    made = epoch_divergence(recorded())
    everything, unanimous, varied = made.by_stratum(by_agreement(human))
    assert [each.stratum for each in (everything, unanimous, varied)] == ["all", "unanimous", "varied"]
    assert varied.items == int((~human.unanimous).sum())
    by_seed = made.values[:, :, ~human.unanimous].astype(np.float64).mean(axis=2)
    np.testing.assert_allclose(varied.mean, by_seed.mean(axis=0))
    np.testing.assert_allclose(varied.deviation, by_seed.std(axis=0, ddof=1))
    assert varied.seeds.tolist() == [3] * 7
    assert np.isnan(epoch_divergence(recorded(seeds=1)).by_stratum(by_agreement(human))[0].deviation).all()


def test_a_run_that_stopped_leaves_the_mean_to_the_others() -> None:
    dynamics = recorded()
    made = epoch_divergence([dynamics[0], dynamics[1, :4]])
    assert np.isnan(made.values[1, 3:]).all()
    everything = made.by_stratum(by_agreement(people()))[0]
    assert everything.seeds.tolist() == [2, 2, 2, 1, 1, 1, 1]
    np.testing.assert_allclose(everything.mean[3:], made.values[0, 3:].astype(np.float64).mean(axis=1))
    assert np.isnan(everything.deviation[3:]).all()
    assert np.isfinite(everything.deviation[:3]).all()


def test_one_epoch_has_no_step() -> None:
    with pytest.raises(InputError, match="only one epoch was recorded"):
        epoch_divergence(recorded(epochs=1))
