"""The known sets of votes: what they are, where they come from, and how to get them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissensus.datasets.cifar_10s import read_cifar_10s
from dissensus.datasets.images import read_cifar_votes
from dissensus.datasets.snippets import read_snippets
from dissensus.datasets.soft_digits import read_soft_digits
from dissensus.datasets.sources import read_source
from dissensus.datasets.words import PACKAGE, read_words
from dissensus.errors import InputError, choices

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.datasets.labelled import LabelledItems
    from dissensus.datasets.sources import Source
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
        read: from the file to votes; None where it holds none.
        read_labelled: from the file to items with label distributions; None where it holds none, or votes.
        read_items: from the file to items; None where people judged them.
        items: how many it has; None where that is not known for certain.
        votes: likewise.
        annotators: how many annotators are told apart; None where votes are anonymous.
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
    read: Callable[[Path], Votes] | None = None
    read_labelled: Callable[[Path], LabelledItems] | None = None
    read_items: Callable[[Path], Source] | None = None
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
        told = {each.name: getattr(self, each.name) for each in fields(self) if not each.name.startswith("read")}
        return {**told, "here": self.present()}

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
        if self.read_items is not None:
            raise InputError(f"{self.name}: the set holds items without votes; give its file to curate, ood or collect")
        if self.read is None:
            raise InputError(
                f"{self.name}: the set was published as label distributions, without votes; use it in a study, with "
                "`dissensus labels`, or with dissensus.datasets.load_labelled"
            )
        return self.read(self.found())

    def load_labelled(self) -> LabelledItems:
        """The items with their label distributions, of a set that was published in this form."""
        if self.read_labelled is None:
            holds = "items without labels of people" if self.read is None else "votes; use dissensus.datasets.load"
            raise InputError(f"{self.name}: this is a set of {holds}")
        return self.read_labelled(self.found())

    def contents(self) -> Votes | LabelledItems | Source:
        """What the set holds, read and checked."""
        return self.held(self.found())

    def held(self, path: Path) -> Votes | LabelledItems | Source:
        """What a file of the set holds, wherever it lies."""
        read = self.read or self.read_labelled or self.read_items
        assert read is not None, self.name
        return read(path)

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


def _official(name: str, **options: Any) -> Callable[[Path], Votes]:
    def read(path: Path) -> Votes:
        from dissensus.votes.reading import read_votes

        return read_votes(path, format=name, **options)

    return read


def _lewidi(
    name: str, what: str, file: str, *, year: int, items: int, votes: int, annotators: int, **more: Any
) -> Dataset:
    """One set of a Learning With Disagreements shared task; of its splits the one that is named is read."""
    return Dataset(
        name=name,
        what=what,
        licence="none stated",
        reference=f"Le-Wi-Di {year}, shared task on learning with disagreements",
        file=f"lewidi-{year}/{file}",
        page="https://le-wi-di.github.io",
        read=_official("lewidi", duplicates="first"),
        items=items,
        votes=votes,
        annotators=annotators,
        columns="item = key, annotator = annotators, label = annotations",
        **more,
    )


_CHAOS = "https://www.dropbox.com/s/h4j7dqszmpt2679/chaosNLI_v1.0.zip?dl=1"
_CHAOS_PAPER = "Nie, Zhou, Bansal 2020, What Can We Learn from Collective Human Opinions on NLI Data?"

DATASETS: Final = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="words",
            items=7_520,
            votes=75_200,
            kind="ratings",
            language="English",
            what="10 ratings, very negative to very positive (5 classes), for 7,520 words; the set of `dissensus demo`",
            licence="MIT",
            reference="Hutto, Gilbert 2014, VADER",
            read=lambda _: read_words(),
            package=PACKAGE,
        ),
        Dataset(
            name="words-9",
            items=7_520,
            votes=75_200,
            kind="ratings",
            language="English",
            what="the same ratings on their full scale, -4 to 4 (9 classes)",
            licence="MIT",
            reference="Hutto, Gilbert 2014, VADER",
            read=lambda _: read_words(classes=9),
            package=PACKAGE,
        ),
        Dataset(
            name="snippets",
            items=23_504,
            votes=517_433,
            kind="ratings",
            language="English",
            sha256="d5bb07d87474b3eb8d30b4deccbc23f19d742a6c5718fbacc65485b70b95c5fa",
            columns="ratings = *_anonDataRatings.txt, texts = *_GroundTruth.txt, joined by number",
            what="15 to 99 ratings, very negative to very positive (5 classes), for tweets and sentences of reviews",
            licence="MIT",
            reference="Hutto, Gilbert 2014, VADER",
            file="vader/hutto_ICWSM_2014.tar.gz",
            address="https://raw.githubusercontent.com/cjhutto/vaderSentiment/master/additional_resources/"
            "hutto_ICWSM_2014.tar.gz",
            read=read_snippets,
            unverified="the address; the file itself was taken from the source distribution of vaderSentiment 3.3.2",
        ),
        Dataset(
            name="cifar-10h",
            items=10_000,
            votes=511_000,
            kind="counts",
            sha256="9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff",
            columns="rows = images, columns = classes",
            what="about 51 votes for each of the 10,000 CIFAR-10 test images, 10 classes, anonymous counts",
            licence="CC BY-NC-SA 4.0",
            reference="Peterson, Battleday, Griffiths, Russakovsky 2019, Human Uncertainty Makes Classification ...",
            file="cifar-10h/cifar10h-counts.npy",
            address="https://raw.githubusercontent.com/jcpeterson/cifar-10h/master/data/cifar10h-counts.npy",
            read=read_cifar_votes,
        ),
        Dataset(
            name="chaosnli-snli",
            items=1_514,
            votes=151_400,
            kind="counts",
            language="English",
            sha256="99f9015ddda7d85f66a087452bc30d53974314fe27e7d589e2f41ad44bd509c1",
            columns="item = uid, counts = label_count (e, n, c), original = old_label",
            what="100 votes for each of 1,514 sentence pairs: entailment, neutral, contradiction",
            licence="CC BY-NC 4.0",
            reference=_CHAOS_PAPER,
            file="chaosNLI_v1.0/chaosNLI_snli.jsonl",
            address=_CHAOS,
            read=_official("chaosnli"),
        ),
        Dataset(
            name="chaosnli-mnli",
            items=1_599,
            votes=159_900,
            kind="counts",
            language="English",
            sha256="8eb49b589488e7b1a9ec95fb8a864bd50f0509b4f808eed0aed3f8167617664d",
            columns="item = uid, counts = label_count (e, n, c), original = old_label",
            what="100 votes for each of 1,599 sentence pairs: entailment, neutral, contradiction",
            licence="CC BY-NC 4.0",
            reference=_CHAOS_PAPER,
            file="chaosNLI_v1.0/chaosNLI_mnli_m.jsonl",
            address=_CHAOS,
            read=_official("chaosnli"),
        ),
        Dataset(
            name="chaosnli-alphanli",
            items=1_532,
            votes=153_200,
            kind="counts",
            language="English",
            sha256="f55817ecc11a02ba3030cd7d2c567d23843456809020723abad53f4fde024c9e",
            columns="item = uid, counts = label_count (1, 2), original = old_label",
            what="100 votes for each of 1,532 stories: which of two explanations is likelier",
            licence="CC BY-NC 4.0",
            reference=_CHAOS_PAPER,
            file="chaosNLI_v1.0/chaosNLI_alphanli.jsonl",
            address=_CHAOS,
            read=_official("chaosnli"),
        ),
        Dataset(
            name="popquorn-offensiveness",
            items=1_500,
            votes=13_036,
            annotators=262,
            kind="ratings",
            language="English",
            sha256="fb0589093d45da76bf4ef4d0abff679b540bdd5b17af5764913b3ccd0a069e1e",
            columns="item = instance_id, annotator = user_id, label = offensiveness",
            what="5 to 10 ratings, 1 to 5, for each of 1,500 comments by 262 annotators with demographics",
            licence="none stated",
            reference="Pei, Jurgens 2023, When Do Annotator Demographics Matter?",
            file="popquorn/offensiveness/raw_data.csv",
            address="https://raw.githubusercontent.com/Jiaxin-Pei/Potato-Prolific-Dataset/main/dataset/"
            "offensiveness/raw_data.csv",
            read=_official("popquorn"),
        ),
        Dataset(
            name="popquorn-politeness",
            what="ratings of politeness, 1 to 5, of e-mails by annotators with demographics",
            licence="none stated",
            reference="Pei, Jurgens 2023, When Do Annotator Demographics Matter?",
            file="popquorn/politeness_rating/raw_data.csv",
            address="https://raw.githubusercontent.com/Jiaxin-Pei/Potato-Prolific-Dataset/main/dataset/"
            "politeness_rating/raw_data.csv",
            read=_official("popquorn"),
            kind="ratings",
            language="English",
            columns="item = instance_id, annotator = user_id, label = politeness",
            unverified="the address; the reader, which is tested on a made file",
        ),
        Dataset(
            name="fer+",
            items=35_710,
            votes=357_099,
            kind="counts",
            sha256="9206e20d62f56475939f516847d61753e4860caeac9718b560129541b776fc2c",
            columns="item = Image name, counts = neutral ... NF",
            what="10 votes for each of 35,887 faces: eight emotions, unknown, not a face; anonymous counts",
            licence="MIT",
            reference="Barsoum, Zhang, Canton Ferrer, Zhang 2016, FER+",
            file="ferplus/fer2013new.csv",
            address="https://raw.githubusercontent.com/microsoft/FERPlus/master/fer2013new.csv",
            read=_official("fer+"),
        ),
        Dataset(
            name="cifar-10h-raw",
            what="one row for each of the 2,571 annotators' trials on the CIFAR-10 test images, with reaction times",
            licence="CC BY-NC-SA 4.0",
            reference="Peterson, Battleday, Griffiths, Russakovsky 2019, Human Uncertainty Makes Classification ...",
            file="cifar-10h/cifar10h-raw.csv",
            address="https://raw.githubusercontent.com/jcpeterson/cifar-10h/master/data/cifar10h-raw.zip",
            read=_official("cifar-10h"),
            items=10_000,
            annotators=2_571,
            columns="item = cifar10_test_test_idx, annotator = annotator_id, label = chosen_category, "
            "seconds = reaction_time / 1000",
            unverified="the address and the sizes; the reader, which is tested on a made file",
        ),
        Dataset(
            name="cifar-10n",
            what="3 votes for each of the 50,000 CIFAR-10 training images, with the original label",
            licence="CC BY-NC 4.0",
            reference="Wei, Zhu, Cheng, Liu, Niu, Liu 2022, Learning with Noisy Labels Revisited",
            file="cifar-10n/CIFAR-10_human.pt",
            address="https://raw.githubusercontent.com/UCSC-REAL/cifar-10-100n/main/data/CIFAR-10_human.pt",
            read=_official("cifar-10n"),
            items=50_000,
            votes=150_000,
            sha256="873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310",
            columns="labels = random_label1 to 3, original = clean_label",
            unverified="who gave which label: side_info_cifar10N.csv names workers by batch of ten images, but in no "
            "published order of images do workers differ more than by chance, so the votes are anonymous",
        ),
        Dataset(
            name="imagenet-real",
            what="5 answers yes / maybe / no to each of 184,962 questions whether a class is in an ImageNet image",
            licence="Apache-2.0",
            reference="Beyer, Henaff, Kolesnikov, Zhai, van den Oord 2020, Are we done with ImageNet?",
            file="imagenet-real/raters.npz",
            address="https://raw.githubusercontent.com/google-research/reassessed-imagenet/master/raters.npz",
            read=_official("imagenet-real"),
            items=184_962,
            votes=924_810,
            annotators=85,
            kind="yes / no / unsure",
            sha256="d3ffe8082e4e61e9716cbc93a7a4e877e3b1d1240032a176e797b43f19107ec8",
            columns="tensor = raters x questions x (no, maybe, yes), item = info, annotator = ids",
        ),
        *(
            Dataset(
                name=f"dices-{size}",
                what=f"{per} answers Yes / No / Unsure for each of {size} dialogues: is the reply *un*safe?",
                licence="CC BY 4.0",
                reference="Aroyo et al. 2023, DICES Dataset: Diversity in Conversational AI Evaluation for Safety",
                file=f"dices/{file}",
                page="https://github.com/dmg-illc/JUDGE-BENCH",
                read=_official("judge-bench"),
                items=size,
                votes=votes,
                kind="yes / no / unsure",
                language="English",
                columns="item = id, labels = individual_human_scores",
                unverified="that Yes means unsafe: the copy's own words say safe, the original's unsafe",
            )
            for size, per, votes, file in (
                (990, "69 to 76", 72_103, "dices_990.json"),
                (350, "123", 43_050, "dices_350_crowdsourced.json"),
            )
        ),
        Dataset(
            name="crehate",
            what="about 27 votes, hate or not, for each of 1,580 posts by annotators of five countries",
            licence="CC BY-SA 4.0",
            reference="Lee, Jung, Myung, Jin, Camacho-Collados, Kim, Oh 2024, Exploring Cross-Cultural Differences ...",
            file="crehate/CREHate_raw_annotations.csv",
            page="https://github.com/nlee0212/CREHate",
            read=_official("crehate", duplicates="first"),
            items=1_580,
            votes=42_527,
            annotators=1_064,
            language="English",
            sha256="2f5227cadc49be1895cb307738e3fb2fd0e12a5169f0e1f563697d19df9b4bbb",
            columns="item = ID, annotator = annotator_id, label = annotation (0 not hate, 1 hate, 2 neither)",
            unverified="what label 2, read as unsure, means: the file does not say; the authors' country labels "
            "are the majority of 0 and 1 alone in all 7,900 cases",
        ),
        *(
            Dataset(
                name=f"emobank-{dimension}",
                what=f"5 ratings of {dimension}, 1 to 5, for each of 10,548 sentences, by readers, anonymous",
                licence="CC BY-SA 4.0",
                reference="Buechel, Hahn 2017, EmoBank",
                file="emobank/individual_reader_ratings.csv",
                page="https://github.com/JULIELab/EmoBank",
                read=_official("emobank", label=dimension),
                items=10_548,
                votes=53_055,
                kind="ratings",
                language="English",
                sha256="059bdadbdc1179b29c168b96f1e0c0a31fc2b0bab5e4103bf6cf3b3e6d53e7bf",
                columns=f"item = id, label = {dimension[0].upper()}",
            )
            for dimension in ("valence", "arousal", "dominance")
        ),
        Dataset(
            name="davidson",
            what="3 to 9 votes for each of 24,783 tweets: hate speech, offensive language, neither; anonymous counts",
            licence="MIT",
            reference="Davidson, Warmsley, Macy, Weber 2017, Automated Hate Speech Detection",
            file="davidson/labeled_data.csv",
            address="https://raw.githubusercontent.com/t-davidson/hate-speech-and-offensive-language/master/data/"
            "labeled_data.csv",
            read=_official("davidson"),
            items=24_783,
            votes=80_383,
            kind="counts",
            language="English",
            sha256="fcb8bc7c68120ae4af04a5b9acd58585513ede11e1548ebf36a5c2040b6f6281",
            columns="counts = hate_speech, offensive_language, neither; text = tweet",
        ),
        *(
            Dataset(
                name=f"crema-d-{condition}",
                what=f"about 10 votes over six emotions for each of 7,442 clips ({condition}), anonymous counts",
                licence="ODbL",
                reference="Cao, Cooper, Keutmann, Gur, Nenkova, Verma 2014, CREMA-D",
                file="crema-d/tabulatedVotes.csv",
                address="https://raw.githubusercontent.com/CheyneyComputerScience/CREMA-D/master/processedResults/"
                "tabulatedVotes.csv",
                read=_official("crema-d", label=condition),
                items=7_442,
                votes=votes,
                kind="counts",
                sha256="774d9d759cb5caf2542758a39eca8c0f1d2777f9987ff5d5adf8066d192f377b",
                columns="item = fileName, counts = A, D, F, H, N, S",
            )
            for condition, votes in (("voice", 68_568), ("face", 71_654), ("both", 71_778))
        ),
        _lewidi(
            "hs-brexit",
            "6 votes, hate speech or not, for each of 784 tweets on Brexit (train; dev and test lie beside it)",
            "HS-Brexit_train.json",
            year=2023,
            items=784,
            votes=4_704,
            annotators=6,
            language="English",
        ),
        _lewidi(
            "md-agreement",
            "5 votes, offensive or not, for each of 6,592 tweets (train; dev and test lie beside it)",
            "MD-Agreement_train.json",
            year=2023,
            items=6_592,
            votes=32_960,
            annotators=670,
            language="English",
        ),
        _lewidi(
            "convabuse",
            "2 to 8 severities of abuse, -3 to 1, for each of 2,398 dialogues (train; dev and test lie beside it)",
            "ConvAbuse_train.json",
            year=2023,
            items=2_398,
            votes=7_144,
            annotators=8,
            kind="ratings",
            language="English",
        ),
        _lewidi(
            "armis",
            "3 votes, misogynist or not, for each of 657 tweets (train; dev and test lie beside it)",
            "ArMIS_train.json",
            year=2023,
            items=657,
            votes=1_971,
            annotators=3,
            language="Arabic",
        ),
        _lewidi(
            "csc",
            "4 to 6 ratings of sarcasm, 1 to 6, for each of 704 replies (dev; test lies beside it)",
            "CSC_dev.json",
            year=2025,
            items=704,
            votes=3_186,
            annotators=850,
            kind="ratings",
            language="English",
        ),
        _lewidi(
            "mp",
            "about 5 votes, ironic or not, for each of 3,005 posts in nine languages (dev; test lies beside it)",
            "MP_dev.json",
            year=2025,
            items=3_005,
            votes=15_178,
            annotators=506,
            language="nine",
        ),
        _lewidi(
            "paraphrase",
            "4 ratings of paraphrases, -5 to 5, for each of 400 pairs (train; dev and test lie beside it)",
            "Paraphrase_train.json",
            year=2025,
            items=400,
            votes=1_600,
            annotators=4,
            kind="ratings",
            language="English",
        ),
        _lewidi(
            "varierr-nli",
            "4 sets of entailment, neutral, contradiction for each of 388 pairs (train; dev and test lie beside it)",
            "VariErrNLI_train.json",
            year=2025,
            items=388,
            votes=1_505,
            annotators=4,
            kind="sets",
            language="English",
        ),
        Dataset(
            name="goemotions",
            what="sets of 28 emotions for Reddit comments, by 82 raters (the first of three files)",
            licence="Apache-2.0",
            reference="Demszky, Movshovitz-Attias, Ko, Cowen, Nemade, Ravi 2020, GoEmotions",
            file="goemotions/goemotions_1.csv",
            address="https://storage.googleapis.com/gresearch/goemotions/data/full_dataset/goemotions_1.csv",
            read=_official("goemotions", duplicates="first"),
            kind="sets",
            language="English",
            columns="item = id, annotator = rater_id, classes = admiration ... neutral",
            unverified="the reader, which is tested on a made file; the sizes",
        ),
        Dataset(
            name="product",
            what="3 votes for each of 8,315 pairs of products, same or not; a classic set with gold labels beside it",
            licence="none stated",
            reference="Wang, Kraska, Franklin, Feng 2012, CrowdER",
            file="crowd/product.answer.csv",
            page="https://github.com/zhydhkcws/crowd_truth_infer",
            read=_official("long"),
            items=8_315,
            votes=24_945,
            annotators=176,
            language="English",
            columns="item = question, annotator = worker, label = answer",
        ),
        *(
            Dataset(
                name=f"alttest-{name}",
                what=f"{what}, of the alternative annotator test; the same of LLMs lies beside it",
                licence="none stated",
                reference="Calderon, Reichart, Dror 2025, The Alternative Annotator Test for LLM-as-a-Judge",
                file=f"alttest/{name}.human_annotations.json",
                page="https://github.com/nitaytech/AltTest",
                read=_official("alttest"),
                items=items,
                votes=votes,
                annotators=annotators,
                kind=kind,
                columns="annotator = key, item = key under it, label = value",
            )
            for name, what, kind, items, votes, annotators in (
                ("10k_prompts", "ratings 1 to 5 of prompts", "ratings", 1_698, 3_844, 13),
                ("cebab_aspects", "sentiment of aspects of restaurant reviews", "choices", 1_008, 4_032, 10),
                ("kilogram", "what a tangram looks like, in free words", "choices", 993, 7_215, 50),
                ("lgbteen", "judgements of replies to LGBT teenagers", "choices", 880, 2_560, 4),
                ("mtbench", "which of two replies is better", "choices", 120, 246, 3),
                ("summeval", "ratings 1 to 5 of summaries", "ratings", 6_400, 19_200, 3),
            )
        ),
        Dataset(
            name="soft-digits",
            items=5_529,
            kind="yes / no / unsure",
            what="about 6 yes/no/unsure judgements for each of 5,529 digits, 10 classes and none; label distributions",
            licence="CC BY-SA 4.0",
            reference="Pavlovic, Paun, Poesio 2026, An Assessment of Human vs. Model Uncertainty in Soft-Label ...",
            file="soft-digits/soft-digits.parquet",
            page="https://huggingface.co/datasets/majapavlo/image-level-soft-label-digits",
            read_labelled=read_soft_digits,
            unverified="the address; the reader, which is tested on a made file",
        ),
        Dataset(
            name="cifar-10s",
            what="probabilities that 6 or more people stated for each of 1,000 CIFAR-10 test images; no votes",
            licence="none stated",
            reference="Collins, Bhatt, Weller 2022, Eliciting and Learning with Soft Labels from Every Annotator",
            file="cifar-10s/cifar10s_t2clamp_redist10.json",
            address="https://raw.githubusercontent.com/cambridge-mlg/cifar-10s/main/cifar10s_data/"
            "cifar10s_t2clamp_redist10.json",
            read_labelled=read_cifar_10s,
            items=1_000,
            kind="probabilities",
            columns="item = key (place in the test set), probabilities = one list of ten a person",
            unverified="the sizes; the reader, which is tested on a made file; the branch in the address",
        ),
        Dataset(
            name="varierr",
            what="sets of entailment, neutral, contradiction for 500 pairs, as four annotators explained them",
            licence="none stated",
            reference="Weber-Genzel, Peng, de Marneffe, Plank 2024, VariErr NLI",
            file="varierr/varierr.json",
            address="https://raw.githubusercontent.com/mainlp/VariErr-NLI/main/varierr.json",
            read=_official("varierr"),
            annotators=4,
            kind="sets",
            language="English",
            columns="item = id, annotator and label = entailment, neutral, contradiction; --label round_1 or round_2",
            unverified="the sizes; the reader, which is tested on a made file; the branch in the address",
        ),
        *(
            Dataset(
                name=name,
                what=what,
                licence=licence,
                reference=reference,
                file=file,
                page=page,
                read_items=read_source,
                items=items,
                kind="items",
                unverified=unverified,
            )
            for name, what, licence, reference, file, page, items, unverified in (
                (
                    "mnist",
                    "60,000 training digits, 28 x 28; the 10,000 test digits lie beside them",
                    "CC BY-SA 3.0",
                    "LeCun, Bottou, Bengio, Haffner 1998, Gradient-Based Learning Applied to Document Recognition",
                    "mnist/train-images-idx3-ubyte.gz",
                    "http://yann.lecun.com/exdb/mnist/",
                    60_000,
                    "",
                ),
                (
                    "fashion-mnist",
                    "10,000 test images of clothes, 28 x 28: out of distribution for digits",
                    "MIT",
                    "Xiao, Rasul, Vollgraf 2017, Fashion-MNIST",
                    "fashion-mnist/t10k-images-idx3-ubyte.gz",
                    "https://github.com/zalandoresearch/fashion-mnist",
                    10_000,
                    "",
                ),
                (
                    "cifar-100",
                    "10,000 test images, 32 x 32, of 100 classes in 20 coarse ones",
                    "none stated",
                    "Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images",
                    "cifar-100-binary/test.bin",
                    "https://www.cs.toronto.edu/~kriz/cifar.html",
                    10_000,
                    "the reader, which is tested on a made file",
                ),
                (
                    "svhn",
                    "26,032 test digits of house numbers, 32 x 32",
                    "none stated",
                    "Netzer, Wang, Coates, Bissacco, Wu, Ng 2011, Reading Digits in Natural Images",
                    "svhn/test_32x32.mat",
                    "http://ufldl.stanford.edu/housenumbers/",
                    26_032,
                    "the reader, which is tested on a made file; the size",
                ),
                (
                    "ardis",
                    "1,000 test digits of Swedish church records, 28 x 28 (dataset IV)",
                    "none stated",
                    "Kusetogullari, Yavariabdi, Cheddad, Grahn, Hall 2019, ARDIS",
                    "ardis/ARDIS_test_2828.csv",
                    "https://ardisdataset.github.io/ARDIS/",
                    1_000,
                    "the reader, which is tested on a made file; the terms of use",
                ),
                (
                    "ambiguous-mnist",
                    "blended digits, 28 x 28, with several plausible digits drawn for each",
                    "none stated",
                    "Mukhoti, Kirsch, van Amersfoort, Torr, Gal 2021, Deterministic Neural Networks ...",
                    "ambiguous-mnist/amnist_samples.pt",
                    "https://github.com/BlackHC/ddu_dirty_mnist",
                    None,
                    "the reader, which is tested on a made file; the size",
                ),
            )
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
        raise InputError(f"'{name}' is not a known dataset{choices(name, DATASETS)}")
    return DATASETS[name]


def load(name: str) -> Votes:
    """The votes of a known set: `load("words")`.

    Examples:
        >>> load("words")
        Votes(75,200 votes, 7,520 items, 5 classes, anonymous)
    """
    return find(name).load()


def load_labelled(name: str) -> LabelledItems:
    """The items of a known set that was published as label distributions: `load_labelled("soft-digits")`."""
    return find(name).load_labelled()


def get(
    name: str, *, progress: Callable[[int, int | None], None] | None = None, notes: list[str] | None = None
) -> Path | None:
    """Fetch a set from its authors, unless it is there, and check that it can be read.

    A download that broke off is continued where it stopped. The file appears under its own name only when it is whole
    and readable.

    Args:
        name: of the set.
        progress: told the bytes that are here and the bytes of the whole, None where that is not known.
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
        raise _cannot_fetch(dataset, path, error) from error
    # A reader goes by the name, so that the file is read as it will be called, in a folder of its own.
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        candidate = Path(folder) / path.name
        part.replace(candidate)
        dataset.held(candidate)
        notes += _compared(dataset, candidate)
        candidate.replace(path)
    return path


def _compared(dataset: Dataset, path: Path) -> list[str]:
    """A note where the file is not the one that the catalogue's entry was checked with."""
    if dataset.sha256 is None:
        return ["there is no checksum to compare the file with"]
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == dataset.sha256:
        return ["the checksum is right"]
    return [f"the file can be read, but is not the one that the catalogue knows (its sha256 is {found})"]


def _download(address: str, part: Path, progress: Callable[[int, int | None], None] | None) -> None:
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
                if progress is not None:
                    progress(here, whole)
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


def _cannot_fetch(dataset: Dataset, path: Path, error: OSError) -> InputError:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return InputError(
        f"{dataset.name}: could not fetch {dataset.address} into {path.parent} ({reason}); download it by other means "
        f"and put it at {path}"
    )
