"""The known sets of votes: what they are, where they come from, and how to get them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissensus.datasets.images import read_cifar_votes
from dissensus.datasets.soft_digits import read_soft_digits
from dissensus.datasets.words import PACKAGE, read_words
from dissensus.errors import InputError
from dissensus.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.datasets.labelled import LabelledItems
    from dissensus.votes.table import Votes


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A known set of votes, or of label distributions where no votes were published.

    Attributes:
        name: what it is called on the command line.
        what: one line for a list.
        licence: the terms its authors set.
        reference: the paper to cite.
        file: where it lies, relative to the data folder; None where it comes with an installed package.
        package: the installed package that it comes with; None where it has a file.
        address: where its authors publish it: the file itself, or a zip archive that holds it.
        page: where a person can download it, where there is no address that stays the same.
        read: from the file to votes; None where it holds none.
        read_labelled: from the file to items with label distributions; None for a set of votes.
    """

    name: str
    what: str
    licence: str
    reference: str
    read: Callable[[Path], Votes] | None = None
    read_labelled: Callable[[Path], LabelledItems] | None = None
    file: str | None = None
    package: str | None = None
    address: str | None = None
    page: str | None = None

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
        if self.read is None:
            raise InputError(
                f"{self.name}: the set was published as label distributions, without votes; use it in a study, or "
                "use dissensus.datasets.load_labelled"
            )
        return self.read(self.found())

    def load_labelled(self) -> LabelledItems:
        """The items with their label distributions, of a set that was published in this form."""
        if self.read_labelled is None:
            raise InputError(f"{self.name}: this is a set of votes; use dissensus.datasets.load")
        return self.read_labelled(self.found())

    def contents(self) -> Votes | LabelledItems:
        """What the set holds, read and checked."""
        return self.load_labelled() if self.read is None else self.load()

    def found(self) -> Path:
        """The file; where it is missing, the refusal says how to get it."""
        path = self.path()
        if path is None:
            return Path()
        if not path.is_file():
            remedy = (
                f"download the file from {self.page} and put it there"
                if self.address is None
                else f"fetch it with `dissensus data get {self.name}`"
            )
            raise InputError(
                f"{self.name}: {path} is missing; {remedy}, or set DISSENSUS_DATA to the folder that holds it"
            )
        return path


def _official(name: str) -> Callable[[Path], Votes]:
    def read(path: Path) -> Votes:
        from dissensus.votes.reading import read_votes

        return read_votes(path, format=name)

    return read


_CHAOS = "https://www.dropbox.com/s/h4j7dqszmpt2679/chaosNLI_v1.0.zip?dl=1"
_CHAOS_PAPER = "Nie, Zhou, Bansal 2020, What Can We Learn from Collective Human Opinions on NLI Data?"

DATASETS: Final = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="words",
            what="10 ratings, very negative to very positive (5 classes), for 7,520 words; the set of `dissensus demo`",
            licence="MIT",
            reference="Hutto, Gilbert 2014, VADER",
            read=lambda _: read_words(),
            package=PACKAGE,
        ),
        Dataset(
            name="words-9",
            what="the same ratings on their full scale, -4 to 4 (9 classes)",
            licence="MIT",
            reference="Hutto, Gilbert 2014, VADER",
            read=lambda _: read_words(classes=9),
            package=PACKAGE,
        ),
        Dataset(
            name="cifar-10h",
            what="about 51 votes for each of the 10,000 CIFAR-10 test images, 10 classes, anonymous counts",
            licence="CC BY-NC-SA 4.0",
            reference="Peterson, Battleday, Griffiths, Russakovsky 2019, Human Uncertainty Makes Classification ...",
            file="cifar-10h/cifar10h-counts.npy",
            address="https://raw.githubusercontent.com/jcpeterson/cifar-10h/master/data/cifar10h-counts.npy",
            read=read_cifar_votes,
        ),
        Dataset(
            name="chaosnli-snli",
            what="100 votes for each of 1,514 sentence pairs: entailment, neutral, contradiction",
            licence="CC BY-NC 4.0",
            reference=_CHAOS_PAPER,
            file="chaosNLI_v1.0/chaosNLI_snli.jsonl",
            address=_CHAOS,
            read=_official("chaosnli"),
        ),
        Dataset(
            name="chaosnli-mnli",
            what="100 votes for each of 1,599 sentence pairs: entailment, neutral, contradiction",
            licence="CC BY-NC 4.0",
            reference=_CHAOS_PAPER,
            file="chaosNLI_v1.0/chaosNLI_mnli_m.jsonl",
            address=_CHAOS,
            read=_official("chaosnli"),
        ),
        Dataset(
            name="chaosnli-alphanli",
            what="100 votes for each of 1,532 stories: which of two explanations is likelier",
            licence="CC BY-NC 4.0",
            reference=_CHAOS_PAPER,
            file="chaosNLI_v1.0/chaosNLI_alphanli.jsonl",
            address=_CHAOS,
            read=_official("chaosnli"),
        ),
        Dataset(
            name="popquorn-offensiveness",
            what="5 to 10 ratings, 1 to 5, for each of 1,500 comments by 262 annotators with demographics",
            licence="none stated",
            reference="Pei, Jurgens 2023, When Do Annotator Demographics Matter?",
            file="popquorn/offensiveness/raw_data.csv",
            address="https://raw.githubusercontent.com/Jiaxin-Pei/Potato-Prolific-Dataset/main/dataset/"
            "offensiveness/raw_data.csv",
            read=_official("popquorn"),
        ),
        Dataset(
            name="fer+",
            what="10 votes for each of 35,887 faces: eight emotions, unknown, not a face; anonymous counts",
            licence="MIT",
            reference="Barsoum, Zhang, Canton Ferrer, Zhang 2016, FER+",
            file="ferplus/fer2013new.csv",
            address="https://raw.githubusercontent.com/microsoft/FERPlus/master/fer2013new.csv",
            read=_official("fer+"),
        ),
        Dataset(
            name="soft-digits",
            what="about 6 yes/no/unsure judgements for each of 5,529 digits, 10 classes and none; label distributions",
            licence="CC BY-SA 4.0",
            reference="Pavlovic, Paun, Poesio 2026, An Assessment of Human vs. Model Uncertainty in Soft-Label ...",
            file="soft-digits/soft-digits.parquet",
            page="https://huggingface.co/datasets/majapavlo/image-level-soft-label-digits",
            read_labelled=read_soft_digits,
        ),
    )
}


def data_folder() -> Path:
    """Where downloaded sets lie: the folder named by DISSENSUS_DATA, or else `cache_folder`."""
    given = os.environ.get("DISSENSUS_DATA")
    return Path(given) if given else cache_folder()


def cache_folder() -> Path:
    """Where the tool keeps what it makes, even if downloaded sets lie in a folder that it may not write to."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dissensus"


def find(name: str) -> Dataset:
    """The known set of that name."""
    if name not in DATASETS:
        raise InputError(f"'{name}' is not a known dataset; there are {', '.join(DATASETS)}")
    return DATASETS[name]


def load(name: str) -> Votes:
    """The votes of a known set: `load("words")`."""
    return find(name).load()


def load_labelled(name: str) -> LabelledItems:
    """The items of a known set that was published as label distributions: `load_labelled("soft-digits")`."""
    return find(name).load_labelled()


def get(name: str) -> Path | None:
    """Fetch a set from its authors, unless it is there, and check that it can be read.

    Returns where it lies. The file appears under its own name only when it is whole and readable.
    """
    dataset = find(name)
    path = dataset.path()
    if path is None or dataset.address is None or path.is_file():
        dataset.contents()
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_fetch(dataset, path, error) from error
    with whole_file(path) as part:
        try:
            _download(dataset.address, part)
            if zipfile.is_zipfile(part):
                _unpack(part, path.name)
        except OSError as error:
            raise _cannot_fetch(dataset, path, error) from error
        if dataset.read is not None:
            dataset.read(part)
    return path


def _download(address: str, target: Path) -> None:
    request = urllib.request.Request(address, headers={"User-Agent": "dissensus"})
    with urllib.request.urlopen(request, timeout=60) as response, target.open("wb") as out:
        shutil.copyfileobj(response, out)


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


def _cannot_fetch(dataset: Dataset, path: Path, error: OSError) -> InputError:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return InputError(
        f"{dataset.name}: could not fetch {dataset.address} into {path.parent} ({reason}); download it by other means "
        f"and put it at {path}"
    )
