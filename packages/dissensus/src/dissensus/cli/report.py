"""`dissensus report`: a study, or votes and predictions, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dissensus.cli import options as opt
from dissensus.cli.inputs import people_beside_predictions, read_systems, system_files
from dissensus.cli.printing import console, json_alone, next_step, note, plain, typed
from dissensus.errors import InputError
from dissensus.votes.privacy import LEAST_PEOPLE, key_from, pseudonymous

if TYPE_CHECKING:
    from dissensus.report.subject import Subject
    from dissensus.votes.formats import Options


def report_study(
    *,
    source: str | None = None,
    store: Path = Path("dissensus-runs"),
    pseudonyms: str | None,
    least_people: int,
    resamples: int,
    output: Path,
    seed: int,
    json: Path | None,
) -> None:
    """Write a finished study as a page."""
    from dissensus.parts import joined

    of_study = joined("joins", "report.study", part="train", wanted_by=f"report {source}")
    key = None if pseudonyms is None else key_from(pseudonyms)
    subject = of_study(str(source), store, pseudonyms=key, least_people=least_people, resamples=resamples, seed=seed)
    _write(subject, output, seed=seed, json=json)


@opt.command("report", modes={"source": report_study})
def report(
    reading: Options,
    votes: str | None = None,
    predictions: Path | None = None,
    compare: list[Path] | None = None,
    texts: Path | None = None,
    given: opt.Given | None = None,
    answers: Path | None = None,
    only_common: bool = False,
    pseudonyms: str | None = None,
    least_people: int = LEAST_PEOPLE,
    scheme: str = "frequency",
    resamples: int = 1000,
    output: Path = Path("report.html"),
    seed: int = 0,
    json: Path | None = None,
) -> None:
    """Write a finished study, or predictions beside votes, as one self-contained page with its figures as files."""
    from dissensus.evaluation.evaluating import evaluate
    from dissensus.evaluation.metrics.registry import reported
    from dissensus.evaluation.predictions import read_column
    from dissensus.labels.labelling import label
    from dissensus.report.subject import files_subject

    if votes is None:
        raise InputError(
            "report: it is about a study (dissensus report STUDY) or about files (dissensus report --votes FILE "
            "--predictions FILE); give one of the two"
        )
    if predictions is None:
        raise InputError("report: --votes needs --predictions FILE beside it; give both")
    paths = [predictions, *(compare or ())]
    people, _, cautions = people_beside_predictions(votes, reading, paths)
    if pseudonyms is not None:
        people = pseudonymous(people, key_from(pseudonyms))
    files = system_files(paths)
    _, human, models, left_out = read_systems(
        label(people, scheme), files, reading, given=given, answers=answers, only_common=only_common
    )
    subject = files_subject(
        evaluate(human, models, votes=people, metrics=reported(ordered=human.ordered), resamples=resamples, seed=seed),
        human,
        models,
        votes=people,
        title=Path(votes).name,
        texts=None if texts is None else read_column(texts, "text", human.items),
        files=[
            ("votes", votes),
            *((f"predictions {name}", str(path)) for name, path in files.items()),
            *([] if texts is None else [("texts", str(texts))]),
        ],
        cautions=(*cautions, *left_out),
        least_people=least_people,
        command=typed(
            *("report", "--votes", votes, "--predictions", predictions),
            compare=compare,
            texts=texts,
            given=given,
            answers=answers,
            only_common=only_common,
            scheme=scheme if scheme != "frequency" else None,
            resamples=resamples if resamples != 1000 else None,
            seed=seed,
            reading=reading,
        ),
    )
    _write(subject, output, seed=seed, json=json)


def _write(subject: Subject, output: Path, *, seed: int, json: Path | None) -> None:
    from dissensus.report import write_report

    page = write_report(subject, output, seed=seed)
    beside = page.with_name(f"{page.stem}-files")
    if json_alone(json, {"page": str(page), "figures_and_tables": str(beside)}):
        return
    console().print(plain(str(page)), soft_wrap=True)
    note(f"figures and tables are in {beside}")
    next_step(f"open {page} in a browser")
