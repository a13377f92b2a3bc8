"""Official votes files, each read by its name: `OFFICIAL["chaosnli"].read(path)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.votes.official.chaosnli import CHAOSNLI
from dissensus.votes.official.cifar import CIFAR_10H, CIFAR_10N
from dissensus.votes.official.imagenet_real import IMAGENET_REAL
from dissensus.votes.official.judged_json import ALTTEST, JUDGE_BENCH
from dissensus.votes.official.label_studio import LABEL_STUDIO
from dissensus.votes.official.lewidi import LEWIDI
from dissensus.votes.official.tables import TABLES
from dissensus.votes.official.tools import TOOLS
from dissensus.votes.official.varierr import VARIERR

if TYPE_CHECKING:
    from dissensus.votes.official.opening import Format

_OTHERS: Final = (CIFAR_10H, CIFAR_10N, CHAOSNLI, LABEL_STUDIO, LEWIDI, VARIERR, IMAGENET_REAL, JUDGE_BENCH, ALTTEST)

OFFICIAL: Final[dict[str, Format]] = {file.name: file for file in (*_OTHERS, *TABLES)} | TOOLS
"""The official formats by name."""
