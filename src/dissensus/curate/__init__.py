"""From raw images or texts to a set worth people's time: copies, data map, selection, splits, size, datasheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.curate.duplicates import Duplicates as Duplicates
    from dissensus.curate.duplicates import find_duplicates as find_duplicates
    from dissensus.curate.item_list import ItemList as ItemList
    from dissensus.curate.item_list import listed as listed
    from dissensus.curate.item_list import read_items as read_items
    from dissensus.curate.item_list import write_items as write_items
    from dissensus.curate.mapping import map_items as map_items
    from dissensus.curate.selecting import Floor as Floor
    from dissensus.curate.selecting import Selection as Selection
    from dissensus.curate.selecting import select_items as select_items
    from dissensus.curate.sheet import datasheet as datasheet
    from dissensus.curate.sizes import SizePoint as SizePoint
    from dissensus.curate.sizes import size_curve as size_curve
    from dissensus.curate.splitting import Splits as Splits
    from dissensus.curate.splitting import split_groups as split_groups

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Duplicates": "duplicates",
        "Floor": "selecting",
        "ItemList": "item_list",
        "Selection": "selecting",
        "SizePoint": "sizes",
        "Splits": "splitting",
        "datasheet": "sheet",
        "find_duplicates": "duplicates",
        "listed": "item_list",
        "map_items": "mapping",
        "read_items": "item_list",
        "select_items": "selecting",
        "size_curve": "sizes",
        "split_groups": "splitting",
        "write_items": "item_list",
    },
)
