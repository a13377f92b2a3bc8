"""What to cite: dissensus, and the papers behind the methods that a page uses."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from dissensus.version import __version__

if TYPE_CHECKING:
    from dissensus.report.chapters import Added
    from dissensus.report.subject import Subject

OF_METRICS: Final = {
    "kl": "kullback1951information",
    "brier": "brier1950verification",
    "abs_entce": "baan2022stop",
    "entce": "baan2022stop",
    "tvd": "baan2022stop",
    "rank_cs": "baan2022stop",
    "ece": "guo2017calibration",
    "ece_equal_mass": "nixon2019measuring",
    "second_best_accuracy": "peterson2019human",
}
OF_DELIVERIES: Final = {"repeated": "sheng2008get", "mixup": "zhang2018mixup"}


def bibliography(subject: Subject, added: Added) -> str:
    """BibTeX of dissensus, and of the papers behind the metrics, deliveries and data of a page."""
    used = [OF_METRICS[name] for name in subject.evaluation.metrics if name in OF_METRICS]
    used += [OF_DELIVERIES[name] for name in subject.deliveries.values() if name in OF_DELIVERIES]
    if any("temperature" in name for name in subject.evaluation.baselines):
        used.append("guo2017calibration")
    if len(subject.systems) > 1:
        used.append("holm1979simple")
    if subject.evaluation.worth:
        used.append("resnick2021survey")
    used += added.cited
    text = (resources.files("dissensus.report") / "references.bib").read_text(encoding="utf-8")
    # Between entries lines are empty.
    papers = {entry.partition("{")[2].partition(",")[0]: entry for entry in text.strip().split("\n\n")}
    own = papers["dissensus"].replace("VERSION", __version__)
    return "\n\n".join([own, *(papers[key] for key in sorted(set(used)))])
