"""Official votes files, each read by its name: `OFFICIAL["chaosnli"].read(path)`."""

from __future__ import annotations

from typing import Final

from dissensus.votes.formats import Format
from dissensus.votes.official.chaosnli import is_chaosnli, read_chaosnli
from dissensus.votes.official.cifar10h import is_cifar10h, read_cifar10h
from dissensus.votes.official.cifar10n import is_cifar10n, read_cifar10n
from dissensus.votes.official.ferplus import is_ferplus, read_ferplus
from dissensus.votes.official.imagenet_real import is_imagenet_real, read_imagenet_real
from dissensus.votes.official.judged_json import is_alttest, is_judge_bench, read_alttest, read_judge_bench
from dissensus.votes.official.label_studio import is_label_studio, read_label_studio
from dissensus.votes.official.lewidi import is_lewidi, read_lewidi
from dissensus.votes.official.popquorn import is_popquorn, read_popquorn
from dissensus.votes.official.tables import (
    is_crehate,
    is_crema_d,
    is_davidson,
    is_emobank,
    is_goemotions,
    read_crehate,
    read_crema_d,
    read_davidson,
    read_emobank,
    read_goemotions,
)
from dissensus.votes.official.varierr import is_varierr, read_varierr

_FORMATS: Final = (
    Format(
        "cifar-10h",
        "CIFAR-10H: cifar10h-counts.npy, or cifar10h-raw.csv",
        read_cifar10h,
        is_cifar10h,
        ("duplicates", "notes"),
    ),
    Format("cifar-10n", "CIFAR-10N: CIFAR-10_human.pt", read_cifar10n, is_cifar10n),
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
    Format(
        "varierr",
        "VariErr NLI: varierr.json; --label round_1 or round_2",
        read_varierr,
        is_varierr,
        ("label", "notes"),
    ),
    Format("imagenet-real", "ImageNet-ReaL: raters.npz", read_imagenet_real, is_imagenet_real),
    Format(
        "judge-bench",
        "JUDGE-BENCH, such as DICES: a JSON file; --label names the metric",
        read_judge_bench,
        is_judge_bench,
        ("label", "notes"),
    ),
    Format(
        "alttest",
        "the alternative annotator test: a .human_annotations.json file",
        read_alttest,
        is_alttest,
        ("duplicates", "notes"),
    ),
    Format("crehate", "CREHate: CREHate_raw_annotations.csv", read_crehate, is_crehate, ("duplicates", "notes")),
    Format(
        "emobank",
        "EmoBank: individual_reader_ratings.csv; --label valence, arousal or dominance",
        read_emobank,
        is_emobank,
        ("label",),
    ),
    Format("davidson", "Davidson et al.: labeled_data.csv", read_davidson, is_davidson),
    Format("crema-d", "CREMA-D: tabulatedVotes.csv; --label voice, face or both", read_crema_d, is_crema_d, ("label",)),
    Format("goemotions", "GoEmotions: a raw goemotions_1.csv", read_goemotions, is_goemotions, ("duplicates", "notes")),
)

OFFICIAL: Final[dict[str, Format]] = {each.name: each for each in _FORMATS}
"""The official formats by name."""
