"""`dissensus plan`: how many items with how many votes, which items next, and what that costs and shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dissensus.cli import options as opt
from dissensus.cli.evaluate import read_systems, short_table, system_files, votes_and_reading
from dissensus.cli.printing import console, json_to, next_step, note, plain

if TYPE_CHECKING:
    from dissensus.arrays import Table
    from dissensus.bootstrap import Estimate
    from dissensus.evaluation.finite_panel.finding import Finding
    from dissensus.planning.planned import Choice, Plan
    from dissensus.votes.reading import Options
    from dissensus.votes.table import Votes


@opt.reads()
def plan(
    source: opt.Source,
    reading: Options,
    budget: Annotated[
        float | None,
        typer.Option(
            help="What may be spent, in votes or in the currency of --price; without it, the cheapest plan that tells "
            "two systems apart with a power of 80 %."
        ),
    ] = None,
    goal: Annotated[
        Literal["soft_nll", "accuracy", "tvd", "wasserstein", "agreement"],
        typer.Option(help="What the votes are for: the metric that two systems are compared by, or agreement."),
    ] = "soft_nll",
    difference: Annotated[
        float | None,
        typer.Option(
            help="Between the two systems, in the metric of the goal; without it, one that knows nothing of every "
            "tenth item is told from one that does."
        ),
    ] = None,
    price: Annotated[float | None, typer.Option(help="Of one vote.", min=0)] = None,
    item_price: Annotated[float, typer.Option(help="Of one item, whatever its votes.", min=0)] = 0.0,
    answer_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds that an answer takes; without it, the median of the votes' own, if they have any."),
    ] = None,
    wage: Annotated[
        float | None, typer.Option(help="Pay of an hour; added to the price of a vote by its seconds.", min=0)
    ] = None,
    predictions: opt.PredictionsFile = None,
    compare: opt.Compared = None,
    only_common: opt.OnlyCommon = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="A new folder for the table (plan.csv), the figure (plan.svg), and the items that should get the next "
            "votes (next.csv for dissensus collect, next.json for Label Studio).",
            callback=opt.not_standard_output,
        ),
    ] = None,
    given: opt.Given = None,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """How many items with how many votes? From a pilot: agreement, stability, power and cost of each choice."""
    from dissensus.planning.planned import plan as planned
    from dissensus.votes.kinds import people_alone

    read, how = votes_and_reading(source, reading)
    votes, left_out = people_alone(read)
    votes, systems, notes = _systems(predictions, compare, votes, reading, given=given, only_common=only_common)
    result = planned(
        votes,
        goal=goal,
        budget=budget,
        difference=difference,
        prices=_prices(votes, price, item_price, answer_seconds, wage),
        systems=systems,
        seed=seed,
    )
    if output is not None:
        from dissensus.planning.figure import write_plan

        write_plan(result, output)
    if json is not None:
        json_to(json, {"votes": source, **opt.reading_dict(how), **result.to_dict()})
    for sentence in [left_out, *notes] if left_out else notes:
        note(sentence)
    if json is None or str(json) != "-":
        opt.show_reading(how)
        _print(result)
    next_step(
        f"dissensus plan {source} -o FOLDER, for the list of items"
        if output is None
        else f"dissensus collect init PROJECT --texts {output / 'next.csv'}, to ask people"
    )


def _systems(
    predictions: Path | None,
    compare: list[Path] | None,
    votes: Votes,
    reading: Options,
    *,
    given: Literal["probabilities", "logits"] | None,
    only_common: bool,
) -> tuple[Votes, dict[str, Table] | None, list[str]]:
    """The votes, of common items alone where that is asked for, and each system's probabilities for their items."""
    from dissensus.arrays import places_of
    from dissensus.errors import InputError
    from dissensus.labels.schemes import frequency

    if predictions is None:
        if compare:
            raise InputError("plan: --compare needs --predictions, the other of the two systems; give both")
        return votes, None, []
    files = system_files([predictions, *(compare or ())])
    found, human, models, left_out = read_systems(
        frequency(votes), files, reading, given=given, only_common=only_common
    )
    if human.classes != votes.classes:
        raise InputError("plan: the predictions have classes that nobody voted for; leave them out")
    notes = [*left_out, *(sentence for each in found.values() for sentence in each.notes)]
    common = votes.take_items(places_of(human.items, votes.items)) if left_out else votes
    return common, {name: each.probabilities.mean(axis=0) for name, each in models.items()}, notes


def _prices(
    votes: Votes, price: float | None, item_price: float, answer_seconds: float | None, wage: float | None
) -> Any:
    """What a vote costs: its price, its seconds at a wage, or both."""
    import numpy as np

    from dissensus.errors import InputError
    from dissensus.planning.planned import Prices

    if answer_seconds is None and votes.seconds is not None and np.isfinite(votes.seconds).any():
        answer_seconds = float(np.nanmedian(votes.seconds))
    if wage is not None and answer_seconds is None:
        raise InputError("plan: a wage needs the seconds that an answer takes; add --answer-seconds")
    paid = 0.0 if wage is None or answer_seconds is None else wage * answer_seconds / 3600
    vote = paid + (price if price is not None else 0.0 if wage is not None else 1.0)
    return Prices(vote=vote, item=item_price, seconds=answer_seconds)


def _print(result: Plan) -> None:
    out = console()
    for sentence in result.answer:
        out.print(plain(sentence), soft_wrap=True)
    out.print(plain(f"Training: {result.delivery}"), soft_wrap=True)
    out.print()
    if result.choices:
        out.print(short_table([_heading(result), *(_line(each, result) for each in result.choices)]))
    for sentence in result.notes:
        out.print(plain(sentence), soft_wrap=True)


def _shown(choice: Choice) -> dict[str, Finding]:
    """What is shown of a choice besides power: where classes are ordered, reliability in place of majorities."""
    shown = choice.shown
    if shown.reliability is not None:
        return {"alpha": shown.alpha, "reliability": shown.reliability}
    return {"alpha": shown.alpha, "same majority": shown.same_majority}


def _heading(result: Plan) -> list[str]:
    from dissensus.evaluation.metrics.registry import METRICS

    first = result.choices[0]
    return [
        "votes",
        "items",
        "cost",
        *([] if first.hours is None else ["hours"]),
        *_shown(first),
        *(f"power: {METRICS[metric].short}" for metric in result.difference),
        *(f"{system}: {METRICS[_scored(result)].short}" for system in first.scores),
    ]


def _scored(result: Plan) -> str:
    return result.goal if result.goal in result.difference else "soft_nll"


def _line(choice: Choice, result: Plan) -> list[str]:
    """One choice; intervals of what is shown and of the goal, the others are in the files."""
    from dissensus.planning.planned import money

    return [
        f"{choice.k}{' *' if choice is result.best else ''}",
        f"{choice.items:,}",
        money(choice.cost),
        *([] if choice.hours is None else [f"{choice.hours:,.0f}"]),
        *("–" if each.estimate is None else _number(each.estimate) for each in _shown(choice).values()),
        *(_number(each) if name == result.goal else f"{each.value:.2f}" for name, each in choice.power.items()),
        *(_number(found[_scored(result)]) for found in choice.scores.values()),
    ]


def _number(found: Estimate) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
