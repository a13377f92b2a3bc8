"""The version of this package."""

from __future__ import annotations

from importlib import metadata

try:
    __version__ = metadata.version("dissensus")
except metadata.PackageNotFoundError:
    # Run from its source folder, on a machine where it was never installed.
    __version__ = "unknown"
