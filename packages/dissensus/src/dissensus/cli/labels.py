"""`dissensus labels`: votes to label distributions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dissensus.cli import options as opt
from dissensus.cli.printing import console, json_to, next_step, note, plain, table

if TYPE_CHECKING:
    from dissensus.labels import LabelDistribution
    from dissensus.votes.reading import Options
    from dissensus.votes.table import Votes


def _list_schemes(asked: bool) -> None:
    if asked:
        from dissensus.labels.labelling import SCHEMES

        for name, each in SCHEMES.items():
            console().print(f"[bold]{name:22}[/]{each.what}")
        raise typer.Exit


@opt.reads("gold_columns", "prior", "method", "max_iterations", "skills", "licence")
def labels(
    source: opt.Source,
    reading: Options,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Where to write them: .csv, .tsv, .parquet, .jsonl or .npz; - is standard output."
        ),
    ] = None,
    scheme: Annotated[
        str, typer.Option(help="How votes become probabilities; --list-schemes shows them.")
    ] = "frequency",
    list_schemes: Annotated[
        bool,
        typer.Option("--list-schemes", help="Show the schemes and stop.", is_eager=True, callback=_list_schemes),
    ] = False,
    tie: Annotated[Literal["first", "random", "split"], typer.Option(help="How a tied majority is decided.")] = "first",
    concentration: Annotated[
        float | None, typer.Option(help="Dirichlet: pseudo-votes for each class; fitted if not given.")
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Annotator models: a table of items whose class is known.")] = None,
    gold_columns: Annotated[
        str | None, typer.Option(help="The columns of --gold that hold the item and its class, separated by a comma.")
    ] = None,
    smoothing: Annotated[
        float | None,
        typer.Option(help="dawid-skene: pseudo-votes that smooth each annotator's confusions (default 4, 0 for none)."),
    ] = None,
    class_prior: Annotated[
        Literal["learned", "even"] | None,
        typer.Option(help="mace: how likely classes are before any vote (default learned)."),
    ] = None,
    method: Annotated[
        Literal["vb", "em"] | None, typer.Option(help="mace: variational Bayes, or expectation-maximisation.")
    ] = None,
    max_iterations: Annotated[int | None, typer.Option(help="Annotator models: the most iterations.", min=1)] = None,
    skills: Annotated[
        Path | None, typer.Option(help="Annotator models: where to write each annotator's skill or accuracy.")
    ] = None,
    per: Annotated[
        Literal["item", "judgement"],
        typer.Option(help="A row per item, or each judgement's own distribution (weighting schemes only)."),
    ] = "item",
    release: Annotated[
        Path | None,
        typer.Option(
            help="Write a folder ready for the Hugging Face Hub: every weighting as Parquet, votes and a card."
        ),
    ] = None,
    licence: Annotated[str | None, typer.Option(help="The licence that the card of --release names.")] = None,
    with_models: Annotated[
        bool,
        typer.Option(
            "--with-models", help="Count each model as one more person; without it, votes of models are left out."
        ),
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="The file holds probabilities, a column per class, and no votes."),
    ] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Count a file larger than memory; who voted is not looked at.")
    ] = False,
    seed: opt.Seed = 0,
    json: opt.JsonTo = None,
) -> None:
    """Label distributions from votes, by a weighting scheme or an annotator model."""
    from dissensus.datasets import DATASETS
    from dissensus.errors import InputError
    from dissensus.labels.labelling import label as make
    from dissensus.labels.reading import read_classes, read_labels
    from dissensus.labels.release import write_release
    from dissensus.labels.schemes import UNSURE_WEIGHT
    from dissensus.labels.writing import annotator_table, judgement_table, write_labels
    from dissensus.table_file import write_table
    from dissensus.votes.kinds import people_alone

    options: dict[str, Any] = {}
    of_models = ""
    if scheme == "majority":
        options = {"tie": tie, "seed": seed}
    chosen = {
        "concentration": concentration,
        "smoothing": smoothing,
        "class_prior": class_prior,
        "method": method,
        "max_iterations": max_iterations,
    }
    options |= {name: value for name, value in chosen.items() if value is not None}
    published = opt.is_known(source) and DATASETS[source].read_labelled is not None
    if probabilities or published:
        if release is not None or per != "item" or gold is not None or scheme != "frequency":
            raise InputError(
                f"{source}: there are distributions without votes; leave out --scheme, --per, --gold, --release"
            )
        made = (
            DATASETS[source].load_labelled().human
            if published
            else read_labels(Path(source), item=reading.item, classes=reading.classes, ordered=bool(reading.ordered))
        )
    elif stream:
        if release is not None or per != "item":
            raise InputError("--stream counts votes without looking at judgements; leave out --per and --release")
        made = _streamed(source, scheme, reading, options, with_models=with_models)
    else:
        votes, understood = opt.votes_named(source, reading)
        opt.show_reading(understood)
        if release is not None and with_models:
            raise InputError("--release makes its labels from people's votes alone; leave out --with-models")
        given = votes
        votes, of_models = _with_models(given) if with_models else people_alone(given)
        if of_models:
            note(of_models)
        models_among = given.model_annotators if with_models else votes.model_annotators
        if gold is not None:
            named = None if gold_columns is None else tuple(name.strip() for name in gold_columns.split(","))
            told: list[str] = []
            options["gold"] = read_classes(gold, votes.items, votes.classes, columns=named, notes=told)
            for sentence in told:
                note(sentence)
        if scheme in UNSURE_WEIGHT and votes.unsure is None:
            note(f"the votes hold no responses of unsure: {scheme} makes no difference to equal-weighted")
        if release is not None:
            for written in write_release(given, release, name=Path(source).stem, licence=licence):
                note(f"{written} written")
        if per == "judgement":
            if output is None:
                raise InputError("--per judgement writes a row per judgement; name the file with -o")
            weighting = "equal-weighted" if scheme == "frequency" else scheme
            write_table(judgement_table(given if with_models else votes, weighting), output)
            note(f"{votes.n_judgements:,} judgements, {weighting}, written to {output}")
            return
        made = make(votes, scheme, **options)
    if skills is not None and made.model is None:
        raise InputError(
            f"scheme {scheme} has no annotators to write; choose dawid-skene, one-coin, mace, glad or wawa"
        )
    if json is not None:
        json_to(json, {**_facts(made), **({"models": of_models} if of_models else {})})
    if "-" not in (str(json), str(output)):
        _print(made)
    if output is not None:
        write_labels(made, output, tie=tie, seed=seed)
        if str(output) != "-":
            note(f"label distributions of {len(made):,} items written to {output}")
    if skills is not None:
        write_table(annotator_table(made.model, by_model=models_among), skills)
        note(f"{len(made.model.annotators):,} annotators written to {skills}")
    next_step(
        f"dissensus evaluate --votes {source} --predictions FILE, or dissensus study init {source} ITEMS to train"
    )


def _with_models(votes: Votes) -> tuple[Votes, str]:
    """The votes with each model counted as one more person, and a sentence that says so where there are any."""
    from dissensus.votes.kinds import share_of_models

    share = share_of_models(votes)
    told = f"{share}, and each model counts as one more person (--with-models)" if share else ""
    return votes.models_as_people(), told


def _streamed(
    source: str, scheme: str, reading: Options, options: dict[str, Any], *, with_models: bool
) -> LabelDistribution:
    from dissensus.errors import InputError
    from dissensus.labels.schemes import label_counts
    from dissensus.votes.counting import count_votes

    if reading.models:
        raise InputError("--stream counts votes without looking at who voted; mark models in a column 'kind' (--kind)")
    chosen = {name: getattr(reading, name) for name in ("item", "label", "kind", "classes", "ordered")}
    counted = count_votes(source, with_models=with_models, **chosen)
    if counted.left_out:
        note(f"{counted.left_out:,} votes are from models: left out")
    if scheme not in ("frequency", "dirichlet", "majority"):
        raise InputError(f"--stream counts votes without looking at who voted, and {scheme} needs to; leave it out")
    return label_counts(counted, scheme, **options)


def _facts(made: LabelDistribution) -> dict[str, Any]:
    """What is printed of label distributions, ready for JSON."""
    facts = {
        "scheme": made.scheme,
        "items": len(made),
        "mean_entropy_nats": float(made.entropy.mean()),
        "unanimous": float(made.unanimous.mean()),
        "tied_majorities": int(made.majority().tied.sum()),
        "mean_probability": dict(zip(made.classes, made.probabilities.mean(axis=0).tolist(), strict=True)),
    }
    if made.mean_uncertainty is not None and made.unsure_proportion is not None:
        facts["mean_uncertainty"] = float(made.mean_uncertainty.mean())
        facts["unsure_proportion"] = float(made.unsure_proportion.mean())
    return facts


def _print(made: LabelDistribution) -> None:
    out = console()
    out.print(f"[bold]{made.scheme}[/]: {len(made):,} items, {len(made.classes)} classes")
    if made.model is not None:
        out.print(made.model.report())
    majority = made.majority()
    facts = table()
    facts.add_row("mean entropy", f"{made.entropy.mean():.3f} nats")
    facts.add_row("unanimous", f"{made.unanimous.mean():.1%}")
    tied = majority.tied.nonzero()[0]
    names = ", ".join(plain(str(name)) for name in made.items[tied[:5]].tolist())
    more = f": {names}{', ...' if tied.size > 5 else ''}" if tied.size else ""
    facts.add_row("tied majorities", f"{tied.size:,}{more}")
    if made.mean_uncertainty is not None and made.unsure_proportion is not None:
        facts.add_row("mean uncertainty", f"{made.mean_uncertainty.mean():.3f}")
        facts.add_row("unsure proportion", f"{made.unsure_proportion.mean():.3f}")
    out.print(facts)
    shown = table("class", ">mean probability")
    means = list(zip(made.classes, made.probabilities.mean(axis=0).tolist(), strict=True))
    if len(means) > 15:
        means.sort(key=lambda each: -each[1])
    for name, share in means[: 15 if len(means) <= 15 else 12]:
        shown.add_row(plain(name), f"{share:.3f}")
    if len(means) > 15:
        shown.add_row(f"{len(means) - 12:,} more", f"{sum(share for _, share in means[12:]):.3f}")
    out.print(shown)
