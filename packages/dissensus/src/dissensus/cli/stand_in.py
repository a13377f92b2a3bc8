"""`dissensus stand-in`: may a model take a person's place among annotators?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dissensus.cli import options as opt
from dissensus.cli.evaluate import short_table, system_files, votes_and_reading
from dissensus.cli.printing import console, json_to, next_step, note, plain
from dissensus.votes.privacy import LEAST_PEOPLE

if TYPE_CHECKING:
    from dissensus.evaluation.stand_in.alternative_annotator import Score
    from dissensus.evaluation.stand_in.answers import Answers
    from dissensus.evaluation.stand_in.judging import Judged, StandIn
    from dissensus.votes.reading import Options

MOST_PARTS = 8
"""Parts on the screen, those on which the model is least often as good as people."""

MOST_ITEMS = 3
"""Items on the screen, those on which the model is furthest behind people."""


@opt.reads("pseudonyms", "least_people")
def stand_in(
    reading: Options,
    votes: Annotated[
        str, typer.Option("--votes", metavar="FILE", help="A votes file, or the name of a known dataset.")
    ],
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            metavar="FILE",
            help="A model's answers or predictions, as dissensus evaluate reads them; an official "
            "*.llm_annotations.json holds several models. Without it, the models that are marked among the votes.",
        ),
    ] = None,
    compare: opt.Compared = None,
    epsilon: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=0.99,
            help="How far the model may fall short of a person, for what a person costs: 0.2 for experts, 0.15 for "
            "trained people, 0.1 for crowd workers are the authors' advice.",
        ),
    ] = 0.2,
    false_discoveries: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Rate of false discoveries over all tested annotators.")
    ] = 0.05,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="accuracy|rmse|FILE.py:FUNCTION",
            help="How answers are compared; without it, rmse for a scale and accuracy for other classes. A function of "
            "your own gets two lists of answers and returns the similarity of each pair.",
        ),
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Let rare classes count as much as common ones.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="An attribute of annotators, whose groups are compared within themselves, or of items, whose domains "
            "are tested one by one.",
        ),
    ] = None,
    expert: Annotated[
        str | None,
        typer.Option(help="One annotator: who is closer to this person, the model or each of the others?"),
    ] = None,
    least_items: Annotated[
        int,
        typer.Option(
            min=2, help="Leave out annotators with fewer compared items; those with fewer than 30 take Wilcoxon's test."
        ),
    ] = 30,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples behind each interval.", min=0)] = 1000,
    given: opt.Given = None,
    answers: opt.Answers = None,
    pseudonyms: opt.Pseudonyms = None,
    least_people: opt.LeastPeople = LEAST_PEOPLE,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """May a model take a person's place? The alternative annotator test, worth in people, and where it fails."""
    from dissensus.errors import InputError
    from dissensus.evaluation.model_outputs import read_answers
    from dissensus.evaluation.stand_in.answers import read_model_answers, voted_answers
    from dissensus.evaluation.stand_in.judging import stand_in as judged_stand_ins
    from dissensus.votes.kinds import people_alone
    from dissensus.votes.privacy import pseudonymous

    said, _ = votes_and_reading(votes, reading)
    read, left_out = people_alone(said)
    meaning = None if answers is None else read_answers(answers)
    files = system_files([*([] if predictions is None else [predictions]), *(compare or ())])
    judged: dict[str, Answers] = {} if predictions is not None else voted_answers(said)
    for name, path in files.items():
        found = read_model_answers(
            path, read, name=name, order=reading.classes, item=reading.item, given=given, answers=meaning
        )
        again = [each for each in found if each in judged]
        if again:
            raise InputError(f"{path}: a model '{again[0]}' was read from another file; give each model one name")
        judged |= found
    notes = [left_out] if left_out and predictions is not None else []
    notes += [sentence for each in judged.values() for sentence in each.notes]
    result = judged_stand_ins(
        read if pseudonyms is None else pseudonymous(read, pseudonyms),
        judged,
        score=None if score is None else _score(score),
        epsilon=epsilon,
        false_discoveries=false_discoveries,
        least_items=least_items,
        balanced=balanced,
        by=by,
        expert=expert,
        least_people=least_people,
        resamples=resamples,
        seed=seed,
    )
    if json is not None:
        sources = {name: str(path) for name, path in files.items()}
        json_to(json, {"votes": votes, "predictions": sources, **result.to_dict(), "reading_notes": notes})
    for sentence in notes:
        note(sentence)
    if json is None or str(json) != "-":
        _print(result)
    if predictions is not None:
        next_step(f"dissensus report --votes {votes} --predictions {predictions}")


def _score(name: str) -> Score:
    """One of the scores, or the user's own similarity."""
    from dissensus.errors import InputError, choices
    from dissensus.own_code import own_function

    if name == "accuracy":
        return "accuracy"
    if name == "rmse":
        return "rmse"
    if ":" not in name:
        known = choices(name, ("accuracy", "rmse"))
        raise InputError(f"stand-in: there is no score '{name}'{known} or FILE.py:FUNCTION")
    return own_function(name, folder=Path.cwd(), kind="similarity")


def _print(result: StandIn) -> None:
    out = console()
    for each in result.models.values():
        out.print(plain(each.verdict), soft_wrap=True)
    for sentence in result.conditions:
        out.print(plain(sentence), soft_wrap=True)
    out.print()
    out.print(short_table(_overall(result)))
    out.print(plain(f"agreement: {result.score}; worth: as many people's votes forecast the others' as well"))
    name, best = next(iter(result.models.items()))
    lines = _parts(best)
    if lines:
        out.print(f"\n[bold]{plain(f'Where {name} fails')}[/]")
        out.print(short_table(lines))
    for failed in best.items[:MOST_ITEMS]:
        votes = ", ".join(f"{label} ({times})" for label, times in failed.votes.items())
        out.print(plain(f"item {failed.item}: it answers {failed.answer}; people say {votes}"), soft_wrap=True)


def _overall(result: StandIn) -> list[list[str]]:
    """A line for each model: the test, agreement with people against people's own, and worth in people."""
    lines = [
        ["", "passes", "winning rate", "advantage", "agreement", "people's own", "worth alone", "saves beside one"]
    ]
    for name, each in result.models.items():
        worth = ["–", "–"] if isinstance(each.saved, str) else [str(saved) for saved in each.saved[:2]]
        lines.append(
            [
                name,
                "yes" if each.test.passed else "no",
                f"{each.test.winning_rate:.2f}",
                f"{each.test.advantage_probability:.2f}",
                "–" if each.model is None else f"{each.model.value:.3f}",
                f"{each.people.value:.3f}",
                *worth,
                *["–"] * (2 - len(worth)),
            ]
        )
    return lines


def _parts(judged: Judged) -> list[list[str]]:
    parts = sorted(judged.parts, key=lambda part: part.model_as_good)[:MOST_PARTS]
    if not parts:
        return []
    lines = [["", "votes", "as good as people", "agreement", "people's own"]]
    for part in parts:
        model = "–" if part.model is None else f"{part.model:.3f}"
        shown = [f"{part.of} {part.name}", f"{part.votes:,}", f"{part.model_as_good:.2f}", model, f"{part.people:.3f}"]
        lines.append(shown)
    return lines
