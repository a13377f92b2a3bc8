"""`dissensus plan`: how many items with how many votes, which items next, and what that costs and shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dissensus.cli import options as opt
from dissensus.cli.inputs import people_beside_predictions, read_files, read_systems, reading_dict, system_files
from dissensus.cli.printing import console, json_alone, next_step, note, say, short_table, typed
from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.bootstrap import Estimate
    from dissensus.planning.beside_model import PlanBeside
    from dissensus.planning.planned import Choice, Plan
    from dissensus.votes.formats import Options
    from dissensus.votes.table import Votes


@opt.command("plan")
def plan(
    source: str,
    reading: Options,
    budget: float | None = None,
    goal: Literal["soft_nll", "accuracy", "tvd", "wasserstein", "agreement"] = "soft_nll",
    difference: float | None = None,
    price: float | None = None,
    item_price: float = 0.0,
    answer_seconds: float | None = None,
    wage: float | None = None,
    predictions: Path | None = None,
    compare: list[Path] | None = None,
    model: list[Path] | None = None,
    only_common: bool = False,
    output: Path | None = None,
    given: opt.Given | None = None,
    seed: int = 0,
    json: Path | None = None,
) -> None:
    """How many items with how many votes? From a pilot: agreement, stability, power and cost of each choice."""
    from dissensus.arrays import places_of
    from dissensus.datasets.sources import TEXT_COLUMNS, named_like
    from dissensus.labels.schemes import frequency
    from dissensus.planning.beside_model import PlanBeside, plan_with_model
    from dissensus.planning.planned import plan as planned

    if model and (predictions is not None or compare or difference is not None or goal != "soft_nll" or only_common):
        raise InputError(
            "plan: --model asks for votes beside a model, --predictions for votes that find the better of two systems; "
            "leave out --predictions, --compare, --only-common, --goal and --difference"
        )
    paths = [predictions, *(compare or ()), *(model or ())]
    votes, how, notes = people_beside_predictions(source, reading, paths)
    systems = None
    if predictions is not None:
        files = system_files([predictions, *(compare or ())])
        outputs, human, aligned, left_out = read_systems(
            frequency(votes), files, reading, given=given, only_common=only_common
        )
        notes += [*left_out, *(sentence for output in outputs.values() for sentence in output.notes)]
        votes = votes.take_items(places_of(human.items, votes.items)) if left_out else votes
        systems = aligned
    elif compare:
        raise InputError("plan: --compare needs --predictions, the other of the two systems; give both")
    prices = _prices(votes, price, item_price, answer_seconds, wage)
    result: Plan | PlanBeside
    if model:
        beside = read_files(votes.classes, system_files(model), reading, given=given, shown=frequency(votes).shown)
        result = plan_with_model(votes, beside, budget=budget, prices=prices, seed=seed)
    else:
        result = planned(
            votes, goal=goal, budget=budget, difference=difference, prices=prices, systems=systems, seed=seed
        )
    if output is not None:
        from dissensus.planning.figure import write_plan

        write_plan(result, output)
    note(*notes)
    if not json_alone(json, {"votes": source, **reading_dict(how), **result.to_dict()}):
        say(result.answer)
        console().print()
        _print_savings(result) if isinstance(result, PlanBeside) else _print(result)
        say(result.notes)
    chosen: dict[str, Any] = {"budget": budget, "difference": difference, "price": price, "item_price": item_price}
    chosen |= {"wage": wage, "goal": goal if goal != "soft_nll" else None, "answer_seconds": answer_seconds}
    chosen |= {"given": given, "predictions": predictions, "compare": compare, "model": model}
    chosen["only_common"] = only_common
    if output is None:
        next_step(typed("plan", source, "-o", "plan", **chosen, reading=reading), "writes the list of items")
    elif result.next is not None and named_like(list(result.next.about), TEXT_COLUMNS):
        asking = typed("collect", "init", "next-votes", "--texts", output / "next.csv", classes=votes.classes)
        next_step(asking, "to ask people")
    else:
        next_step(f"give {output / 'next.csv'} a column 'text', and dissensus collect init asks people about it")


def _prices(
    votes: Votes, price: float | None, item_price: float, answer_seconds: float | None, wage: float | None
) -> Any:
    """What a vote costs: its price, its seconds at a wage, or both."""
    import numpy as np

    from dissensus.planning.planned import Prices

    if answer_seconds is None and votes.seconds is not None and np.isfinite(votes.seconds).any():
        answer_seconds = float(np.nanmedian(votes.seconds))
    if wage is not None and answer_seconds is None:
        raise InputError("plan: a wage needs the seconds that an answer takes; add --answer-seconds")
    paid = 0.0 if wage is None or answer_seconds is None else wage * answer_seconds / 3600
    vote = paid + (price if price is not None else 0.0 if wage is not None else 1.0)
    return Prices(vote=vote, item=item_price, seconds=answer_seconds)


def _print_savings(result: PlanBeside) -> None:
    from dissensus.planning.planned import money

    rows = [["votes alone", "beside the model", "saved per item", f"money saved on {result.items:,} items"]]
    for each in result.savings:
        low, high = (money(end or 0.0) for end in (each.cost.low, each.cost.high))
        cost = f"{money(each.cost.value)} [{low}, {high}]"
        rows.append([str(each.alone), _number(each.beside), _number(each.votes), cost])
    console().print(short_table(rows))


def _print(result: Plan) -> None:
    say([f"Training: {result.delivery}"])
    console().print()
    if result.choices:
        columns = [_columns(choice, result) for choice in result.choices]
        console().print(short_table([list(columns[0]), *(list(cells.values()) for cells in columns)]))


def _columns(choice: Choice, result: Plan) -> dict[str, str]:
    """By heading, the cells of a choice: intervals of agreement and of the goal; the others are in the files."""
    from dissensus.evaluation.metrics.registry import METRICS
    from dissensus.planning.planned import money

    shown, scored = choice.shown, result.goal if result.goal in result.difference else "soft_nll"
    # Where classes are ordered, reliability says more than majorities.
    other = {"same majority": shown.same_majority} if shown.reliability is None else {"reliability": shown.reliability}
    agreement = {"alpha": shown.alpha, **other}
    return {
        "votes": f"{choice.k}{' *' if choice is result.best else ''}",
        "items": f"{choice.items:,}",
        "cost": money(choice.cost),
        **({} if choice.hours is None else {"hours": f"{choice.hours:,.0f}"}),
        **{name: "–" if found.estimate is None else _number(found.estimate) for name, found in agreement.items()},
        **{
            f"power: {METRICS[metric].short}": _number(power) if metric == result.goal else f"{power.value:.2f}"
            for metric, power in choice.power.items()
        },
        **{f"{name}: {METRICS[scored].short}": _number(scores[scored]) for name, scores in choice.scores.items()},
    }


def _number(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
