"""The codes of no, yes and unsure, as the database stores them and browsers name them."""

from __future__ import annotations

from typing import Final

NO, YES, UNSURE = 0, 1, 2
WORDS: Final = ("no", "yes", "unsure")
"""The responses, by their code."""
