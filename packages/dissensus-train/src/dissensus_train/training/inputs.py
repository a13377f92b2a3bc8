"""What a network is given of items: rows of a dense table, of a sparse one, or tokens padded batch by batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream
from dissensus_train.training.batches import Epoch, each_part, inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from dissensus.arrays import Ints
    from dissensus_train.training.data import TrainingData

EVALUATION_BATCH: Final = 1024
"""Items at once where nothing is learnt."""

EVALUATION_TOKENS: Final = 16_384
"""Tokens at once, padding counted."""

BUCKETS: Final = 50
"""Batches whose examples are sorted by length together: enough that hardly anything is padded, few enough that which
examples meet in a batch stays random."""

PADDED_TO: Final = 8
"""Lengths are padded to a multiple of this, which matrix units like."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse table of features; a batch of its rows is made dense, so that any network takes it.

    `first`, (items + 1,), is where each row begins in `column` and `value`, (entries,); `width` counts the columns.
    """

    first: Tensor
    column: Tensor
    value: Tensor
    width: int

    @classmethod
    def of(cls, table: sp.csr_matrix[Any], place: torch.device) -> SparseRows:
        """The table on a device."""
        first, column = (torch.from_numpy(part.astype(np.int64)).to(place) for part in (table.indptr, table.indices))
        return cls(first, column, torch.from_numpy(table.data.astype(np.float32)).to(place), table.shape[1])

    def __getitem__(self, rows: Tensor) -> Tensor:
        """(rows, width) dense."""
        first, entry = _taken(self.first, rows)
        row = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), first.diff())
        dense = torch.zeros(len(rows), self.width, device=rows.device)
        dense[row, self.column[entry]] = self.value[entry]
        return dense

    def take(self, rows: Tensor) -> SparseRows:
        """These rows, as a table of their own."""
        first, entry = _taken(self.first, rows)
        return replace(self, first=first, column=self.column[entry], value=self.value[entry])


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Texts of one batch, (texts, length) ids padded to one length, and a mask that is 1 where there is a token.

    Types are 0 in the first text of a pair and 1 in the second; None where the network knows none. A `partner` has the
    texts that are mixed in, padded to the same length, and `weight`, (texts,), the share of the text itself.
    """

    ids: Tensor
    mask: Tensor
    types: Tensor | None
    partner: TokenBatch | None = None
    weight: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokenised texts, one after the other; a batch is padded to the longest of its own.

    Ids and types are (all tokens,), `first`, (texts + 1,), is where each text begins, and `padding` the id of no token.
    """

    ids: Tensor
    types: Tensor | None
    first: Tensor
    padding: int

    @classmethod
    def of(cls, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None, *, padding: int) -> Tokens:
        """From lists of ids, a list per text."""
        first = np.concatenate([[0], np.cumsum([len(text) for text in ids])])

        def flat(lists: Sequence[Sequence[int]]) -> Tensor:
            return torch.from_numpy(np.concatenate([np.asarray(text, dtype=np.int64) for text in lists]))

        return cls(flat(ids), None if types is None else flat(types), torch.from_numpy(first), padding)

    def to(self, place: torch.device) -> Tokens:
        """The same on a device."""
        types = None if self.types is None else self.types.to(place)
        return replace(self, ids=self.ids.to(place), types=types, first=self.first.to(place))

    @property
    def length(self) -> Tensor:
        """(texts,) tokens of each."""
        return self.first.diff()

    def take(self, rows: Tensor) -> Tokens:
        """The texts of these rows, as a table of their own."""
        first, entry = _taken(self.first, rows)
        return replace(self, ids=self.ids[entry], types=None if self.types is None else self.types[entry], first=first)

    def __getitem__(self, rows: Tensor) -> TokenBatch:
        return self.padded(rows, int(self.length[rows].max()))

    def padded(self, rows: Tensor, length: int) -> TokenBatch:
        """These texts, padded to a length, rounded up to a multiple of `PADDED_TO`."""
        length = -(-length // PADDED_TO) * PADDED_TO
        place = torch.arange(length, device=rows.device)
        mask = place < self.length[rows][:, None]
        entry = torch.where(mask, self.first[rows][:, None] + place, 0)
        ids = torch.where(mask, self.ids[entry], self.padding)
        types = None if self.types is None else torch.where(mask, self.types[entry], 0)
        return TokenBatch(ids, mask.long(), types)

    def batch(self, epoch: Epoch, batch: slice) -> TokenBatch:
        """The inputs of one batch of an epoch, with their partners where they are mixed."""
        rows = epoch.row[batch]
        if epoch.partner is None or epoch.weight is None:
            return self[rows]
        partners = epoch.partner[batch]
        length = int(torch.maximum(self.length[rows], self.length[partners]).max())
        return replace(self.padded(rows, length), partner=self.padded(partners, length), weight=epoch.weight[batch])

    def bucketed(self, epoch: Epoch, *, size: int, seed: int, number: int) -> Epoch:
        """The same epoch in another order, in which the texts of a batch are of about one length.

        Examples come in the random order of the epoch; within every `BUCKETS` batches they are sorted by length, and
        then the batches are shuffled.
        """
        length = self.length[epoch.row]
        if epoch.partner is not None:
            length = torch.maximum(length, self.length[epoch.partner])
        n_examples = len(length)
        order = np.lexsort((length.cpu().numpy(), np.arange(n_examples) // (BUCKETS * size)))
        # The one batch that may be smaller stays last, as everywhere.
        whole = n_examples // size
        moved = stream(seed, Purpose.BATCHES, number).permutation(whole)
        shuffled = order[: whole * size].reshape(whole, size)[moved].ravel()
        place = torch.from_numpy(np.concatenate([shuffled, order[whole * size :]])).to(length.device)
        return each_part(epoch, lambda part: part[place])

    def parts(self, rows: Tensor) -> list[Tensor]:
        """Places in `rows`, cut into parts of texts of about one length, `EVALUATION_TOKENS` tokens each."""
        length = self.length[rows]
        order = torch.argsort(length, stable=True)
        sizes = []
        longest = length[order].tolist()
        begin = 0
        while begin < len(longest):
            end = begin + 1
            while end < len(longest) and (end + 1 - begin) * longest[end] <= EVALUATION_TOKENS:
                end += 1
            sizes.append(end - begin)
            begin = end
        return list(torch.split(order, sizes))


Features: TypeAlias = Tensor | SparseRows | Tokens
"""What rows are taken from."""


def network_inputs(model: nn.Module, data: TrainingData, place: torch.device, rows: Ints | None = None) -> Features:
    """What batches for this network are taken from: its own reading of the items (or some rows), or their features."""
    if hasattr(model, "prepare"):
        if data.items is None:
            raise InputError(f"{data.name}: the network reads items, and there are features only; give texts or images")
        return prepared(model, data.items if rows is None else data.items.take(rows), place)
    return feature_table(data.as_input(data.features if rows is None else data.features[rows]), place)


def feature_table(features: Any, place: torch.device) -> Tensor | SparseRows:
    """Features, dense or sparse, on a device."""
    return torch.from_numpy(features).to(place) if isinstance(features, np.ndarray) else SparseRows.of(features, place)


def prepared(model: Any, items: Any, place: torch.device) -> Tensor | Tokens:
    """Raw items as a network reads them, on a device."""
    made: Tensor | Tokens = model.prepare(items)
    return made.to(place)


def rows_of(features: Features, rows: Tensor) -> Features:
    """A table of some of the rows."""
    return features[rows] if isinstance(features, Tensor) else features.take(rows)


def batch_inputs(features: Features, epoch: Epoch, batch: slice) -> tuple[Any, ...]:
    """What the network is given in one batch of one run: items, and whose answers are asked for where it is told."""
    x = features.batch(epoch, batch) if isinstance(features, Tokens) else inputs(features, epoch, batch)
    return (x,) if epoch.who is None else (x, epoch.who[batch])


def evaluation_parts(features: Features, rows: Tensor, *, most: int | None = None) -> list[Tensor]:
    """(...) places in `rows`, each once, in parts to be evaluated at once; of at most `most`, where that is given."""
    if isinstance(features, Tokens):
        parts = features.parts(rows)
        return parts if most is None else [piece for part in parts for piece in part.split(most)]
    size = min(EVALUATION_BATCH, most or EVALUATION_BATCH)
    return list(torch.split(torch.arange(len(rows), device=rows.device), size))


def _taken(first: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """(rows + 1,) where each of some rows begins as a table of their own; (entries,) their entries in the old one."""
    size = first[rows + 1] - first[rows]
    begin = torch.cat([size.new_zeros(1), size.cumsum(0)])
    moved = torch.repeat_interleave(first[rows] - begin[:-1], size)
    return begin, moved + torch.arange(len(moved), device=size.device)
