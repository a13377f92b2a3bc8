"""What `dissensus evaluate` says of single votes (`--per annotator`), and of submissions to LeWiDi (`--lewidi`)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final, Literal

from dissensus.cli.printing import console, json_to, note, plain, table, text_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.people.evaluating import PeopleEvaluation
    from dissensus.evaluation.people.groups import GroupScores
    from dissensus.evaluation.people.vote_scores import VotePredictions
    from dissensus.votes.reading import Options
    from dissensus.votes.table import Votes

MOST_PEOPLE: Final = 5
"""People on the screen at either end: those whom the system predicts worst and best."""

MOST_GROUPS: Final = 12
"""Groups of an attribute on the screen, the largest."""

FEWEST_VOTES: Final = 10
"""Votes that a person needs to be listed at either end: with fewer, luck decides."""


def evaluate_by_annotator(
    votes: Votes,
    files: Mapping[str, Path],
    reading: Options,
    *,
    training: Votes | None,
    notes: Sequence[str],
    given: Literal["probabilities", "logits"] | None,
    only_common: bool,
    pseudonyms: str | None,
    least: int,
    seed: int,
    json: Path | None,
    markdown: Path | None,
    figure: Path | None,
) -> None:
    """Score predictions of single votes, and print or write what was found."""
    from dissensus.errors import InputError
    from dissensus.evaluation.people.evaluating import evaluate_people, item_predictions
    from dissensus.evaluation.people.reading import predicts_people, read_vote_predictions
    from dissensus.evaluation.predictions import read_predictions
    from dissensus.votes.privacy import pseudonymous

    systems: dict[str, VotePredictions] = {}
    labels: list[str] = []
    notes = list(notes)
    for number, (name, path) in enumerate(files.items()):
        if predicts_people(path, annotator=reading.annotator):
            read = read_vote_predictions(
                path,
                votes,
                order=reading.classes,
                item=reading.item,
                annotator=reading.annotator,
                label=reading.label,
                given=given,
                only_common=only_common,
            )
            systems[name] = read
            labels += [name] if read.given == "labels" else []
            notes += read.notes
        elif number:
            found = read_predictions(path, votes.classes, order=reading.classes, item=reading.item, given=given)
            systems[f"{name} (item only)"] = item_predictions(votes, found.items, found.probabilities.mean(axis=0))
            seeds = f" in the mean over its {len(found.probabilities)} seeds" if len(found.probabilities) > 1 else ""
            notes.append(f"{path}: it has no column of annotators, so it predicts the same of everybody{seeds}")
        else:
            raise InputError(
                f"{path}: there is no column of annotators, and --per annotator scores predictions for people; give "
                "one row for each item and annotator, or name the column with --annotator"
            )
    named = votes if pseudonyms is None else pseudonymous(votes, pseudonyms)
    result = evaluate_people(
        named, systems, training=training, labels=labels, least=least, only_common=only_common, seed=seed
    )
    for sentence in notes:
        note(sentence)
    if json is not None:
        sources = {name: str(path) for name, path in files.items()}
        json_to(json, {"predictions": sources, **result.to_dict(), "least_people": least, "reading_notes": notes})
    if markdown is not None:
        text_to(markdown, _markdown(result))
    if figure is not None:
        from dissensus.report.people import draw_groups

        draw_groups(result, figure)
    if not [path for path in (json, markdown) if path is not None and str(path) == "-"]:
        _print(result)


def score_lewidi(submission: Path, reference: Path, *, json: Path | None) -> None:
    """Score a submission to LeWiDi 2025, and print or write its scores."""
    from dissensus.evaluation.people.lewidi import score_submission

    found = score_submission(submission, reference)
    if json is not None:
        json_to(json, {"submission": str(submission), "scores": [asdict(each) for each in found]})
    if json is not None and str(json) == "-":
        return
    shown = table("dataset", "task", "measure (lower is better)", ">items", ">score", ">baseline")
    for each in found:
        task = "A, soft" if each.task == "soft" else "B, perspectivist"
        baseline = "–" if each.baseline is None else f"{each.baseline:.5f}"
        shown.add_row(each.dataset, task, each.measure, f"{each.items:,}", f"{each.score:.5f}", baseline)
    out = console()
    out.print(shown)
    for sentence in dict.fromkeys(
        f"{each.dataset}, {each.task}: {each.baseline_is}" for each in found if each.baseline_is
    ):
        out.print(plain(f"baseline of {sentence}"))


def _print(result: PeopleEvaluation) -> None:
    from dissensus.cli.evaluate import short_table

    out = console()
    for sentence in sentences(result):
        out.print(plain(sentence), soft_wrap=True)
    out.print()
    out.print(short_table([*_overall(result)]))
    parts = [(*_people(result), []), *((*_groups(each, most=MOST_GROUPS), _tests(each)) for each in result.by_group)]
    for heading, lines, told in parts:
        out.print(f"\n[bold]{plain(heading)}[/]")
        if lines:
            out.print(short_table(lines))
        for sentence in told:
            out.print(plain(sentence), soft_wrap=True)
    out.print()
    for sentence in result.notes:
        out.print(plain(sentence), soft_wrap=True)


def sentences(result: PeopleEvaluation) -> list[str]:
    """What was found, in words."""
    from dissensus.evaluation.comparison.differences import shown_p
    from dissensus.evaluation.people.evaluating import TITLES

    title = TITLES[result.headline].partition(",")[0]
    score = result.scores[result.system][result.headline]
    scored = f"{result.votes:,} votes by {result.people:,} people on {result.items:,} items."
    told = [f"{scored} {title} of {result.system}: {score}. Intervals are for other people and other items."]
    for each in result.differences:
        low, high = each.value.low, each.value.high
        side = "not told apart from" if low is None or high is None or low <= 0 <= high else ""
        side = side or ("better than" if each.value.value < 0 else "worse than")
        p = "" if each.p_value is None else f", p {shown_p(each.p_value)}"
        told.append(f"{result.system} is {side} {each.system}: {_signed(each.value)}{p}.")
    between = result.between_people[result.headline]
    told.append(
        f"People differ in it by {between:.3f} (standard deviation beyond the noise of their votes)."
        if between
        else "People do not differ in it by more than the noise of their votes."
    )
    return told


def _overall(result: PeopleEvaluation) -> list[list[str]]:
    from dissensus.evaluation.people.evaluating import TITLES

    metrics = list(dict.fromkeys(name for each in result.scores.values() for name in each))
    lines = [["", *(f"{TITLES[name]} ↓" for name in metrics)]]
    for system, scores in result.scores.items():
        lines.append([system, *(str(scores[name]) if name in scores else "–" for name in metrics)])
    return lines


def _people(result: PeopleEvaluation) -> tuple[str, list[list[str]]]:
    """Those whom the system predicts worst and best."""
    from dissensus.evaluation.people.evaluating import TITLES

    title = TITLES[result.headline]
    rows = [row for row in result.by_person.to_rows() if row["votes"] >= FEWEST_VOTES]
    if not rows:
        return f"Nobody has {FEWEST_VOTES} votes: --json has everybody", []
    rows.sort(key=lambda row: -row[result.headline])
    heading = f"By person, {title} ({len(rows):,} people with {FEWEST_VOTES} votes or more; --json has everybody)"
    if len(rows) > 2 * MOST_PEOPLE:
        rows = [*rows[:MOST_PEOPLE], {}, *rows[-MOST_PEOPLE:]]
    lines = [["", "votes", "score", "95 % interval"]]
    for row in rows:
        if not row:
            lines.append(["…", "", "", ""])
            continue
        low, high = row[f"{result.headline}_low"], row[f"{result.headline}_high"]
        lines.append(
            [str(row["annotator"]), f"{row['votes']:,}", f"{row[result.headline]:.3f}", f"{low:.3f} to {high:.3f}"]
        )
    return heading, lines


def _groups(scores: GroupScores, *, most: int | None = None) -> tuple[str, list[list[str]]]:
    """The groups of an attribute, the largest `most` of them."""
    more = 0 if most is None else max(0, len(scores.groups) - most)
    heading = f"By {scores.attribute}" + (f" (the {most} largest groups; --json has {more} more)" if more else "")
    if not scores.groups:
        return f"{heading}: no group is large enough to be shown", []
    metrics = list(scores.groups[0].scores)
    lines = [[scores.attribute, "people", "votes", metrics[0], "disadvantage", "squared distance"]]
    for each in scores.groups[:most]:
        distance = "–" if each.distance is None else str(each.distance)
        lines.append(
            [
                each.name,
                f"{each.people:,}",
                f"{each.votes:,}",
                str(each.scores[metrics[0]]),
                _signed(each.disadvantage),
                distance,
            ]
        )
    return heading, lines


def _tests(scores: GroupScores) -> list[str]:
    """What the tests say of an attribute, in words; people, not votes, were dealt out to groups at random."""
    from dissensus.evaluation.comparison.differences import shown_p
    from dissensus.evaluation.people.map import LEVEL

    told = []
    if scores.worst is not None and scores.spread is not None and scores.p_scores is not None:
        chance = "" if scores.p_scores <= LEVEL else "chance may explain that, "
        told.append(
            f"Worst predicted: {scores.worst}, by {scores.spread:.3f} worse than the best predicted group on the same "
            f"items ({chance}p {shown_p(scores.p_scores)})."
        )
    if scores.p_votes is not None:
        differ = "differ" if scores.p_votes <= LEVEL else "are not seen to differ"
        told.append(f"The groups {differ} in what they say of the same items (p {shown_p(scores.p_votes)}).")
    if scores.p_distance is not None:
        some = "resembles" if scores.p_distance <= LEVEL else "is not seen to resemble"
        told.append(f"The system {some} some groups' distributions more than others' (p {shown_p(scores.p_distance)}).")
    return [*told, *([scores.hidden] if scores.hidden else [])]


def _signed(value: Estimate) -> str:
    ends = "" if value.low is None or value.high is None else f" [{value.low:+.3f}, {value.high:+.3f}]"
    return f"{value.value:+.3f}{ends}"


def _markdown(result: PeopleEvaluation) -> str:
    from dissensus.evaluation.comparison.tables import as_list
    from dissensus.pages import as_markdown, markdown

    def table(lines: list[list[str]]) -> str:
        header, *rows = ([as_markdown(cell) for cell in line] for line in lines)
        return markdown(header, rows)

    parts = [as_list(sentences(result)), table(_overall(result))]
    for each in result.by_group:
        heading, lines = _groups(each)
        parts += [f"### {as_markdown(heading)}", *([table(lines)] if lines else []), as_list(_tests(each))]
    return "\n\n".join([*parts, as_list(result.notes)]) + "\n"
