"""What `dissensus evaluate` says of single votes (`--per annotator`), and of submissions to LeWiDi (`--lewidi`)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dissensus.cli.inputs import people_beside_predictions, system_files
from dissensus.cli.options import Given
from dissensus.cli.printing import console, json_alone, next_step, note, plain, say, short_table, table, text_to, typed
from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.people.evaluating import PeopleEvaluation
    from dissensus.evaluation.people.groups import GroupScores
    from dissensus.evaluation.people.vote_scores import VotePredictions
    from dissensus.votes.formats import Options

MOST_PEOPLE: Final = 5
"""People on the screen at either end: those whom the system predicts worst and best."""

MOST_GROUPS: Final = 12
"""Groups of an attribute on the screen, the largest."""

FEWEST_VOTES: Final = 10
"""Votes that a person needs to be listed at either end: with fewer, luck decides."""


def evaluate_per_annotator(
    *,
    reading: Options,
    votes: str | None,
    predictions: Path | None,
    compare: list[Path] | None,
    per: Literal["annotator"] | None = None,
    training: str | None = None,
    given: Given | None,
    answers: Path | None,
    only_common: bool,
    pseudonyms: str | None,
    by_person: bool = False,
    least_people: int,
    seed: int,
    json: Path | None,
    markdown: Path | None,
    figure: Path | None,
) -> None:
    """Score predictions of single votes, and print or write the scores."""
    from dissensus.evaluation.model_outputs import read_answers
    from dissensus.evaluation.people.evaluating import evaluate_people, item_predictions
    from dissensus.evaluation.people.reading import predicts_people, read_vote_predictions
    from dissensus.evaluation.predictions import read_predictions
    from dissensus.votes.privacy import few_digits, key_from, pseudonymous

    if votes is None or predictions is None:
        raise InputError("evaluate: it needs --votes FILE and --predictions FILE; give both")
    people, _, notes = people_beside_predictions(votes, reading, [predictions, *(compare or ())])
    taught = None if training is None else people_beside_predictions(training, reading, [predictions])[0]
    files = system_files([predictions, *(compare or ())])
    systems: dict[str, VotePredictions] = {}
    labels: list[str] = []
    meaning = None if answers is None else read_answers(answers)
    stated: Any = {"order": reading.classes, "item": reading.item, "given": given, "answers": meaning}
    for number, (name, path) in enumerate(files.items()):
        if predicts_people(path, annotator=reading.annotator):
            by = {**stated, "annotator": reading.annotator, "label": reading.label}
            read = read_vote_predictions(path, people, only_common=only_common, **by)
            systems[name] = read
            labels += [name] if read.given == "labels" else []
            notes += read.notes
        elif number:
            output = read_predictions(path, people.classes, **stated)
            systems[f"{name} (item only)"] = item_predictions(people, output.items, output.probabilities.mean(axis=0))
            notes += [f"{path}: {seen}"] if (seen := output.seen(name)) else []
            seeds = f" in the mean over its {len(output.probabilities)} seeds" if len(output.probabilities) > 1 else ""
            notes.append(f"{path}: it has no column of annotators, so it predicts the same of everybody{seeds}")
        else:
            raise InputError(
                f"{path}: there is no column of annotators, and --per annotator scores predictions for people; give "
                "one row for each item and annotator, or name the column with --annotator"
            )
    if answers is not None and not labels and systems.keys() <= files.keys():
        raise InputError(f"{answers}: the predictions hold numbers for each class, and no answers; leave out --answers")
    if pseudonyms is not None:
        key = key_from(pseudonyms)
        people, taught = pseudonymous(people, key), None if taught is None else pseudonymous(taught, key)
    result = evaluate_people(
        people, systems, training=taught, labels=labels, least=least_people, only_common=only_common, seed=seed
    )
    note(*notes)
    if markdown is not None:
        text_to(markdown, _markdown(result))
    if figure is not None:
        from dissensus.report.disagreeing import group_dots
        from dissensus.report.dots import write_figure

        write_figure(group_dots(result), figure)
    paths = {name: str(path) for name, path in files.items()}
    told = result.to_dict(by_person=by_person)
    if pseudonyms is not None and told["by_person"] is not None:
        # Of one score three digits fit many sets of people, of three scores together only a few.
        kept = ("annotator", "votes", *(f"{result.headline}{end}" for end in ("", "_low", "_high")))
        told["by_person"] = [{name: row[name] for name in kept} for row in told["by_person"]]
    told = {"predictions": paths, **told, "least_people": least_people, "reading_notes": notes}
    if json_alone(json, told if pseudonyms is None else few_digits(told)) or str(markdown) == "-":
        return
    _print(result, by_person=by_person or not result.by_group)
    again: Any = {"compare": compare, "given": given, "answers": answers, "only_common": only_common}
    groups = {"figure": "groups.svg"} if people.annotator_attributes else {"attribute": "COLUMN"}
    line = typed("evaluate", per=per, votes=votes, predictions=predictions, **groups, **again, reading=reading)
    next_step(line, "" if people.annotator_attributes else "for groups")


def score_lewidi(*, lewidi: Path | None = None, votes: str | None, json: Path | None) -> None:
    """Score a submission to LeWiDi 2025, and print or write its scores."""
    from dissensus.evaluation.people.lewidi import score_submission

    if lewidi is None or votes is None:
        raise InputError("evaluate: --lewidi needs --votes FOLDER, the folder of the official files; give it")
    scores = score_submission(lewidi, Path(votes))
    if json_alone(json, {"submission": str(lewidi), "scores": [asdict(score) for score in scores]}):
        return
    lines = table("dataset", "task", "measure (lower is better)", ">items", ">score", ">baseline")
    for score in scores:
        task = "A, soft" if score.task == "soft" else "B, perspectivist"
        baseline = "–" if score.baseline is None else f"{score.baseline:.5f}"
        lines.add_row(score.dataset, task, score.measure, f"{score.items:,}", f"{score.score:.5f}", baseline)
    console().print(lines)
    baselines = (f"{score.dataset}, {score.task}: {score.baseline_is}" for score in scores if score.baseline_is)
    for sentence in dict.fromkeys(baselines):
        console().print(plain(f"baseline of {sentence}"))
    next_step("dissensus evaluate --per annotator --votes VOTES --predictions FILE", "scores with intervals")


def _print(result: PeopleEvaluation, *, by_person: bool) -> None:
    out = console()
    say(sentences(result))
    out.print()
    out.print(short_table(_overall(result)))
    groups = [(*_groups(scores, most=MOST_GROUPS), _tests(scores)) for scores in result.by_group]
    for heading, lines, tests in [*([(*_people(result), [])] if by_person else []), *groups]:
        out.print(f"\n[bold]{plain(heading)}[/]")
        if lines:
            out.print(short_table(lines))
        say(tests)
    out.print()
    hidden = "no scores by person beside groups, as together they tell who is in which (--by-person shows them)"
    say([*result.notes, *([] if by_person else [hidden])])


def sentences(result: PeopleEvaluation) -> list[str]:
    """The scores, the differences and how far people differ, in words."""
    from dissensus.evaluation.comparison.differences import shown_p
    from dissensus.evaluation.people.evaluating import TITLES

    title = TITLES[result.headline].partition(",")[0]
    score = result.scores[result.system][result.headline]
    scored = f"{result.votes:,} votes by {result.people:,} people on {result.items:,} items."
    lines = [f"{scored} {title} of {result.system}: {score}. Intervals are for other people and other items."]
    for difference in result.differences:
        value = difference.value
        unclear = value.low is None or value.high is None or value.low <= 0 <= value.high
        side = "not significantly different from" if unclear else "better than" if value.value < 0 else "worse than"
        p = "" if difference.p_value is None else f", p {shown_p(difference.p_value)}"
        lines.append(f"{result.system} is {side} {difference.system}: {_signed(value)}{p}.")
    between = result.between_people[result.headline]
    lines.append(
        f"People differ in it by {between:.3f} (standard deviation beyond the noise of their votes)."
        if between
        else "People do not differ in it by more than the noise of their votes."
    )
    return lines


def _overall(result: PeopleEvaluation) -> list[list[str]]:
    from dissensus.evaluation.people.evaluating import TITLES

    metrics = list(dict.fromkeys(name for scores in result.scores.values() for name in scores))
    header = ["", *(f"{TITLES[name]} ↓" for name in metrics)]
    return [header, *([system, *(str(of.get(name, "–")) for name in metrics)] for system, of in result.scores.items())]


def _people(result: PeopleEvaluation) -> tuple[str, list[list[str]]]:
    """Those whom the system predicts worst and best."""
    from dissensus.evaluation.people.evaluating import TITLES

    metric = result.headline
    rows = [row for row in result.by_person.to_rows() if row["votes"] >= FEWEST_VOTES]
    if not rows:
        return f"Nobody has {FEWEST_VOTES} votes: --json has everybody", []
    few = f"{len(rows):,} people with {FEWEST_VOTES} votes or more"
    lines = [
        [
            str(row["annotator"]),
            f"{row['votes']:,}",
            f"{row[metric]:.3f}",
            f"{row[f'{metric}_low']:.3f} to {row[f'{metric}_high']:.3f}",
        ]
        for row in sorted(rows, key=lambda row: -row[metric])
    ]
    if len(lines) > 2 * MOST_PEOPLE:
        lines[MOST_PEOPLE:-MOST_PEOPLE] = [["…", "", "", ""]]
    heading = f"By person, {TITLES[metric]} ({few}; --json has everybody)"
    return heading, [["", "votes", "score", "95 % interval"], *lines]


def _groups(scores: GroupScores, *, most: int | None = None) -> tuple[str, list[list[str]]]:
    """The groups of an attribute, the largest `most` of them."""
    more = 0 if most is None else max(0, len(scores.groups) - most)
    heading = f"By {scores.attribute}" + (f" (the {most} largest groups; --json has {more} more)" if more else "")
    if not scores.groups:
        return f"{heading}: no group is large enough to be shown", []
    metric = next(iter(scores.groups[0].scores))
    return heading, [
        [scores.attribute, "people", "votes", metric, "disadvantage", "squared distance"],
        *(
            [
                group.name,
                f"{group.people:,}",
                f"{group.votes:,}",
                str(group.scores[metric]),
                _signed(group.disadvantage),
                "–" if group.distance is None else str(group.distance),
            ]
            for group in scores.groups[:most]
        ),
    ]


def _tests(scores: GroupScores) -> list[str]:
    """What the tests say of an attribute, in words; people, not votes, were dealt out to groups at random."""
    from dissensus.evaluation.comparison.differences import shown_p
    from dissensus.evaluation.people.map import LEVEL

    lines = []
    if scores.worst is not None and scores.spread is not None and scores.p_scores is not None:
        chance = "" if scores.p_scores <= LEVEL else "chance may explain that, "
        lines.append(
            f"Worst predicted: {scores.worst}, by {scores.spread:.3f} worse than the best predicted group on the same "
            f"items ({chance}p {shown_p(scores.p_scores)})."
        )
    if scores.p_votes is not None:
        differ = "differ" if scores.p_votes <= LEVEL else "do not differ significantly"
        lines.append(f"The groups {differ} in what they say of the same items (p {shown_p(scores.p_votes)}).")
    if scores.p_distance is not None:
        some = "is" if scores.p_distance <= LEVEL else "is not significantly"
        lines.append(
            f"The system {some} closer to some groups' distributions than to others' (p {shown_p(scores.p_distance)})."
        )
    return [*lines, *filter(None, (scores.apart, scores.hidden))]


def _signed(value: Estimate) -> str:
    ends = "" if value.low is None or value.high is None else f" [{value.low:+.3f}, {value.high:+.3f}]"
    return f"{value.value:+.3f}{ends}"


def _markdown(result: PeopleEvaluation) -> str:
    from dissensus.evaluation.comparison.tables import as_list
    from dissensus.pages import as_markdown, markdown

    header, *rows = _overall(result)
    parts = [as_list(sentences(result)), markdown(header, rows)]
    for scores in result.by_group:
        heading, lines = _groups(scores)
        grid = [markdown(lines[0], lines[1:])] if lines else []
        parts += [f"### {as_markdown(heading)}", *grid, as_list(_tests(scores))]
    return "\n\n".join([*parts, as_list(result.notes)]) + "\n"
