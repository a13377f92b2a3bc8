"""The known sets of votes: what they are, where they come from, and how to get them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from dissensus.datasets.sources import read_source
from dissensus.datasets.vader import read_snippets, read_words
from dissensus.errors import InputError, choices
from dissensus.parts import joined
from dissensus.progress import Step, silent
from dissensus.shipped import shipped_toml
from dissensus.votes.cifar import read_cifar_10h_counts
from dissensus.whole_file import sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dissensus.progress import Progress
    from dissensus.votes.table import Votes


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A known set of votes, of label distributions where no votes were published, or of items alone.

    Attributes:
        name: what it is called on the command line.
        what: one line for a list.
        licence: the terms its authors set.
        reference: the paper to cite.
        file: where it lies, relative to the data folder; None where it comes with an installed package.
        package: the installed package that it comes with; None where it has a file.
        address: where its authors publish it: the file itself, or a zip archive that holds it.
        page: where a person can download it, where there is no address that stays the same.
        read: from the file to what it holds.
        holds: votes; labels, where items have label distributions without votes; or items, where nobody judged them.
        items: how many it has; None where that is not known for certain.
        votes: likewise.
        annotators: how many annotators; None where votes are anonymous.
        kind: what people gave: choices, ratings, sets, yes / no / unsure, or counts of them.
        language: of the texts; None for images and sounds.
        sha256: of the file that this entry was checked with; None where there was none.
        columns: which column or key of the file holds what.
        unverified: what of this entry could not be checked with the real file; empty where all was.
    """

    name: str
    what: str
    licence: str
    reference: str
    read: Callable[[Path], Any]
    holds: Literal["votes", "labels", "items"] = "votes"
    file: str | None = None
    package: str | None = None
    address: str | None = None
    page: str | None = None
    items: int | None = None
    votes: int | None = None
    annotators: int | None = None
    kind: str = "choices"
    language: str | None = None
    sha256: str | None = None
    columns: str = ""
    unverified: str = ""

    def facts(self) -> dict[str, Any]:
        """What is known of the set, ready for JSON."""
        names = [fact.name for fact in fields(self) if fact.name not in ("read", "holds")]
        return {**{name: getattr(self, name) for name in names}, "here": self.present()}

    def path(self) -> Path | None:
        """Where the file is, or would be; None where no file is needed."""
        return None if self.file is None else data_folder() / self.file

    def present(self) -> bool:
        """Whether the votes can be read now."""
        path = self.path()
        if path is None:
            return self.package is None or importlib.util.find_spec(self.package) is not None
        return path.is_file()

    def load(self) -> Votes:
        """The votes; where the file is missing, the refusal says how to get it."""
        if self.holds == "items":
            raise InputError(f"{self.name}: the set holds items without votes; give its file to curate, ood or collect")
        if self.holds == "labels":
            raise InputError(
                f"{self.name}: the set was published as label distributions, without votes; use it in a study, with "
                "`dissensus labels`, or with dissensus.datasets.load_labelled"
            )
        return cast("Votes", self.contents())

    def load_labelled(self) -> Any:
        """The items with their label distributions (`dissensus_train.studies.LabelledItems`), of a set published so."""
        if self.holds != "labels":
            holds = "votes; use dissensus.datasets.load" if self.holds == "votes" else "items without labels of people"
            raise InputError(f"{self.name}: this is a set of {holds}")
        return self.contents()

    def contents(self) -> Any:
        """What the set holds, read and checked: votes, labelled items, or items."""
        return self.read(self.found())

    def found(self) -> Path:
        """The file; where it is missing, the refusal says how to get it."""
        if self.file is None:
            return Path()
        remedy = f"fetch it with `dissensus data get {self.name}`"
        if self.address is None:
            remedy = f"download the file from {self.page} and put it there"
        return data_file(
            self.file, wanted_by=self.name, remedy=f"{remedy}, or set DISSENSUS_DATA to the folder that holds it"
        )


def _by_train(name: str, path: Path) -> Any:
    """A set that was published as label distributions, which studies alone are made of."""
    return joined("joins", f"set.{name}", part="train", wanted_by=name)(path)


_READERS: Final[dict[str, dict[str, Any]]] = {
    "words": {"read": lambda _: read_words()},
    "words-9": {"read": lambda _: read_words(classes=9)},
    "snippets": {"read": read_snippets},
    "cifar-votes": {"read": read_cifar_10h_counts},
    "soft-digits": {"read": partial(_by_train, "soft-digits"), "holds": "labels"},
    "cifar-10s": {"read": partial(_by_train, "cifar-10s"), "holds": "labels"},
    "items": {"read": read_source, "holds": "items"},
}
"""What reads the sets of `catalogue.toml` whose `reader` is no format of `read_votes`."""

DATASETS: dict[str, Dataset]
"""The known sets by name; `catalogue.toml` is read when they are first asked for."""


def __getattr__(name: str) -> Any:
    if name != "DATASETS":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return _known()


@cache
def _known() -> dict[str, Dataset]:
    known = shipped_toml("dissensus.datasets", "catalogue.toml")
    return {name: _dataset(name, **facts) for name, facts in known.items()}


def _dataset(name: str, *, reader: str, options: Mapping[str, Any] | None = None, **facts: Any) -> Dataset:
    def read(path: Path) -> Votes:
        from dissensus.votes.formats import Options
        from dissensus.votes.reading import understand

        return understand(path, Options(format=reader, **options or {})).votes

    return Dataset(name=name, **facts, **_READERS.get(reader, {"read": read}))


def data_folder() -> Path:
    """Where downloaded sets lie: the folder named by DISSENSUS_DATA, or else `cache_folder`."""
    return Path(os.environ.get("DISSENSUS_DATA") or cache_folder())


def data_file(name: str, *, wanted_by: str, remedy: str) -> Path:
    """A file below the data folder, refused where it is missing."""
    path = data_folder() / name
    if not path.is_file():
        raise InputError(f"{wanted_by}: {path} is missing; {remedy}")
    return path


def cache_folder() -> Path:
    """Where the tool keeps what it makes, even if downloaded sets lie in a folder that it may not write to."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dissensus"


def find(name: str) -> Dataset:
    """The known set of that name."""
    known = _known()
    if name not in known:
        raise InputError(f"'{name}' is not a known dataset{choices(name, known)}")
    return known[name]


def load(name: str) -> Votes:
    """The votes of a known set: `load("words")`.

    Examples:
        >>> load("words")
        Votes(75,200 votes, 7,520 items, 5 classes, anonymous)
    """
    return find(name).load()


def load_labelled(name: str) -> Any:
    """The items of a known set that was published as label distributions: `load_labelled("soft-digits")`."""
    return find(name).load_labelled()


def get(name: str, *, progress: Progress = silent, notes: list[str] | None = None) -> Path | None:
    """Fetch a set from its authors, unless it is there, and check that it can be read.

    A download that broke off is continued where it stopped. The file appears under its own name only when it is whole
    and readable.

    Args:
        name: of the set.
        progress: called with the bytes that are here and the bytes of the whole, None where that is not known.
        notes: takes a sentence on the checksum.

    Returns:
        Where it lies; None where it comes with an installed package.
    """
    notes = [] if notes is None else notes
    dataset = find(name)
    path = dataset.path()
    if path is None or dataset.address is None or path.is_file():
        dataset.contents()
        notes += [] if path is None else _compared(dataset, path)
        return path
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(dataset.address, part, progress)
        if zipfile.is_zipfile(part) and path.suffix not in (".npz", ".pt"):
            _unpack(part, path.name)
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise InputError(
            f"{name}: could not fetch {dataset.address} into {path.parent} ({reason}); download it by other means and "
            f"put it at {path}"
        ) from error
    # A reader goes by the name, so that the file is read as it will be called, in a folder of its own.
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        candidate = Path(folder) / path.name
        part.replace(candidate)
        dataset.read(candidate)
        notes += _compared(dataset, candidate)
        candidate.replace(path)
    return path


def _compared(dataset: Dataset, path: Path) -> list[str]:
    """A note where the file is not the one that the catalogue's entry was checked with."""
    if dataset.sha256 is None:
        return ["there is no checksum to compare the file with"]
    digest = sha256_of(path)
    if digest == dataset.sha256:
        return ["the checksum is right"]
    return [f"the file can be read, but is not the one that the catalogue knows (its sha256 is {digest})"]


def _download(address: str, part: Path, progress: Progress) -> None:
    """Fetch an address into a file, continuing with what is there of it."""
    here = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "dissensus"} | ({"Range": f"bytes={here}-"} if here else {})
    request = urllib.request.Request(address, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        # What is there is the whole file already, or more than the file now has.
        if error.code != 416 or not here:
            raise
        part.unlink()
        _download(address, part, progress)
        return
    with response:
        if response.status != 206:
            here = 0
        length = response.headers.get("Content-Length")
        whole = None if length is None else here + int(length)
        with part.open("ab" if here else "wb") as out:
            while block := response.read(1 << 18):
                out.write(block)
                here += len(block)
                progress(Step("bytes", here, whole))
    if whole is not None and here < whole:
        raise OSError(f"the connection broke off after {here:,} of {whole:,} bytes; try again to continue")


def _unpack(archive: Path, member: str) -> None:
    """Replace a zip archive by the one file in it that has the given name."""
    whole = archive.with_suffix(".zip")
    archive.replace(whole)
    try:
        with zipfile.ZipFile(whole) as opened:
            inside = [name for name in opened.namelist() if Path(name).name == member]
            if not inside:
                raise OSError(f"the archive holds no {member}")
            with opened.open(inside[0]) as source, archive.open("wb") as out:
                shutil.copyfileobj(source, out)
    finally:
        whole.unlink(missing_ok=True)
