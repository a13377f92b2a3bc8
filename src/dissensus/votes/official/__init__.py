"""Official votes files, each read by its name: `OFFICIAL["chaosnli"].read(path)`."""

from __future__ import annotations

from typing import Final

from dissensus.votes.formats import Format
from dissensus.votes.official.chaosnli import is_chaosnli, read_chaosnli
from dissensus.votes.official.cifar10h import is_cifar10h, read_cifar10h
from dissensus.votes.official.ferplus import is_ferplus, read_ferplus
from dissensus.votes.official.label_studio import is_label_studio, read_label_studio
from dissensus.votes.official.lewidi import is_lewidi, read_lewidi
from dissensus.votes.official.popquorn import is_popquorn, read_popquorn

_FORMATS: Final = (
    Format(
        "cifar-10h",
        "CIFAR-10H: cifar10h-counts.npy, or cifar10h-raw.csv",
        read_cifar10h,
        is_cifar10h,
        ("duplicates", "notes"),
    ),
    Format("chaosnli", "ChaosNLI: a .jsonl file of SNLI, MNLI-m or alphaNLI", read_chaosnli, is_chaosnli),
    Format(
        "popquorn", "POPQUORN: raw_data.csv of a task with ratings", read_popquorn, is_popquorn, ("duplicates", "notes")
    ),
    Format("fer+", "FER+: fer2013new.csv", read_ferplus, is_ferplus),
    Format(
        "label-studio",
        "Label Studio: a JSON or JSON-MIN export; --label names the control where there are several",
        read_label_studio,
        is_label_studio,
        ("label", "duplicates", "notes"),
    ),
    Format(
        "lewidi",
        "Le-Wi-Di 2023 or 2025: the JSON file of one split",
        read_lewidi,
        is_lewidi,
        ("duplicates", "notes"),
    ),
)

OFFICIAL: Final[dict[str, Format]] = {each.name: each for each in _FORMATS}
"""The official formats by name."""
