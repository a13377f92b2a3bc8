"""Which items of the pilot should get the next votes: those whose label distributions gain most.

The rule is that of the collection server's adaptive rounds (`allocation.py`), decided at once rather than in
rounds. Beside it stands what as many votes spread evenly would do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dissensus.errors import InputError
from dissensus.item_names import places_of_items
from dissensus.labels.mixture import Dirichlet
from dissensus.table_file import write_table
from dissensus.together.allocation import WANTED, best_votes, expected_error, gains_of_next_votes, panel_concentration
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from dissensus.arrays import Floats, Ints, Names
    from dissensus.together.combined import Combined
    from dissensus.votes.table import Votes

MOST: Final = 50
"""Further votes that one item may get."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NextVotes:
    """A list of items, those that gain most first.

    Attributes:
        items: (listed,) names.
        about: by attribute of items, (listed,) values.
        votes: (listed,) further votes, at least 1.
        gain: (listed,) how much they are expected to reduce the squared error of the item's label distribution.
        now: expected squared error of a label distribution, in the mean over items.
        adaptive: after these votes.
        uniform: after as many votes spread evenly.
    """

    items: Names
    about: dict[str, Names]
    votes: Ints
    gain: Floats
    now: float
    adaptive: float
    uniform: float

    @property
    def answer(self) -> str:
        """What they would do, in a sentence."""
        total = int(self.votes.sum())
        return (
            f"If {total:,} further votes go to these items, give them to the {len(self.items):,} that gain most: the "
            f"expected squared error of a label distribution falls from {self.now:.3g} to "
            f"{self.adaptive:.3g}, and spread evenly to {self.uniform:.3g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers without the list, ready for JSON."""
        return {
            "items": len(self.items),
            "votes": int(self.votes.sum()),
            "expected_error": {"now": self.now, "adaptive": self.adaptive, "uniform": self.uniform},
        }


def next_votes(votes: Votes, *, budget: int, beside: Combined | None = None) -> NextVotes | None:
    """The best use of so many further votes on the items that there are; None where the budget buys none.

    Args:
        votes: single choices.
        budget: further votes.
        beside: what `combine` made of these votes and of predictions, which may be of further items.
    """
    if budget < 1:
        return None
    names = votes.items if beside is None else beside.labels.items
    mass = votes.counts.astype(np.float64) if beside is None else beside.mass
    forecast = Dirichlet(panel_concentration(mass[mass.any(axis=1)])).forecast if beside is None else beside.forecast
    gains = gains_of_next_votes(mass, forecast, votes=MOST)
    n = len(mass)
    budget = min(budget, n * MOST)
    further = best_votes(gains, np.full(n, MOST), budget=budget)
    gathered = np.concatenate([np.zeros((n, 1)), np.cumsum(gains, axis=1)], axis=1)
    # Spread evenly, the votes that do not go round fall on any items.
    everywhere, over = divmod(budget, n)
    part = over / n
    even = (1 - part) * gathered[:, everywhere] + part * gathered[:, min(everywhere + 1, MOST)]
    gain = gathered[np.arange(n), further]
    now = float(expected_error(mass, forecast).mean())
    order = np.argsort(-gain, kind="stable")[: int((further > 0).sum())]
    return NextVotes(
        items=names[order],
        about={name: _of_items(values, votes, names[order]) for name, values in votes.item_attributes.items()},
        votes=further[order],
        gain=gain[order],
        now=now,
        adaptive=now - float(gain.mean()),
        uniform=now - float(even.mean()),
    )


def _of_items(values: Names, votes: Votes, items: Names) -> Names:
    """The attribute of these items; "" where nobody judged one, so that nothing is known of it."""
    place = places_of_items(items, votes.items)
    found = values[place]
    if (place < 0).any():
        found = found.astype(np.dtypes.StringDType())
        found[place < 0] = ""
    return found


def write_list(items: NextVotes, path: Path) -> None:
    """Write the list: a table (.csv, .tsv, .parquet) for `dissensus collect`, or .json as tasks of Label Studio."""
    import polars as pl

    columns = {"item": items.items.tolist(), **{name: values.tolist() for name, values in items.about.items()}}
    if path.suffix == ".json":
        rows = zip(*columns.values(), items.votes.tolist(), strict=True)
        tasks = [{"data": {**dict(zip(columns, map(str, row), strict=False)), WANTED: row[-1]}} for row in rows]
        with whole_file(path) as unfinished:
            unfinished.write_text(json.dumps(tasks, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        return
    if WANTED in items.about or "gain" in items.about:
        raise InputError(f"plan: items have an attribute '{WANTED}' or 'gain', which the list needs; rename it")
    write_table(pl.DataFrame({**columns, WANTED: items.votes, "gain": items.gain}), path)
