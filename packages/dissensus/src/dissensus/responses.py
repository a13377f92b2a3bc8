"""The responses that a person may give to one class of an item, as codes and as words."""

from __future__ import annotations

from typing import Final

NO, YES, UNSURE = range(3)

RESPONSES: Final = ("no", "yes", "unsure")
"""The word of each response, by its code."""
