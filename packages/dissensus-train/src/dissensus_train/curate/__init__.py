"""From raw images or texts to a set worth people's time: duplicates, data map, selection, splits, size, datasheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus_train.curate.duplicates import Duplicates as Duplicates
    from dissensus_train.curate.duplicates import find_duplicates as find_duplicates
    from dissensus_train.curate.item_list import ItemList as ItemList
    from dissensus_train.curate.item_list import listed as listed
    from dissensus_train.curate.item_list import read_items as read_items
    from dissensus_train.curate.item_list import write_items as write_items
    from dissensus_train.curate.labelled import labelled_data as labelled_data
    from dissensus_train.curate.mapping import map_items as map_items
    from dissensus_train.curate.selecting import Floor as Floor
    from dissensus_train.curate.selecting import Selection as Selection
    from dissensus_train.curate.selecting import select_items as select_items
    from dissensus_train.curate.sheet import datasheet as datasheet
    from dissensus_train.curate.sheet import read_answers as read_answers
    from dissensus_train.curate.sheet import sheet_croissant as sheet_croissant
    from dissensus_train.curate.sizes import SizePoint as SizePoint
    from dissensus_train.curate.sizes import size_curve as size_curve
    from dissensus_train.curate.splitting import Splits as Splits
    from dissensus_train.curate.splitting import split_groups as split_groups

__getattr__, __dir__ = lazy_names(__name__)
