"""Known sets of votes and features, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.datasets.catalogue import DATASETS as DATASETS
    from dissensus.datasets.catalogue import Dataset as Dataset
    from dissensus.datasets.catalogue import cache_folder as cache_folder
    from dissensus.datasets.catalogue import data_folder as data_folder
    from dissensus.datasets.catalogue import find as find
    from dissensus.datasets.catalogue import get as get
    from dissensus.datasets.catalogue import load as load
    from dissensus.datasets.catalogue import load_labelled as load_labelled
    from dissensus.datasets.images import read_cifar_batch as read_cifar_batch
    from dissensus.datasets.images import read_idx as read_idx
    from dissensus.datasets.sample import write_sample as write_sample
    from dissensus.datasets.sources import Source as Source
    from dissensus.datasets.sources import read_source as read_source
    from dissensus.datasets.vader import read_words as read_words
    from dissensus.datasets.vader import word_texts as word_texts

__getattr__, __dir__ = lazy_names(__name__)
