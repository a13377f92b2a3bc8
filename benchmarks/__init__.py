"""Scripts that check claims of speed and honesty. Run `python -m benchmarks.NAME` in the folder of the repository."""

import sys
from pathlib import Path

# Some share simulations with the tests of the core.
sys.path.append(str(Path(__file__).parents[1] / "packages" / "dissensus"))
