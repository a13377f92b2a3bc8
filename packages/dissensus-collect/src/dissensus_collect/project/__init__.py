"""What is collected: collect.toml, the language of its pages, its orders and its cost."""

from __future__ import annotations

from typing import Literal

Layout = Literal["rows", "one-at-a-time", "select-all", "single-choice", "rating", "points"]
"""How the classes of an item are answered."""
