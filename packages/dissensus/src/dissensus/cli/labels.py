"""`dissensus labels`: votes to label distributions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dissensus.cli import options as opt
from dissensus.cli.inputs import is_known, people_beside_predictions, read_files, system_files, votes_named
from dissensus.cli.printing import console, folded, json_to, next_step, note, plain, table, typed
from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.labels import LabelDistribution
    from dissensus.votes.formats import Options


def _print_schemes() -> None:
    from dissensus.labels.labelling import SCHEMES

    for name, scheme in SCHEMES.items():
        console().print(f"[bold]{name:22}[/]{scheme.what}")


def labels_beside_model(
    *,
    source: str,
    reading: Options,
    model: list[Path] | None = None,
    given: opt.Given | None = None,
    answers: Path | None = None,
    output: Path | None,
    seed: int,
    json: Path | None,
) -> None:
    """Make labels of votes and predictions together, and print what the two are worth."""
    from dissensus.labels.writing import write_labels
    from dissensus.table_file import writable_kind
    from dissensus.together import combine
    from dissensus.votes.shown_pairs import shown_pairs

    if output is not None:
        writable_kind(output, also=(".npz",))
    votes, _, left_out = people_beside_predictions(source, reading, model or [])
    stated: Any = {"given": given, "answers": answers, "shown": shown_pairs(votes)}
    systems = read_files(votes.classes, system_files(model or []), reading, **stated)
    both = combine(votes, systems, seed=seed)
    note(*left_out)
    if json is not None:
        json_to(json, {**_facts(both.labels), **both.to_dict()})
    if "-" not in (str(json), str(output)):
        _print(both.labels)
        rows = table(">votes", ">soft NLL", ">less than votes alone", ">than the model alone", ">worth in people")
        for gain in both.gains:
            rows.add_row(str(gain.votes), str(gain.soft_nll), str(gain.of_votes), str(gain.of_models), gain.worth.short)
        console().print("\n[bold]Votes and model together[/], on votes that were not used:")
        console().print(rows)
        for line in both.verdict:
            console().print(plain(line))
        note(*both.notes)
    if output is not None:
        write_labels(both.labels, output, seed=seed)
        if str(output) != "-":
            note(f"label distributions of {len(both.labels):,} items written to {output}")
    next_step(typed("plan", source, model=model, given=given, reading=reading))


@opt.command("labels", modes={"model": labels_beside_model}, list_schemes=_print_schemes)
def labels(
    source: str,
    reading: Options,
    output: Path | None = None,
    scheme: str = "frequency",
    tie: Literal["first", "random", "split"] = "first",
    concentration: float | None = None,
    gold: Path | None = None,
    gold_columns: str | None = None,
    smoothing: float | None = None,
    class_prior: Literal["learned", "even"] | None = None,
    max_iterations: int | None = None,
    skills: Path | None = None,
    per: Literal["item", "judgement"] = "item",
    release: Path | None = None,
    licence: str | None = None,
    with_models: bool = False,
    probabilities: bool = False,
    stream: bool = False,
    seed: int = 0,
    json: Path | None = None,
) -> None:
    """Label distributions from votes, by a weighting scheme or an annotator model."""
    from dissensus.datasets import DATASETS
    from dissensus.labels.labelling import ANNOTATOR_MODELS, ONE_VOTE, find_scheme
    from dissensus.labels.reading import read_classes, read_labels
    from dissensus.labels.release import write_release
    from dissensus.labels.schemes import UNSURE_WEIGHT
    from dissensus.labels.writing import annotator_table, judgement_table, write_labels
    from dissensus.table_file import writable_kind, write_table
    from dissensus.votes.kinds import people_alone, share_of_models

    if output is not None:
        writable_kind(output, also=(".npz",) if per == "item" else ())
    of_models = ""
    options: dict[str, Any] = {"tie": tie, "seed": seed} if scheme == "majority" else {}
    chosen = {
        "concentration": concentration,
        "smoothing": smoothing,
        "class_prior": class_prior,
        "max_iterations": max_iterations,
    }
    options |= {name: value for name, value in chosen.items() if value is not None}
    chosen_scheme = find_scheme(scheme, options)
    if skills is not None:
        writable_kind(skills)
    if skills is not None and scheme not in ANNOTATOR_MODELS:
        raise InputError(f"scheme {scheme} has no annotators to write; choose {', '.join(ANNOTATOR_MODELS)}")
    if per == "judgement" and output is None:
        raise InputError("--per judgement writes a row per judgement; name the file with -o")
    published = is_known(source) and DATASETS[source].holds == "labels"
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
        everybody, _ = votes_named(source, reading)
        if release is not None and with_models:
            raise InputError("--release makes its labels from people's votes alone; leave out --with-models")
        votes, of_models = everybody.models_as_people(), share_of_models(everybody)
        if not with_models:
            votes, of_models = people_alone(everybody)
        elif of_models:
            of_models += ", and each model counts as one more person (--with-models)"
        if of_models:
            note(of_models)
        models_among = everybody.model_annotators if with_models else votes.model_annotators
        if gold is not None:
            named = None if gold_columns is None else tuple(name.strip() for name in gold_columns.split(","))
            notes: list[str] = []
            options["gold"] = read_classes(gold, votes.items, votes.classes, gold_columns=named, notes=notes)
            note(*notes)
        if scheme in UNSURE_WEIGHT and votes.unsure is None:
            note(f"the votes hold no responses of unsure: {scheme} makes no difference to equal-weighted")
        if release is not None:
            paths = write_release(everybody, release, name=Path(source).stem, licence=licence)
            note(*(f"{path} written" for path in paths))
        if per == "judgement" and output is not None:
            weighting = "equal-weighted" if scheme == "frequency" else scheme
            write_table(judgement_table(everybody if with_models else votes, weighting), output)
            note(f"{votes.n_judgements:,} judgements, {weighting}, written to {output}")
            return
        made = chosen_scheme.make(votes, **options)
    if made.panel_size.max(initial=0) == 1:
        note(ONE_VOTE)
    if json is not None:
        json_to(json, {**_facts(made), **({"models": of_models} if of_models else {})})
    if "-" not in (str(json), str(output)):
        _print(made)
    if output is not None:
        write_labels(made, output, tie=tie, seed=seed)
        if str(output) != "-":
            note(f"label distributions of {len(made):,} items written to {output}")
    if skills is not None and made.model is not None:
        write_table(annotator_table(made.model, by_model=models_among), skills)
        note(f"{len(made.model.annotators):,} annotators written to {skills}")
    next_step(typed("evaluate", "--votes", source, "--predictions", "FILE", reading=reading), "or study init, to train")


def _streamed(
    source: str, scheme: str, reading: Options, options: dict[str, Any], *, with_models: bool
) -> LabelDistribution:
    from dissensus.labels.schemes import label_counts
    from dissensus.votes.counting import count_votes

    if scheme not in ("frequency", "dirichlet", "majority"):
        raise InputError(f"--stream counts votes without looking at who voted, and {scheme} needs to; leave it out")
    if reading.models:
        raise InputError("--stream counts votes without looking at who voted; mark models in a column 'kind' (--kind)")
    used = ("item", "label", "kind", "classes", "ordered", "force", "annotator", "attributes", "seconds", "time")
    for name in reading.given(*(name for name in opt.READING if name not in used)):
        raise InputError(f"--stream counts votes as they are, without {opt.typed_name(name)}; leave out one of them")
    columns = {name: getattr(reading, name) for name in ("item", "label", "kind", "classes", "ordered", "force")}
    try:
        counted = count_votes(source, with_models=with_models, **columns)
    except InputError as error:
        if not error.readings:
            raise
        # The readings of a file that is read as a whole are none of one that is counted.
        raise InputError(f"{error.sentence} (without --stream)") from None
    if counted.left_out:
        note(f"{counted.left_out:,} votes are from models: left out")
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
    facts = _facts(made)
    tied = made.items[made.majority().tied].tolist()
    names = ", ".join(plain(str(name)) for name in tied[:5]) + (", ..." if len(tied) > 5 else "")
    lines = table()
    lines.add_row("mean entropy", f"{facts['mean_entropy_nats']:.3f} nats")
    lines.add_row("unanimous", f"{facts['unanimous']:.1%}")
    lines.add_row("tied majorities", f"{len(tied):,}{f': {names}' if tied else ''}")
    for name in ("mean_uncertainty", "unsure_proportion"):
        if name in facts:
            lines.add_row(name.replace("_", " "), f"{facts[name]:.3f}")
    means = table("class", ">mean probability")
    for name, share in folded(facts["mean_probability"].items()):
        means.add_row(plain(name), f"{share:.3f}")
    out = console()
    out.print(f"[bold]{made.scheme}[/]: {len(made):,} items, {len(made.classes)} classes")
    if made.model is not None:
        out.print(made.model.report())
    out.print(lines)
    out.print(means)
