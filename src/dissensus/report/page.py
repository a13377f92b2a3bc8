"""The page: everything put into one HTML file that needs no network.

Names of items, classes and annotators come from other people. In markup Jinja escapes them; in scripts there is only
JSON whose `<`, `>`, `&` and line separators are written as escapes, so that nothing in it can end the script.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import jinja2
import vl_convert
from markupsafe import Markup

from dissensus.report.items import class_colours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dissensus.report.figures import Section
    from dissensus.report.items import Card
    from dissensus.report.tables import Table
    from dissensus.studies.scored import ScoredStudy

VERSIONS: Final = ("dissensus", "numpy", "scipy", "torch", "altair", "vl-convert-python")
"""The packages whose versions the page tells."""

_ESCAPES: Final = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


@dataclass(frozen=True, eq=False, kw_only=True)
class Page:
    """What the page shows, part by part.

    Attributes:
        results: the study.
        answer: sentences.
        comparisons: on all items, then by stratum.
        entropies: of models beside people.
        calibration: curves.
        maps: data maps; None where runs recorded nothing.
        divergence: between epochs; None likewise.
        trained: tables of training dynamics; empty where runs recorded nothing.
        basins: tables of curvature and of paths between runs; empty where they were not measured.
        landscape: spectra, lines and surfaces.
        ood: a table for each out-of-distribution set; empty where none was measured.
        histograms: of the scores behind them.
        contested: items that divide people.
        annotators: a table of them; None where votes are anonymous.
        panel: the same as a figure.
    """

    results: ScoredStudy
    answer: Sequence[str]
    comparisons: Sequence[Table]
    entropies: Section
    calibration: Section
    maps: Section | None
    divergence: Section | None
    trained: Sequence[Table]
    basins: Sequence[Table]
    landscape: Section | None
    ood: Sequence[Table]
    histograms: Section | None
    contested: Sequence[Card]
    annotators: Table | None
    panel: Section | None

    @property
    def sections(self) -> list[Section]:
        """All figures, in the order of the page."""
        every = (
            self.entropies,
            self.calibration,
            self.maps,
            self.divergence,
            self.landscape,
            self.histograms,
            self.panel,
        )
        return [section for section in every if section is not None]


def render(page: Page) -> str:
    """The page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dissensus.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    human = page.results.human
    return environment.get_template("page.html.jinja").render(
        page=page,
        study=page.results.opened.study,
        legend=list(zip(human.classes, class_colours(len(human.classes), ordered=human.ordered), strict=True)),
        facts=facts(page.results),
        # The bundle is code of ours; the one sequence that would end its script is written otherwise.
        bundle=Markup(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")),
        datasets=as_script({name: rows for section in page.sections for name, rows in section.data.items()}),
        as_script=as_script,
    )


def as_script(value: Any) -> Markup:
    """JSON that can stand in a script element whatever its strings hold."""
    return Markup(json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES))


def facts(results: ScoredStudy) -> list[tuple[str, str]]:
    """What another person needs to get the same numbers."""
    opened, study = results.opened, results.opened.study
    data = opened.data
    trained_on = dict.fromkeys(each for system in results.systems.values() for each in system.trained_on)
    return [
        ("study", study.name),
        ("data", study.held),
        ("data fingerprint", data.fingerprint),
        ("items", f"{len(data.human):,}, of {data.classes} classes"),
        ("splits", ", ".join(f"{name} {len(members):,}" for name, members in data.splits.items())),
        ("seed of the split", str(study.split_seed)),
        ("targets", ", ".join(target.name for target in study.targets)),
        ("deliveries", ", ".join(dict.fromkeys(_method(run.delivery, run.options) for run in opened.runs))),
        ("models", ", ".join(study.models)),
        ("seeds", ", ".join(map(str, study.seeds))),
        ("training", ", ".join(f"{name} {value}" for name, value in asdict(study.training).items())),
        ("runs", f"{len(opened.runs):,}, trained by {', '.join(trained_on)}"),
        ("intervals", f"{results.evaluation.resamples:,} resamples, seed {results.evaluation.seed}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in _versions())),
    ]


def _method(delivery: str, options: Any) -> str:
    told = ", ".join(f"{name} {value}" for name, value in sorted(options.items()))
    return f"{delivery} ({told})" if told else delivery


def _versions() -> list[tuple[str, str]]:
    return [("Python", platform.python_version()), *((name, metadata.version(name)) for name in VERSIONS)]
