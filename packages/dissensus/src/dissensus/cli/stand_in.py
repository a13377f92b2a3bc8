"""`dissensus stand-in`: may a model take a person's place among annotators?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissensus.cli import options as opt
from dissensus.cli.inputs import system_files, votes_beside_predictions
from dissensus.cli.printing import console, json_alone, next_step, note, plain, say, short_table, typed
from dissensus.errors import InputError, choices
from dissensus.votes.privacy import LEAST_PEOPLE

if TYPE_CHECKING:
    from dissensus.evaluation.stand_in.alternative_annotator import Score
    from dissensus.evaluation.stand_in.answers import Answers
    from dissensus.evaluation.stand_in.judging import StandIn
    from dissensus.votes.formats import Options

MOST_PARTS: Final = 8
"""Parts on the screen, those on which the model is least often as good as people."""

MOST_ITEMS: Final = 3
"""Items on the screen, those on which the model is furthest behind people."""


@opt.command("stand_in")
def stand_in(
    reading: Options,
    votes: str,
    predictions: Path | None = None,
    compare: list[Path] | None = None,
    epsilon: float = 0.2,
    false_discoveries: float = 0.05,
    score: str | None = None,
    balanced: bool = False,
    by: str | None = None,
    expert: str | None = None,
    least_items: int = 30,
    resamples: int = 1000,
    given: opt.Given | None = None,
    answers: Path | None = None,
    pseudonyms: str | None = None,
    least_people: int = LEAST_PEOPLE,
    seed: int = 0,
    json: Path | None = None,
) -> None:
    """May a model take a person's place? The alternative annotator test, worth in people, and where it fails."""
    from dissensus.evaluation.model_outputs import read_answers
    from dissensus.evaluation.stand_in.answers import read_model_answers, voted_answers
    from dissensus.evaluation.stand_in.judging import stand_in as judged_stand_ins
    from dissensus.votes.kinds import people_alone
    from dissensus.votes.privacy import few_digits, key_from, pseudonymous, pseudonyms_of

    everybody, _ = votes_beside_predictions(votes, reading, [predictions, *(compare or ())])
    people, left_out = people_alone(everybody)
    meaning = None if answers is None else read_answers(answers)
    files = system_files([*([] if predictions is None else [predictions]), *(compare or ())])
    models: dict[str, Answers] = {} if predictions is not None else voted_answers(everybody)
    for name, path in files.items():
        of_file = read_model_answers(
            path, people, name=name, order=reading.classes, item=reading.item, given=given, answers=meaning
        )
        for again in (model for model in of_file if model in models):
            raise InputError(f"{path}: a model '{again}' was read from another file; give each model one name")
        models |= of_file
    notes = [left_out] if left_out and predictions is not None else []
    notes += [sentence for model in models.values() for sentence in model.notes]
    if pseudonyms is not None:
        key = key_from(pseudonyms)
        people, expert = pseudonymous(people, key), None if expert is None else pseudonyms_of([expert], key)[0]
    result = judged_stand_ins(
        people,
        models,
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
    note(*notes)
    paths = {name: str(path) for name, path in files.items()}
    told = {"votes": votes, "predictions": paths, **result.to_dict(), "reading_notes": notes}
    if not json_alone(json, told if pseudonyms is None else few_digits(told)):
        _print(result)
    if predictions is not None and len(models) == len(files):
        beside_it = {"compare": compare, "given": given, "answers": answers}
        next_step(typed("report", "--votes", votes, "--predictions", predictions, **beside_it, reading=reading))
    else:
        # A report reads files of one model each.
        next_step(typed("votes", "inspect", votes, reading=reading))


def _score(name: str) -> Score:
    """One of the scores, or the user's own similarity."""
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
    say([*(model.verdict for model in result.models.values()), *result.conditions])
    out.print()
    out.print(short_table(_overall(result)))
    out.print(plain(f"agreement: {result.score}; worth: as many people's votes forecast the others' as well"))
    if result.panel is not None:
        say([str(result.panel)])
    name, best = next(iter(result.models.items()))
    if parts := sorted(best.parts, key=lambda part: part.model_as_good)[:MOST_PARTS]:
        lines = [["", "votes", "as good as people", "agreement", "people's own"]]
        for part in parts:
            model = "–" if part.model is None else f"{part.model:.3f}"
            as_good = f"{part.model_as_good:.2f}"
            lines.append([f"{part.of} {part.name}", f"{part.votes:,}", as_good, model, f"{part.people:.3f}"])
        out.print(f"\n[bold]{plain(f'Where {name} fails')}[/]")
        out.print(short_table(lines))
    for failed in best.items[:MOST_ITEMS]:
        counts = ", ".join(f"{label} ({times})" for label, times in failed.votes.items())
        say([f"item {failed.item}: it answers {failed.answer}; people say {counts}"])


def _overall(result: StandIn) -> list[list[str]]:
    """A line for each model: the test, agreement with people against people's own, and worth in people."""
    lines = [
        ["", "passes", "winning rate", "advantage", "agreement", "people's own", "worth alone", "saves beside one"]
    ]
    for name, model in result.models.items():
        worth = [] if isinstance(model.saved, str) else [str(saved) for saved in model.saved[:2]]
        lines.append(
            [
                name,
                "untold" if model.untold else "yes" if model.test.passed else "no",
                f"{model.test.winning_rate:.2f}",
                f"{model.test.advantage_probability:.2f}",
                "–" if model.model is None else f"{model.model.value:.3f}",
                f"{model.people.value:.3f}",
                *worth,
                *["–"] * (2 - len(worth)),
            ]
        )
    constants = {
        (model.constant_answer, model.constant.winning_rate): model.constant
        for model in result.models.values()
        if model.constant is not None
    }
    for (answer, rate), test in constants.items():
        passes = "yes" if test.passed else "no"
        numbers = [f"{rate:.2f}", f"{test.advantage_probability:.2f}"]
        lines.append([f"always '{answer}'", passes, *numbers, *["–"] * 4])
    return lines
