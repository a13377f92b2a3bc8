"""A paper's claims as data: what it says, which quantity of which study judges it, which outcome is which verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import resources
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.errors import InputError, choices
from dissensus.toml_file import TomlFile, fits, in_words
from dissensus_papers.papers.quantities import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dissensus_papers.papers.quantities import Quantity

MARKS: Final = {
    "verified": "read in the paper's own text or in its authors' files",
    "secondary": "read in notes about the paper, not in the paper itself",
    "computed": "arithmetic on numbers that the paper prints",
    "control": "not a claim of the paper, but a question that it leaves open",
}
"""Where a claim is from."""

KEYS: Final = ("title", "authors", "link", "question", "tested_by", "differs", "not_run", "studies", "claims")
STUDY_KEYS: Final = ("name", "instead", "quick", "audit_selection")
QUICK_KEYS: Final = ("models", "seeds", "epochs", "learning_rate", "items", "folds")
CLAIM_KEYS: Final = ("id", "says", "mark", "study", "quantity", "paper", "reproduced", "in_direction", "note", "why")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Something that a paper says, and how it is judged.

    Attributes:
        id: short and unique in the paper.
        says: in one sentence, with the paper's numbers.
        mark: where that is from; one of `MARKS`.
        quantity: a name in `QUANTITIES`.
        about: what the quantity is of: by key, a metric, systems, a stratum; as the quantity asks.
        study: whose runs are measured; empty where the quantity is of other claims, or is not measured.
        paper: the paper's value; None where it prints none.
        reproduced: lowest and highest value that counts as reproduced, if the whole interval lies in `in_direction`.
        in_direction: lowest and highest value that counts as in the paper's direction.
        note: what a reader must know beside the verdict.
        why: the reason, where it is not measured.
        percent: whether its values are shares that are told in per cent.
    """

    id: str
    says: str
    mark: str
    quantity: str
    about: Mapping[str, Any]
    study: str = ""
    paper: float | None = None
    reproduced: tuple[float, float] = (-inf, inf)
    in_direction: tuple[float, float] = (-inf, inf)
    note: str = ""
    why: str = ""
    percent: bool = False

    def shown(self, value: float) -> str:
        """A value of the claim's quantity, as it is told."""
        if self.percent:
            return f"{100 * value:+.1f} %"
        return f"{value:g}" if value == round(value) else f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}"

    @property
    def asks(self) -> dict[str, Any]:
        """What is measured, as plain values: a measurement of something else does not answer the claim."""
        return {"quantity": self.quantity, **self.about}


@dataclass(frozen=True, kw_only=True)
class StudyUse:
    """A study whose runs judge claims.

    Attributes:
        name: of a shipped study, or a file beside the claims.
        instead: the known dataset that stands in where the study's own is not there; empty where none does.
        quick: what `--quick` changes: models, seeds, epochs, learning rate, folds, and items of basins and OOD; None
            leaves the study out.
        audit_selection: whether to show what choosing the epoch on test items would have given; no verdict reads it.
    """

    name: str
    instead: str = ""
    quick: Mapping[str, Any] | None = None
    audit_selection: bool = False


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper as its claims file has it.

    Attributes:
        name: of the file.
        title: of the paper.
        authors: and the year.
        link: where it is.
        question: what it asks.
        tested_by: the test that the paper itself used; empty where it used none.
        differs: what is known to differ between its studies and ours.
        not_run: what would be worth a run and was not.
        studies: the most telling first.
        claims: in order.
        path: of the file.
    """

    name: str
    title: str
    authors: str
    link: str
    question: str
    studies: tuple[StudyUse, ...]
    claims: tuple[Claim, ...]
    path: Path
    tested_by: str = ""
    differs: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    by_id: Mapping[str, Claim] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {claim.id: claim for claim in self.claims})


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
    return _ClaimsFile(path, kind="claims file").paper()


class _ClaimsFile(TomlFile):
    """Checks parsed claims, so that every refusal names the line or the claim."""

    def paper(self) -> Paper:
        for key in self.given:
            self.known(key, KEYS, "")
        studies = tuple(self.study(given) for given in self.listed("studies"))
        claims = tuple(self.claim(given) for given in self.listed("claims"))
        seen: set[str] = set()
        for claim in claims:
            if claim.id in seen:
                raise self.wrong(claim.id, "id", "stands for another claim too; give each its own")
            seen.add(claim.id)
        for claim in claims:
            for other in claim.about.get("of", ()):
                if other not in seen:
                    raise self.wrong(claim.id, "of", f"names '{other}', which is no claim here")
        shares = {claim.id for claim in claims if claim.percent}
        claims = tuple(
            replace(each, percent=True) if each.quantity == "average" and shares.issuperset(each.about["of"]) else each
            for each in claims
        )
        return Paper(
            name=self.path.stem,
            studies=studies,
            claims=claims,
            path=self.path,
            differs=tuple(self.typed("", "differs", tuple[str, ...], ())),
            not_run=tuple(self.typed("", "not_run", tuple[str, ...], ())),
            **{key: self.typed("", key, str, "") for key in ("title", "authors", "link", "question", "tested_by")},
        )

    def listed(self, key: str) -> list[dict[str, Any]]:
        given = self.given.get(key, [])
        if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
            raise self.refuse("", key, f"must be tables, each written as [[{key}]], one at least")
        return given

    def study(self, given: dict[str, Any]) -> StudyUse:
        for key in given:
            self.known(key, STUDY_KEYS, "", beside="studies")
        quick = given.get("quick")
        if not isinstance(given.get("name"), str) or not isinstance(quick, dict | None):
            raise self.refuse("", "studies", "needs a name in quotation marks, and quick = { seeds = 2 } where it is")
        for key in quick or ():
            self.known(key, QUICK_KEYS, "", beside="quick")
        audit = given.get("audit_selection", False)
        if not isinstance(audit, bool):
            raise self.refuse("", "studies", f"has audit_selection = {audit!r}; give true or false")
        return StudyUse(name=given["name"], instead=given.get("instead", ""), quick=quick, audit_selection=audit)

    def claim(self, given: dict[str, Any]) -> Claim:
        name = given.get("id")
        if not isinstance(name, str) or not name:
            raise self.refuse("", "claims", 'has a claim without an id; give each one, as id = "main-order"')
        quantity = QUANTITIES.get(given.get("quantity", ""))
        if quantity is None:
            raise self.wrong(name, "quantity", f"is '{given.get('quantity')}'; choose {', '.join(QUANTITIES)}")
        if given.get("mark") not in MARKS:
            raise self.wrong(name, "mark", f"is '{given.get('mark')}'; choose {', '.join(MARKS)}")
        about = {key: value for key, value in given.items() if key not in CLAIM_KEYS}
        self.fitting(name, quantity, about)
        if quantity.of_study and not given.get("study"):
            raise self.wrong(name, "study", "is missing; name the study that is measured")
        told: dict[str, Any] = {key: given[key] for key in ("paper", "note", "why", "study") if key in given}
        if given["quantity"] == "unmeasured":
            if not given.get("why"):
                raise self.wrong(name, "why", "is missing; say why it is not measured")
        else:
            told |= {key: self.range(name, key, given) for key in ("reproduced", "in_direction")}
            (least, most), (lowest, highest) = told["reproduced"], told["in_direction"]
            if not lowest <= least <= most <= highest:
                raise self.wrong(name, "reproduced", "must lie within in_direction")
        return Claim(
            id=name,
            says=self.said(name, given),
            mark=given["mark"],
            quantity=given["quantity"],
            about=about,
            percent=quantity.percent,
            **told,
        )

    def said(self, claim: str, given: dict[str, Any]) -> str:
        says = given.get("says")
        if not isinstance(says, str) or not says:
            raise self.wrong(claim, "says", "is missing; say in one sentence what the paper claims")
        return says

    def fitting(self, claim: str, quantity: Quantity, about: Mapping[str, Any]) -> None:
        for key, value in about.items():
            if key not in quantity.keys:
                raise self.wrong(claim, key, f"is nothing that this quantity asks for; it asks for {quantity.asks}")
            if not fits(value, quantity.keys[key]):
                raise self.wrong(claim, key, f"is {value!r}; give {in_words(quantity.keys[key])}")
        missing = [key for key in quantity.keys if key not in about and key not in quantity.defaults]
        if missing:
            raise self.wrong(claim, missing[0], f"is missing; this quantity asks for {quantity.asks}")

    def range(self, claim: str, key: str, given: dict[str, Any]) -> tuple[float, float]:
        ends: Any = given.get(key)
        if not fits(ends, tuple[float, ...]) or len(ends) != 2 or not ends[0] <= ends[1]:
            raise self.wrong(claim, key, f"is {ends!r}; give the lowest and the highest value, as [-0.5, 0.0] or -inf")
        return float(ends[0]), float(ends[1])

    def wrong(self, claim: str, key: str, what: str) -> InputError:
        line = next((k for k, text in enumerate(self.text.splitlines(), 1) if f'"{claim}"' in text), 1)
        return InputError(f"{self.path}, line {line}: claim {claim}: '{key}' {what}")
