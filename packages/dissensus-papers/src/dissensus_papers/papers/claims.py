"""A paper's claims as data: what it says, which quantity of which study judges it, which outcome is which verdict."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from importlib import resources
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from msgspec.structs import asdict, replace

from dissensus.errors import InputError, choices
from dissensus.evaluation import METRICS
from dissensus.toml_file import TableError, TomlFile, TomlTable, fits, known_keys, no_such
from dissensus_papers.papers.evidence import STRATA
from dissensus_papers.papers.quantities import DEFAULTS, QUANTITIES, TYPES, bounds_of

MARKS: Final = {
    "verified": "read in the paper's own text or in its authors' files",
    "secondary": "read in notes about the paper, not in the paper itself",
    "computed": "arithmetic on numbers that the paper prints",
    "control": "not a claim of the paper, but a question that it leaves open",
    "part": "one of the values that another claim averages or counts; in no count of verdicts itself",
}
"""Where a claim is from."""

OTHER_PEOPLE: Final = "other people"
STAND_IN: Final = "a stand-in"

TESTED_ON: Final = ("", OTHER_PEOPLE, STAND_IN)
"""Whose judgements a claim is tested on: those of the paper's own data (nothing is written), votes of other people on
other items, or something that stands in for the paper's data."""

COUNTS: Final = ("on its side", "every seed", "survives Holm")
"""What a claim can count of others."""

QUICK_KEYS: Final = ("models", "seeds", "epochs", "learning_rate", "items", "folds")
"""What `--quick` may change of a study."""

Filled = Annotated[str, Meta(min_length=1)]
Range = Annotated[
    tuple[float, float], Meta(extra={"write": "the lowest and the highest value, as [-0.5, 0.0] or -inf"})
]


class Claim(TomlTable, kw_only=True):
    """Something that a paper says, and how it is judged.

    Attributes:
        id: short and unique in the paper.
        says: in one sentence, with the paper's numbers.
        mark: where that is from; one of `MARKS`.
        quantity: a name in `QUANTITIES`.
        about: what the quantity is of: by key, a metric, systems, a stratum; as the quantity asks.
        study: whose runs are measured; empty where the quantity is of other claims.
        paper: the paper's value; None where it prints none.
        reproduced: lowest and highest value that counts as reproduced, if the whole interval lies in `in_direction`.
        in_direction: lowest and highest value that counts as in the paper's direction.
        equal: of a claim that nothing differs, in place of both: the range that the whole interval must lie in.
        tested_on: one of `TESTED_ON`.
        note: what a reader must know beside the verdict.
        cannot_fail: whether no result that could be had here speaks against it; it is listed, and not counted.
        percent: whether its values are shares that are shown in per cent.
        any_value: whether its range holds every value that there can be, as that of a part may: it has no verdict.
    """

    id: Filled
    says: Filled
    mark: str
    quantity: str
    about: dict[str, Any]
    study: str = ""
    paper: int | float | None = None
    reproduced: Range = (-inf, inf)
    in_direction: Range = (-inf, inf)
    equal: Range | None = None
    tested_on: str = ""
    note: str = ""
    cannot_fail: bool = False
    percent: bool = False
    any_value: bool = False

    def text_of(self, value: float) -> str:
        """A value of the claim's quantity as text."""
        if self.percent:
            # What is small is not nothing: a range of -0.0 % to +0.0 % could not be read.
            return f"{100 * value:{'+.1g' if 0 < abs(value) < 5e-4 else '+.1f'}} %"
        if value == round(value):
            return f"{value:g}"
        return f"{value:.3g}" if abs(value) >= 10 else f"{value:{'.1g' if abs(value) < 5e-4 else '.3f'}}"

    @property
    def asks(self) -> dict[str, Any]:
        """What is measured, as plain values: a measurement of something else does not answer the claim."""
        return {"quantity": self.quantity, **self.about}

    @property
    def rule(self) -> dict[str, Any]:
        """What decides its verdict and where it is counted: what is measured, the ranges, the paper's value, marks."""
        ranges = {key: getattr(self, key) for key in ("reproduced", "in_direction", "equal")}
        counted = {key: getattr(self, key) for key in ("mark", "paper", "tested_on", "cannot_fail")}
        return self.asks | counted | {key: ends and [str(end) for end in ends] for key, ends in ranges.items()}


class StudyUse(TomlTable):
    """A study whose runs judge claims.

    Attributes:
        name: of a shipped study, or a file beside the claims.
        instead: the known dataset that stands in where the study's own is not there; empty where none does.
        quick: what `--quick` changes: models, seeds, epochs, learning rate, folds, and items of basins and OOD; None
            leaves the study out.
        own_splits: whether every seed has a split of its own, so that no value is one split's luck.
    """

    name: str
    instead: str = ""
    quick: dict[str, Any] | None = None
    own_splits: bool = False

    def __post_init__(self) -> None:
        known_keys("quick", self.quick or (), QUICK_KEYS)


class ClaimsFile(TomlTable, kw_only=True):
    """A claims file.

    Attributes:
        title: of the paper.
        authors: and the year.
        link: where it is.
        question: what it asks.
        tested_by: the test that the paper itself used; empty where it used none.
        fitted: what of ours was fitted to numbers of the paper, which its verdicts must not be read without.
        pilots: what had been run and seen when the ranges were written.
        notes: what the paper says that is no claim to be tested, and why.
        differs: what is known to differ between its studies and ours.
        studies: the most telling first.
        claims: in order; the file may have families of them, tables with `each` (`_write_out_families`).
    """

    title: str = ""
    authors: str = ""
    link: str = ""
    question: str = ""
    tested_by: str = ""
    fitted: str = ""
    pilots: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    studies: Annotated[tuple[StudyUse, ...], Meta(min_length=1)]
    claims: Annotated[tuple[Claim, ...], Meta(min_length=1)]


class Paper(ClaimsFile, kw_only=True):
    """A paper as its claims file, of this name and path, has it."""

    name: str
    path: Path

    @property
    def typed(self) -> str:
        """What stands for it in a command."""
        return self.name if self.path in shipped_papers().values() else self.path.name

    def rules(self, study: str) -> str:
        """SHA-256 of the rules of the claims that rest on a study, averages and counts too; words may change."""
        by_id = {claim.id: claim for claim in self.claims}

        def rests(claim: Claim) -> bool:
            return claim.study == study or any(rests(by_id[other]) for other in claim.about.get("of", ()))

        rules = {claim.id: claim.rule for claim in self.claims if rests(claim)}
        return sha256(msgspec.json.encode(rules, order="deterministic")).hexdigest()


def shipped_papers() -> dict[str, Path]:
    """The claims files that come with the package, by name."""
    folder = Path(str(resources.files("dissensus_papers.papers"))) / "claims"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_paper(source: str | Path) -> Paper:
    """The claims of a paper from a file, or of one that comes with the package by its name."""
    path = Path(source)
    if not (path.suffix or path.is_file()):
        known = shipped_papers()
        if str(source) not in known:
            raise InputError(f"'{source}' is no paper{choices(source, known)}, or give a .toml file of claims")
        path = known[str(source)]
    file = TomlFile(path, kind="claims file")
    with file.refusals():
        _write_out_families(file)
    read = file.read_as(ClaimsFile)
    with file.refusals():
        for place, use in enumerate(read.studies):
            if use.name in [other.name for other in read.studies[:place]]:
                raise TableError(("studies", place, "name"), f"is '{use.name}' again; name each study once")
        claims = _checked(read.claims, file.given["claims"])
        return Paper(name=path.stem, path=path, **asdict(read) | {"claims": claims})


_CLAIM_KEYS: Final = set(Claim.__struct_fields__) - {"about", "percent", "any_value"}


def _write_out_families(file: TomlFile) -> None:
    """Puts the claims of each family in its place: every entry of `each`, with the keys beside `each` that it lacks."""
    tables = file.given.get("claims")
    if not isinstance(tables, list):
        return
    claims: list[Any] = []
    for number, table in enumerate(tables):
        family = ("claims", number)
        if not isinstance(table, dict) or "each" not in table:
            file.moved["claims", len(claims)] = family
            claims.append(table)
            continue
        shared, each = {key: value for key, value in table.items() if key != "each"}, table["each"]
        if "id" in shared:
            raise TableError((*family, "id"), "stands for every claim of 'each'; give each of them its own")
        if not isinstance(each, list) or not each:
            raise TableError((*family, "each"), f"is {each!r}; give {_ENTRIES}")
        for entry, own in enumerate(each):
            place, written = ("claims", len(claims)), (*family, "each", entry)
            if not isinstance(own, dict):
                raise TableError(written, f"has {own!r}; give {_ENTRIES}")
            if "each" in own:
                raise TableError((*written, "each"), "is a family in a family; write it as [[claims]] of its own")
            # A claim that nothing differs has one range in place of two: its own take the place of the family's.
            two = {"reproduced", "in_direction"}
            gone = own.keys() | (two if "equal" in own else {"equal"} if own.keys() & two else set())
            kept = {key: value for key, value in shared.items() if key not in gone}
            file.moved[place] = written
            file.moved |= {(*place, key): (*family, key) for key in kept}
            claims.append(kept | own)
    # What a claim's quantity asks for stands among the keys that every claim has.
    for table in (table for table in claims if isinstance(table, dict)):
        table["about"] = {key: table.pop(key) for key in list(table) if key not in _CLAIM_KEYS}
    file.given["claims"] = claims


_ENTRIES: Final = 'one claim or more in a list, each in braces: { id = "kl", says = "KL falls" }'


def _checked(claims: tuple[Claim, ...], tables: list[dict[str, Any]]) -> tuple[Claim, ...]:
    """The claims, each as its quantity asks and about others of the file; averages of shares are shares."""
    ids = [claim.id for claim in claims]
    shares = {claim.id for claim in claims if claim.quantity in QUANTITIES and QUANTITIES[claim.quantity].percent}
    averages = {claim.id: set(claim.about.get("of", ())) for claim in claims if claim.quantity == "average"}
    while more := {name for name, of in averages.items() if of <= shares} - shares:
        shares |= more
    checked, known = [], {claim.id: claim for claim in claims}
    for place, claim in enumerate(claims):
        try:
            _check(claim, tables[place])
            if claim.id in ids[:place]:
                raise TableError("id", f"is '{claim.id}', which stands for another claim too; give each its own")
            _check_of(claim, known, shares)
        except TableError as error:
            raise TableError(("claims", place, *error.place), error.what) from error
        # In the order in which its quantity asks, however the file is written: pages as JSON have it so.
        about = {key: claim.about[key] for key in QUANTITIES[claim.quantity].keys if key in claim.about}
        checked.append(replace(claim, about=about, percent=claim.id in shares))
    try:
        TopologicalSorter({claim.id: claim.about.get("of", ()) for claim in claims}).prepare()
    except CycleError as error:
        place = min(map(ids.index, error.args[1]))
        told = "leads back to the claim itself; name claims that are measured"
        raise TableError(("claims", place, "of"), told) from error
    open_to_all = {claim.id for claim in checked if _holds_every_value(claim, known)}
    for place, claim in enumerate(checked):
        try:
            _check_can_fail(claim, known, open_to_all)
        except TableError as error:
            raise TableError(("claims", place, *error.place), error.what) from error
    return tuple(replace(claim, any_value=claim.id in open_to_all) for claim in checked)


def _holds_every_value(claim: Claim, known: dict[str, Claim]) -> bool:
    """Whether a claim's range holds all that there can be, or all but a hundredth of it, which is as good."""
    (least, most), (low, high) = claim.equal or claim.in_direction, _bounds(claim, known)
    missed = (least - low if least > low else 0.0) + (high - most if most < high else 0.0)
    return missed <= 0.01 * (high - low if high - low < inf else 1.0)


def _bounds(claim: Claim, known: dict[str, Claim]) -> tuple[float, float]:
    """The lowest and the highest value that there can be; an average's are the averages of those of its parts."""
    if claim.quantity != "average":
        return bounds_of(claim.quantity, claim.about)
    lows, highs = zip(*(_bounds(known[other], known) for other in claim.about["of"]), strict=True)
    return sum(lows) / len(lows), sum(highs) / len(highs)


def _check_can_fail(claim: Claim, known: dict[str, Claim], open_to_all: set[str]) -> None:
    """Refuses what no result could speak against, unless it says so, or is a part whose verdict nothing uses."""
    if claim.mark == "part" and not any(claim.id in other.about.get("of", ()) for other in known.values()):
        raise TableError(
            "mark", "is 'part', and no claim averages or counts it; name it in one's 'of', or mend its mark"
        )
    if claim.cannot_fail:
        return
    if claim.id in open_to_all and claim.mark != "part":
        wide = "in_direction" if claim.equal is None else "equal"
        told = "holds every value that there can be, or all but 1 % of them; give the claim's side, or"
        raise TableError(wide, f"{told} cannot_fail = true")
    for other in claim.about["of"] if claim.quantity == "count" else ():
        if other in open_to_all or known[other].cannot_fail or known[other].equal is not None:
            why = "has no side" if known[other].equal else "cannot fail"
            told = f"counts '{other}', which {why}; give that one a side that results can miss, or leave it out"
            raise TableError("of", told)


def _check_of(claim: Claim, known: dict[str, Claim], shares: set[str]) -> None:
    """Refuses a claim about others that are not there, are counted twice, or cannot be averaged."""
    of = claim.about.get("of", ())
    if "of" in claim.about and not of:
        raise TableError("of", "names no claim; name those that this one is about")
    for other in of:
        if other not in known:
            raise TableError("of", f"names '{other}', which is no claim here")
        if of.count(other) > 1:
            raise TableError("of", f"names '{other}' more than once; name each claim once")
    # Shares of what was there before are on one scale, whatever they are of.
    parts = [known[other] for other in of if "of" not in known[other].about]
    scales = [() if each.id in shares else (each.about.get("metric"), each.about.get("measure")) for each in parts]
    kinds = {(each.quantity, *scale) for each, scale in zip(parts, scales, strict=True)}
    if claim.quantity == "average" and len(kinds) > 1:
        told = ", ".join(sorted(" of ".join(filter(None, kind)) for kind in kinds))
        raise TableError("of", f"averages what is not on one scale ({told}); name claims of one quantity and metric")


def _check(claim: Claim, table: dict[str, Any]) -> None:
    """Refuses a claim that is not as its quantity asks; `table` is what was written."""
    for key, known in (("mark", MARKS), ("quantity", QUANTITIES), ("tested_on", TESTED_ON)):
        if getattr(claim, key) not in known:
            raise no_such(key, getattr(claim, key), known)
    quantity = QUANTITIES[claim.quantity]
    asks = f"asks for {', '.join(quantity.keys)}"
    for key, value in claim.about.items():
        if key not in quantity.keys:
            raise TableError(key, f"is nothing that this quantity asks for; it {asks}")
        if wanted := fits(value, TYPES.get(key, str)):
            raise TableError(key, f"is {value!r}; give {wanted}")
    for key in quantity.keys:
        if key not in claim.about and key not in quantity.optional:
            raise TableError(key, f"is missing; this quantity {asks}")
    for key, names in (("metric", tuple(METRICS)), ("by", tuple(STRATA)), ("counts", COUNTS)):
        if key in claim.about and claim.about[key] not in names:
            raise no_such(key, claim.about[key], names)
    by, stratum = (claim.about.get(key, DEFAULTS[key]) for key in ("by", "stratum"))
    if stratum not in STRATA[by]:
        raise no_such("stratum", stratum, STRATA[by])
    if quantity.measure and not claim.study:
        raise TableError("study", "is missing; name the study that is measured")
    systems = claim.about.get("systems", ("", "x"))
    if not 1 < len(systems) == len(set(systems)):
        raise TableError("systems", "has no two systems, or one twice; name them once each, the highest first")
    if claim.quantity != "pair" and claim.about.get("against", "") == claim.about.get("system"):
        raise TableError("against", "is the same as system; name the one that it is compared with")
    if claim.quantity == "relative change" and METRICS[claim.about["metric"]].better == "zero":
        raise TableError("metric", "has a sign, so that a change relative to it says nothing; ask for the difference")
    near, wide = ("reproduced", "in_direction") if claim.equal is None else ("equal", "equal")
    for key in (near, wide):
        least, most = getattr(claim, key)
        if key not in table or not least <= most:
            told = f"is {table[key]}" if key in table else "is missing"
            raise TableError(key, f"{told}; give the lowest and the highest value, as [-0.5, 0.0] or -inf")
    low, high = bounds_of(claim.quantity, claim.about)
    least, most = getattr(claim, near)
    if most < low or least > high:
        share = "; write 30 % as 0.3" if quantity.percent else ""
        raise TableError(near, f"lies beyond what there can be, {low:g} to {high:g}{share}")
    if claim.equal is not None and least == most and claim.quantity not in ("count", "order", "ood ahead"):
        raise TableError("equal", "holds one value, which no interval lies in; give the lowest and the highest")
    if claim.paper is not None and not least <= claim.paper <= most:
        raise TableError("paper", f"is {claim.paper:g}, which is not in {near}; mend its sign or the range")
    if claim.equal is not None:
        if table.keys() & {"reproduced", "in_direction"}:
            raise TableError("equal", "stands beside another range; a claim that nothing differs has this one alone")
        return
    if not claim.in_direction[0] <= claim.reproduced[0] <= claim.reproduced[1] <= claim.in_direction[1]:
        raise TableError("reproduced", "must lie within in_direction")
