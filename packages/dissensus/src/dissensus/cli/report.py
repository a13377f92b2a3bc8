"""`dissensus report`: a study, or votes and predictions, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_alone, next_step, note, plain
from dissensus.votes.privacy import LEAST_PEOPLE, pseudonymous

if TYPE_CHECKING:
    from dissensus.report.subject import Subject
    from dissensus.votes.reading import Options


@opt.reads("pseudonyms", "least_people")
def report(
    reading: Options,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY|STORE]",
            help="A study file (.toml), the name of a shipped study, or a run store; or leave it out, and give --votes "
            "and --predictions.",
        ),
    ] = None,
    store: opt.RunsIn = Path("dissensus-runs"),
    votes: opt.VotesFile = None,
    predictions: opt.PredictionsFile = None,
    compare: opt.Compared = None,
    texts: Annotated[
        Path | None,
        typer.Option("--texts", metavar="FILE", help="A table with the columns item and text, to show items by."),
    ] = None,
    given: opt.Given = None,
    answers: opt.Answers = None,
    only_common: opt.OnlyCommon = False,
    pseudonyms: opt.Pseudonyms = None,
    least_people: opt.LeastPeople = LEAST_PEOPLE,
    scheme: Annotated[str, typer.Option(help="How votes become label distributions.")] = "frequency",
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples behind each interval.", min=2)] = 1000,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="The page to write.", callback=opt.not_standard_output),
    ] = Path("report.html"),
    seed: Annotated[int, typer.Option(help="Seed of resamples and of thinned points.")] = 0,
    json: opt.JsonTo = None,
) -> None:
    """Write a finished study, or predictions beside votes, as one self-contained page with its figures as files."""
    from dissensus.errors import InputError
    from dissensus.parts import joined
    from dissensus.report import write_report

    if (source is None) == (votes is None):
        raise InputError(
            "report: it is about a study (dissensus report STUDY) or about files (dissensus report --votes FILE "
            "--predictions FILE); give one of the two"
        )
    if votes is None:
        of_study = joined("joins", "report.study", part="train", wanted_by=f"report {source}")
        subject = of_study(
            str(source), store, pseudonyms=pseudonyms, least_people=least_people, resamples=resamples, seed=seed
        )
    elif predictions is None:
        raise InputError("report: --votes needs --predictions FILE beside it; give both")
    else:
        subject = _of_files(
            votes,
            [predictions, *(compare or ())],
            reading,
            texts=texts,
            given=given,
            answers=answers,
            only_common=only_common,
            pseudonyms=pseudonyms,
            least_people=least_people,
            scheme=scheme,
            resamples=resamples,
            seed=seed,
        )
    written = write_report(subject, output, seed=seed)
    beside = written.with_name(f"{written.stem}-files")
    if json_alone(json, {"page": str(written), "figures_and_tables": str(beside)}):
        return
    console().print(plain(str(written)), soft_wrap=True)
    note(f"figures and tables are in {beside}")
    next_step(f"open {written} in a browser")


def _of_files(
    votes: str,
    paths: list[Path],
    reading: Options,
    *,
    texts: Path | None,
    given: Literal["probabilities", "logits"] | None,
    answers: Path | None,
    only_common: bool,
    pseudonyms: str | None,
    least_people: int,
    scheme: str,
    resamples: int,
    seed: int,
) -> Subject:
    from dissensus.cli.evaluate import read_systems, system_files, votes_and_reading
    from dissensus.evaluation.evaluating import evaluate
    from dissensus.evaluation.metrics.registry import REPORTED
    from dissensus.evaluation.predictions import read_column
    from dissensus.labels.labelling import label as make
    from dissensus.report.subject import files_subject
    from dissensus.votes.kinds import people_alone

    read, how = votes_and_reading(votes, reading)
    opt.show_reading(how)
    read, models_left_out = people_alone(read)
    if pseudonyms is not None:
        read = pseudonymous(read, pseudonyms)
    labels = make(read, scheme)
    files = system_files(paths)
    _, human, models, left_out = read_systems(
        labels, files, reading, given=given, answers=answers, only_common=only_common
    )
    evaluation = evaluate(human, models, votes=read, metrics=REPORTED, resamples=resamples, seed=seed)
    told = [("votes", votes), *((f"predictions {name}", str(path)) for name, path in files.items())]
    told += [("texts", str(texts))] if texts is not None else []
    typed = " ".join(f"--compare {path}" for path in paths[1:])
    return files_subject(
        evaluation,
        human,
        models,
        votes=read,
        title=Path(votes).name,
        texts=None if texts is None else read_column(texts, "text", human.items),
        files=told,
        cautions=(*([models_left_out] if models_left_out else []), *left_out),
        least_people=least_people,
        command=f"dissensus report --votes {votes} --predictions {paths[0]} {typed}".rstrip()
        + (f" --texts {texts}" if texts is not None else ""),
    )
