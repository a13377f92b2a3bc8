"""`python -m dissensus`."""

from __future__ import annotations

from dissensus.cli import main

main()
