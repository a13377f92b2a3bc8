"""Tables that come with a package: what a list or a catalogue says lies beside the code that reads it."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def shipped_toml(package: str, *path: str) -> dict[str, Any]:
    """A TOML file that lies in a package."""
    return tomllib.loads(resources.files(package).joinpath(*path).read_text(encoding="utf-8"))
