"""From raw images or texts to a set worth people's time: duplicates, data map, selection, splits, size, datasheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.curate.ambiguous import AmbiguousDigits as AmbiguousDigits
    from dissensus.curate.ambiguous import Blending as Blending
    from dissensus.curate.ambiguous import ambiguous_digits as ambiguous_digits
    from dissensus.curate.digits import Digits as Digits
    from dissensus.curate.digits import read_digits as read_digits
    from dissensus.curate.duplicates import Duplicates as Duplicates
    from dissensus.curate.duplicates import find_duplicates as find_duplicates
    from dissensus.curate.floors import Floor as Floor
    from dissensus.curate.item_list import ItemList as ItemList
    from dissensus.curate.item_list import listed as listed
    from dissensus.curate.item_list import read_items as read_items
    from dissensus.curate.item_list import write_items as write_items
    from dissensus.curate.mapping import map_items as map_items
    from dissensus.curate.panel import Eyes as Eyes
    from dissensus.curate.panel import SimulatedPanel as SimulatedPanel
    from dissensus.curate.panel import perceive as perceive
    from dissensus.curate.panel import simulate_panel as simulate_panel
    from dissensus.curate.selecting import Selection as Selection
    from dissensus.curate.selecting import select_items as select_items
    from dissensus.curate.sheet import datasheet as datasheet
    from dissensus.curate.sheet import sheet_croissant as sheet_croissant
    from dissensus.curate.sheet_form import read_answers as read_answers
    from dissensus.curate.simulated_digits import Recipe as Recipe
    from dissensus.curate.simulated_digits import simulated_set as simulated_set
    from dissensus.curate.sizes import SizePoint as SizePoint
    from dissensus.curate.sizes import size_curve as size_curve
    from dissensus.curate.splitting import Splits as Splits
    from dissensus.curate.splitting import split_groups as split_groups

__getattr__, __dir__ = lazy_names(__name__)
