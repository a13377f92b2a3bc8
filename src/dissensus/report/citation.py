"""What to cite: dissensus, and the papers behind the methods that a page uses."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from dissensus.version import __version__

if TYPE_CHECKING:
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
OF_DATA: Final = {"words": "hutto2014vader", "cifar-10h": "peterson2019human"}
OF_DYNAMICS: Final = ("swayamdipta2020dataset", "toneva2019empirical")


def bibliography(subject: Subject) -> str:
    """BibTeX of dissensus, and of the papers behind the metrics, deliveries and data of a page."""
    used = [OF_METRICS[name] for name in subject.evaluation.metrics if name in OF_METRICS]
    used += [OF_DELIVERIES[name] for name in subject.deliveries.values() if name in OF_DELIVERIES]
    if any("temperature" in name for name in subject.evaluation.baselines):
        used.append("guo2017calibration")
    if len(subject.systems) > 1:
        used.append("holm1979simple")
    if subject.scored is not None:
        used += [OF_DATA[name] for name in (str(subject.scored.opened.study.dataset),) if name in OF_DATA]
        used += OF_DYNAMICS if subject.scored.recorded else ()
    own = {"title": "dissensus: from the votes of annotators to models that are as unsure as people"}
    own |= {"note": f"Version {__version__}", "howpublished": "Software"}
    inside = ",\n".join(f"  {name} = {{{value}}}" for name, value in own.items())
    return "\n\n".join([f"@misc{{dissensus,\n{inside}\n}}", *(_papers()[key] for key in sorted(set(used)))])


@cache
def _papers() -> dict[str, str]:
    """The entries of references.bib by key."""
    text = resources.files("dissensus.report").joinpath("references.bib").read_text(encoding="utf-8")
    return {entry.partition("{")[2].partition(",")[0]: entry for entry in text.strip().split("\n\n")}
