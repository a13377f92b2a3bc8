"""The way from a case to its numbers: asks the command line and the API of today.

This file follows the API when names change. It must not change what a case asks: cases, inputs and values stay.

- A command line runs in this process with `--json -`; the numeric leaves of the JSON are the quantities.
- A call `function(...)` runs the method of `Adapter` of that name with literal arguments.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
import os
import re
import shlex
import warnings
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from typer.testing import CliRunner

import dissensus as dis
from dissensus.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.net.comparing import Case

CORPUS: Final = Path(__file__).parents[2] / "packages" / "dissensus" / "tests" / "votes" / "corpus"
RESULTS: Final = Path(__file__).parents[2] / "docs" / "results"

SPELLINGS: Final[tuple[tuple[str, str], ...]] = ()
"""Patterns of command lines in cases.toml, and how the same is typed today."""

IDENTITIES: Final = (
    "system", "name", "id", "method", "delivery", "run", "source", "set", "metric", "quantity", "score", "reference",
    "measure", "stratum", "split", "of", "class", "group", "attribute", "region", "annotator", "between", "people",
    "alone", "label", "a", "b",
)  # fmt: skip
"""Keys whose values name a row of a table in JSON, in this order."""

NOT_QUOTED: Final = frozenset({
    "level", "resamples", "seed", "items_path", "time", "seconds", "hours", "machine_hours", "version", "versions",
    "key", "threads", "workers", "cpu_seconds", "wall_seconds", "trained_seconds",
})  # fmt: skip
"""Keys that no user quotes as a result, or that differ between two runs of the same code."""

LONGEST: Final = 24
"""Maximum number of numbers in a list that are kept one by one."""


# --- from results to quantities --------------------------------------------------------------------------------------


def summary(values: Any) -> dict[str, float]:
    """Return five numbers of a column that a change of any value or of the order moves.

    `slope` is the mean of the values times a weight that runs from -1 to 1 over the column.
    """
    column = np.asarray(values, float).ravel()
    if not column.size:
        return {"rows": 0.0}
    told = column[np.isfinite(column)]
    numbers: dict[str, float] = {}
    if told.size < column.size:
        numbers["finite"] = float(told.size)
    if told.size:
        weight = np.linspace(-1.0, 1.0, told.size)
        numbers |= {
            "mean": float(told.mean()),
            "spread": float(told.std()),
            "least": float(told.min()),
            "most": float(told.max()),
            "slope": float((told * weight).mean()),
        }
    return numbers


def _plain(name: object) -> str:
    """Return a part of a quantity's name without the characters that the files of the net give a meaning."""
    return re.sub(r"[|/\s]+", " ", str(name)).strip()[:80]


def flat(found: Any, words: Iterable[str] = (), path: tuple[str, ...] = ()) -> dict[str, float]:
    """Return the numeric leaves of JSON by their path; null has none.

    An interval {value, low, high} stands at the path of its estimate. `IDENTITIES` name the rows of a table. Lists of
    more than `LONGEST` numbers become their `summary`. A word under a key in `words` becomes a quantity of value 1.
    """
    name = "/".join(path)
    if isinstance(found, bool | int | float):
        return {name: float(found)}
    if isinstance(found, str):
        return {f"{name}={_plain(found)}": 1.0} if path and path[-1] in words else {}
    numbers: dict[str, float] = {}
    if isinstance(found, dict):
        for key, value in found.items():
            if key in NOT_QUOTED:
                continue
            of_interval = key in ("value", "estimate") and isinstance(value, dict)
            numbers |= flat(value, words, path if of_interval else (*path, _plain(key)))
    elif isinstance(found, list) and found:
        if all(isinstance(each, bool | int | float | None) for each in found) and len(found) > LONGEST:
            values = [math.nan if each is None else float(each) for each in found]
            return {f"{name}/{key}": value for key, value in summary(values).items()}
        for place, row in enumerate(found):
            rows = flat(row, words, (*path, _identity(row) or str(place)))
            if set(rows) & set(numbers):
                rows = flat(row, words, (*path, f"{_identity(row)} {place}"))
            numbers |= rows
    return numbers


def _identity(row: Any) -> str:
    """Return what names a row of a table, or nothing."""
    if not isinstance(row, dict):
        return ""
    told = [row[key] for key in IDENTITIES if isinstance(row.get(key), str | int) and not isinstance(row[key], bool)]
    return " ".join(map(_plain, told))


def table_numbers(path: Path) -> dict[str, float]:
    """Return the summary of each numeric column of a table and the count of each word of its columns of few words."""
    table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)
    table = table.sort(table.columns[0])
    numbers: dict[str, float] = {"rows": float(table.height)}
    for name in table.columns:
        column = table[name]
        if column.dtype.is_numeric():
            numbers |= {f"{_plain(name)}/{key}": value for key, value in summary(column.to_numpy()).items()}
        elif column.dtype == pl.String and column.n_unique() <= 12:
            counted = column.fill_null("").value_counts()
            numbers |= {f"{_plain(name)}={_plain(word)}": float(times) for word, times in counted.iter_rows()}
    return numbers


def by_name(names: Any) -> Any:
    """Return the order of names as text, so that the order in which a file lists them is of no account."""
    told = [str(name) for name in names]
    return np.array(sorted(range(len(told)), key=told.__getitem__), dtype=int)


class Adapter:
    """The way to the numbers of all cases, with the files that they share, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[Any, Any] = {}
        self._outputs = count()

    def numbers(self, case: Case) -> dict[str, float]:
        """Return all quantities of a case."""
        quiet = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stderr(quiet), self._own_cache():
            warnings.simplefilter("ignore")
            if found := re.match(r"(\w+)\((.*)\)$", case.call, re.DOTALL):
                call: Any = ast.parse(case.call, mode="eval").body
                positional = [ast.literal_eval(each) for each in call.args]
                keywords = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
                return flat(getattr(self, found[1])(*positional, **keywords), case.words)
            return self.command(case)

    @contextlib.contextmanager
    def _own_cache(self) -> Any:
        """Let the tool cache what it makes in this folder alone."""
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
        try:
            yield
        finally:
            del os.environ["XDG_CACHE_HOME"]
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before

    # --- the command line

    def command(self, case: Case) -> dict[str, float]:
        """Return the numbers of a command line.

        Steps are separated by `;`, and the numbers are those of the last. `> NAME` at its end reads, beside the JSON,
        the table of that name in the output folder.
        """
        out = self.folder / f"out-{next(self._outputs)}"
        out.mkdir()
        line, _, table = case.call.partition(" > ")
        *before, last = (each.strip() for each in line.split(";"))
        with contextlib.chdir(out):
            for step in before:
                self._invoke(step)
            told = self._invoke(f"{last} --json -")
            numbers = flat(json.loads(told), case.words)
            if table:
                numbers |= {f"table/{key}": value for key, value in table_numbers(out / table.strip()).items()}
        return numbers

    def _invoke(self, line: str) -> str:
        for before, now in SPELLINGS:
            line = re.sub(before, now, line)
        filled = re.sub(r"\{([^}]+)\}", lambda found: str(self._place(found[1])), line)
        done = CliRunner().invoke(app, shlex.split(filled))
        if done.exit_code:
            said = str(done.exception) if done.exit_code == 1 else done.stderr[-500:]
            raise RuntimeError(f"dissensus {line}: {said}")
        return done.stdout

    def _place(self, name: str) -> Path:
        """Return the path that a placeholder names."""
        what, *given = name.split()
        places = {"sample": lambda: self.sample, "corpus": lambda: CORPUS, "results": lambda: RESULTS,
                  "data": lambda: Path(os.environ["DISSENSUS_DATA"])}  # fmt: skip
        return places[what]() if what in places else getattr(self, f"{what}_file")(*given)

    @cached_property
    def sample(self) -> Path:
        """The folder of sample files."""
        folder = self.folder / "sample"
        self._invoke(f"data sample {folder}")
        return folder

    # --- inputs

    def votes(self, spec: str, **options: Any) -> Any:
        """Return the votes that a name such as `words:300` or `hs-brexit:200:anonymous` stands for.

        The name is `sample`, `corpus=FILE` or that of a known set. A number keeps as many items, evenly spaced in the
        order of their names. `anonymous` forgets who voted.
        """
        if spec in self._made:
            return self._made[spec]
        name, *changes = spec.split(":")
        if changes:
            votes = self._changed(self.votes(":".join([name, *changes[:-1]])), changes[-1])
        elif name == "sample":
            votes = dis.read_votes(self.sample / "votes.csv", attributes=["country"])
        elif name == "pandalm":
            votes = dis.read_votes(
                Path(os.environ["DISSENSUS_DATA"]) / "preferences" / "pandalm-testset-v1.json", format="preferences",
                annotators=["annotator*"], item_attributes=["response1", "response2"], sides=["cmp_key"], separator="_",
            )  # fmt: skip
        elif name.startswith("corpus="):
            return dis.read_votes(CORPUS / name.removeprefix("corpus="), **options)
        else:
            votes = dis.load(name)
        self._made[spec] = votes
        return votes

    def _changed(self, votes: Any, change: str) -> Any:
        if change == "anonymous":
            return dis.votes_from_counts(votes.counts, items=votes.items, classes=votes.classes, ordered=votes.ordered)
        order = by_name(votes.items)
        kept = np.unique(np.linspace(0, len(order) - 1, int(change)).round().astype(int))
        return votes.take_items(np.sort(order[kept]))

    def model(self, spec: str, seed: int = 0, sharpness: float = 0.25) -> Any:
        """Return (items, classes) probabilities of a made-up model: the votes' shares mixed with noise."""
        votes = self.votes(spec)
        counts = np.asarray(votes.counts, float)
        share = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
        order = by_name(votes.items)
        noise = np.empty_like(share)
        noise[order] = np.random.default_rng(seed).dirichlet(np.ones(share.shape[1]), len(share))
        return sharpness * share + (1 - sharpness) * (0.5 * noise + 0.5 * share.mean(axis=0))

    def votes_file(self, spec: str) -> Path:
        """Return a file of votes."""
        path = self.folder / f"{re.sub(r'[^a-z0-9]+', '-', spec)}-votes.parquet"
        if not path.exists():
            dis.write_votes(self.votes(spec), path)
        return path

    def model_file(self, spec: str, seed: str = "0", sharpness: str = "0.25") -> Path:
        """Return a file of predictions of a made-up model."""
        path = self.folder / f"{re.sub(r'[^a-z0-9]+', '-', spec)}-model-{seed}-{sharpness}.csv"
        if not path.exists():
            votes, shares = self.votes(spec), self.model(spec, int(seed), float(sharpness))
            by_class = {name: shares[:, place] for place, name in enumerate(votes.classes)}
            pl.DataFrame({"item": votes.items.tolist(), **by_class}).write_csv(path)
        return path

    def each_file(self, spec: str, seed: str = "0") -> Path:
        """Return a file of what a made-up model expects of each annotator on each item that they judged."""
        path = self.folder / f"{re.sub(r'[^a-z0-9]+', '-', spec)}-each-{seed}.parquet"
        if not path.exists():
            votes, shares = self.votes(spec), self.model(spec, int(seed), 0.6)
            assert votes.annotators is not None
            bias = np.empty((len(votes.annotators), shares.shape[1]))
            drawn = np.random.default_rng(int(seed)).normal(0, 0.5, bias.shape)
            bias[by_name(votes.annotators.names)] = drawn
            odds = np.log(shares[votes.item]) + bias[votes.annotators.code]
            odds = np.exp(odds - odds.max(axis=1, keepdims=True))
            odds /= odds.sum(axis=1, keepdims=True)
            who = {"item": votes.items[votes.item].tolist(),
                   "annotator": votes.annotators.names[votes.annotators.code].tolist()}  # fmt: skip
            by_class = {name: odds[:, place] for place, name in enumerate(votes.classes)}
            pl.DataFrame({**who, **by_class}).write_parquet(path)
        return path

    # --- votes

    def read(self, spec: str, **options: Any) -> Any:
        """Return numbers of items, votes, judgements, annotators, and votes by class, read with these options."""
        votes = self.votes(spec, **options)
        counts = np.bincount(votes.label, minlength=len(votes.classes))
        by_class = dict(zip(votes.classes, counts.tolist(), strict=True))
        named = {} if votes.annotators is None else {"annotators": len(votes.annotators)}
        unsure = {} if votes.unsure is None else {"unsure": int(votes.unsure.sum())}
        sizes = {"items": len(votes.items), "votes": len(votes), "judgements": votes.n_judgements}
        return {**sizes, **named, **unsure, "ordered": votes.ordered, "class": by_class}

    def agreement(self, spec: str, **options: Any) -> Any:
        """Return every coefficient of agreement with its interval."""
        from dissensus.bootstrap import json_value

        return json_value(dis.agreement(self.votes(spec), **options))

    # --- labels

    def label(self, spec: str, scheme: str, *, gold: int = 0, **options: Any) -> Any:
        """Return label distributions and, of an annotator model, its parameters."""
        votes = self.votes(spec)
        if gold:
            first = by_name(votes.items)[:gold]
            options["gold"] = {votes.items[i]: votes.classes[votes.counts[i].argmax()] for i in first.tolist()}
        labels = dis.label(votes, scheme, **options)
        order = by_name(labels.items)
        shares = labels.probabilities[order]
        found: dict[str, Any] = {
            "probability": {name: summary(shares[:, k]) for k, name in enumerate(labels.classes)},
            "entropy": summary(labels.entropy[order]),
            "unanimous": int(labels.unanimous.sum()),
            "panel": summary(labels.panel_size),
        }
        if labels.mean_uncertainty is not None:
            found["uncertainty"] = summary(labels.mean_uncertainty[order])
        if labels.model is not None:
            model = labels.model
            found["prior"] = model.class_prior.tolist()
            found["iterations"] = model.iterations
            found |= {"log_likelihood": float(model.log_likelihood[-1])} if model.iterations else {}
            whose = by_name(model.annotators)
            for name in ("confusion", "skill", "strategy"):
                if (values := getattr(model, name)) is not None:
                    found[name] = summary(np.asarray(values)[whose])
            if model.difficulty is not None:
                found["difficulty"] = summary(model.difficulty[by_name(model.items)])
        return found

    # --- evaluation

    def evaluate(self, spec: str, *, models: int = 1, seeds: int = 1, resamples: int = 100, **options: Any) -> Any:
        """Return an evaluation of made-up models, each with some seeds, through Python."""
        votes = self.votes(spec)
        systems = {
            f"model {number}": np.stack(
                [self.model(spec, 100 * number + seed, 0.2 + 0.3 * number) for seed in range(seeds)]
            )
            for number in range(models)
        }
        alone = {name: shares[0] if seeds == 1 else shares for name, shares in systems.items()}
        return dis.evaluate(votes, alone, resamples=resamples, **options).to_dict()

    def leak(self, spec: str) -> Any:
        """Return what an evaluation makes of the votes' own shares handed in as a model."""
        votes = self.votes(spec)
        found = dis.evaluate(votes, {"votes": dis.label(votes).probabilities}, resamples=100).to_dict()
        return {"knowing": len(found["knowing"]), "worth": found["worth"]["votes"]}

    def metrics(self, spec: str) -> Any:
        """Return each metric as a plain function of the probabilities of people and of a made-up model."""
        votes = self.votes(spec)
        human, model = dis.label(votes).probabilities, self.model(spec)
        names = ["abs_entce", "accuracy", "brier", "brier_majority", "cosine", "entce", "entropy_pearson",
                 "entropy_spearman", "expected_accuracy", "jsd", "kl", "manhattan", "po_jsd", "rank_cs", "reverse_kl",
                 "rps", "second_best_accuracy", "soft_accuracy", "soft_macro_f1", "soft_micro_f1", "soft_nll", "tvd",
                 "wasserstein", "ece", "classwise_ece"]  # fmt: skip
        found: dict[str, Any] = {}
        for name in names:
            value = np.asarray(getattr(dis.metrics, name)(human, model), float)
            found[name] = summary(value[by_name(votes.items)]) if value.shape == (len(votes.items),) else value.tolist()
        return found

    def calibrate(self, spec: str, kind: Any) -> Any:
        """Return what a calibrator makes of a made-up model."""
        from dissensus.evaluation import fit_calibrator

        votes = self.votes(spec)
        human, model = dis.label(votes).probabilities, self.model(spec)
        fitted = fit_calibrator(kind, human, model)
        after = np.asarray(fitted(model))
        return {name: summary(after[by_name(votes.items), k]) for k, name in enumerate(votes.classes)}

    # --- together, planning, stand-in

    def combine(self, spec: str) -> Any:
        """Return the label distributions of votes and a made-up model together."""
        votes = self.votes(spec)
        return self._together(dis.combine(votes, self.model(spec), resamples=100))

    def _together(self, found: Any) -> Any:
        order = by_name(found.labels.items)
        shares = {name: summary(found.labels.probabilities[order, k]) for k, name in enumerate(found.labels.classes)}
        return {"probability": shares, **found.to_dict()}

    def sets(self, spec: str, level: float) -> Any:
        """Return prediction sets of a made-up model."""
        return dis.prediction_sets(self.votes(spec), self.model(spec), level=level, resamples=100).to_dict()

    def defer(self, spec: str, **options: Any) -> Any:
        """Return which items of a made-up model should go to people."""
        return dis.defer(self.votes(spec), self.model(spec), resamples=100, **options).to_dict()

    def plan(self, spec: str, *, models: int = 0, **options: Any) -> Any:
        """Return a plan, with the difference taken from made-up models if there are any."""
        if models:
            options["systems"] = {f"model {n}": self.model(spec, n, 0.2 + 0.3 * n) for n in range(models)}
        return dis.plan(self.votes(spec), **options).to_dict()

    def plan_with_model(self, spec: str, **options: Any) -> Any:
        """Return a plan beside a made-up model."""
        return dis.plan_with_model(self.votes(spec), self.model(spec), resamples=100, **options).to_dict()

    def stand_in(self, spec: str, **options: Any) -> Any:
        """Return whether a made-up model may take a person's place."""
        return dis.stand_in(self.votes(spec), {"model": self.model(spec)}, resamples=100, **options).to_dict()

    def ranking(self, spec: str) -> Any:
        """Return who wins by preferences."""
        return dis.ranking(self.votes(spec)).to_dict()

    # --- simulation and samples of votes

    def simulate(self, *, responses: bool = False, seed: int = 0) -> Any:
        """Return the counts of simulated votes."""
        truth = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), 200)
        make = dis.simulate_responses if responses else dis.simulate_votes
        return self._counted(make(truth, 5, annotators=12, seed=seed))

    def subsample(self, spec: str, k: int, seed: int) -> Any:
        """Return the counts of a sample of k votes per item."""
        return self._counted(dis.subsample(self.votes(spec), k, seed=seed))

    def _counted(self, votes: Any) -> Any:
        order = by_name(votes.items)
        return {name: summary(votes.counts[order, k]) for k, name in enumerate(votes.classes)} | {"votes": len(votes)}

    def expand(self, spec: str) -> Any:
        """Return rows with weights, as scikit-learn takes them."""
        row, label, weight = dis.expand(dis.label(self.votes(spec)))
        return {"row": summary(row), "label": summary(label), "weight": summary(weight)}

    # --- training

    def deliver(self, spec: str, name: str, *, scheme: str = "frequency", **options: Any) -> Any:
        """Return what a delivery gives in three epochs."""
        import torch

        votes = self.votes(spec)
        made = dis.deliver(name, dis.label(votes, scheme), votes, seed=3, **options)
        return {f"epoch {epoch}": summary(torch.as_tensor(made(epoch)).double().numpy()) for epoch in (0, 1, 7)}

    def losses(self) -> Any:
        """Return the value and the gradient of each loss on made-up logits."""
        import torch

        rng = np.random.default_rng(0)
        targets = torch.tensor(rng.dirichlet(np.ones(4), 16))
        found = {}
        for name in ("cross_entropy", "kl", "jsd", "brier", "emd"):
            logits = torch.tensor(np.random.default_rng(1).normal(size=(16, 4)), requires_grad=True)
            value = getattr(dis.losses, name)(logits, targets).mean()
            value.backward()
            assert logits.grad is not None
            found[name] = {"value": value.item(), "gradient": summary(logits.grad.numpy())}
        return found

    def sklearn(self, spec: str) -> Any:
        """Return predictions of a logistic regression that is fitted on votes."""
        from sklearn.linear_model import LogisticRegression

        votes = self.votes(spec)
        order = by_name(votes.items)
        features = np.log(self.model(spec))[order]
        model = dis.sklearn.VotesClassifier(LogisticRegression(tol=1e-10, max_iter=1000)).fit(
            features, votes.counts[order]
        )
        shares = model.predict_proba(features)
        return {name: summary(shares[:, k]) for k, name in enumerate(votes.classes)}

    def study_file(self, name: str) -> Path:
        """Return a study file whose runs are all in the store `store` beside it."""
        folder = self.folder / f"study-{name}"
        path = folder / "study.toml"
        if not folder.exists():
            folder.mkdir()
            for file in self.sample.glob("*.csv"):
                (folder / file.name).write_bytes(file.read_bytes())
            if name == "images":
                self._images(folder)
            path.write_bytes((Path(__file__).parent / "studies" / f"{name}.toml").read_bytes())
            self._invoke(f"study run {path} --store {folder / 'store'} --engine loop --device cpu")
        return path

    def store_file(self, name: str) -> Path:
        """Return the store of a study."""
        return self.study_file(name).parent / "store"

    def bundle_file(self, name: str) -> Path:
        """Return the bundle that a study exports."""
        folder = self.folder / f"bundle-{name}"
        if not folder.exists():
            self._invoke(f"study export {self.study_file(name)} --store {self.store_file(name)} -o {folder}")
        return folder

    def _images(self, folder: Path) -> None:
        """Write 90 small images of noisy stripes, and one vote on each by five people."""
        rng = np.random.default_rng(0)
        kind = np.arange(90) % 3
        on = np.arange(14) // 2 % 2 * 160
        lying, standing = np.broadcast_to(on[:, None], (14, 14)), np.broadcast_to(on, (14, 14))
        images = np.stack([lying, standing, np.maximum(lying, standing)])[kind] + rng.integers(0, 95, (90, 14, 14))
        np.savez(folder / "features.npz", items=np.arange(90), features=(images[:, None] / 255).astype(np.float32))
        said = np.where(rng.random((90, 5)) < 0.7, kind[:, None], rng.integers(0, 3, (90, 5)))
        rows = {"item": np.repeat(np.arange(90), 5), "annotator": np.tile(list("abcde"), 90),
                "label": np.array(["lying", "standing", "crossed"])[said.ravel()]}  # fmt: skip
        pl.DataFrame(rows).write_csv(folder / "votes.csv")

    # --- beside the walk

    def dynamics(self, spec: str, *, seeds: int = 2, epochs: int = 6, last: int = 5, track: Any = "majority") -> Any:
        """Return data map, regions, forgetting and divergence of made-up training dynamics."""
        from dissensus.dynamics import data_map, epoch_divergence, forgetting_events, regions_by_rank

        human = dis.label(self.votes(spec))
        order = by_name(human.items)
        runs = np.stack([
            np.stack([self.model(spec, 10 * seed + epoch, 0.8 * epoch / epochs) for epoch in range(epochs)])
            for seed in range(seeds)
        ])  # fmt: skip
        place = data_map(runs, human, epochs=last, track=track)
        regions = regions_by_rank(place)
        axes = ("confidence", "variability", "correctness", "across_seeds", "within_runs")
        return {
            **{name: summary(getattr(place, name)[order]) for name in axes},
            "region": {name: summary(getattr(regions, name)[order]) for name in ("easy", "ambiguous", "hard")},
            "forgetting": summary(forgetting_events(runs, human).events[..., order]),
            "divergence": summary(epoch_divergence(runs).values[..., order]),
        }

    def labelled_file(self) -> Path:
        """Return the sample texts with a label each."""
        path = self.folder / "labelled.csv"
        if not path.exists():
            texts, gold = pl.read_csv(self.sample / "texts.csv"), pl.read_csv(self.sample / "gold.csv")
            texts.join(gold, on="item").write_csv(path)
        return path

    def photographs_file(self) -> Path:
        """Return 40 made-up photographs, four of which are near another."""
        path = self.folder / "photographs.npz"
        if not path.exists():
            rng = np.random.default_rng(0)
            x, y = np.meshgrid(np.linspace(0, 3, 24), np.linspace(0, 3, 24))
            waves = rng.normal(size=(36, 6, 3))
            images = np.stack([sum(np.sin(a * x + b * y + 3 * c) for a, b, c in each) for each in waves])
            images = 127 + 110 * images / np.abs(images).max(axis=(1, 2), keepdims=True)
            near = [images[0], images[1] * 0.9 + 10, images[2][:, ::-1], np.rot90(images[3])]
            both = np.concatenate([images, near]).astype(np.uint8)
            np.savez(path, images=both, labels=(both.mean(axis=(1, 2)) > 127).astype(np.int64))
        return path

    def collected(self, k: int, seed: int) -> Any:
        """Return invariants of a simulated project's export: numbers of items and votes, and votes per item."""
        project, out = self.folder / f"project-{k}-{seed}", self.folder / f"collected-{k}-{seed}"
        self._invoke(f"collect init {project} --texts {self.sample / 'texts.csv'} --classes bad,good -k {k} "
                     "--layout single-choice --items-per-annotator 30")  # fmt: skip
        self._invoke(f"collect simulate {project} -o {out} --seed {seed} --annotators 20")
        self._invoke(f"collect export {out} -o {out}-export --format csv")
        table = pl.read_csv(Path(f"{out}-export") / "votes.csv", infer_schema_length=None)
        votes = dis.read_votes(Path(f"{out}-export") / "votes.csv")
        rows = votes.counts.sum(axis=1)
        assert votes.annotators is not None
        twice = table.select("item", "annotator").is_duplicated().sum() if "annotator" in table.columns else -1
        return {"items": len(votes.items), "votes": len(votes), "least votes": int(rows.min()),
                "most votes": int(rows.max()), "item and annotator twice": int(twice)}  # fmt: skip

    def responses(self, scheme: str) -> Any:
        """Return label distributions of simulated responses of yes, no and unsure."""
        truth = np.random.default_rng(5).dirichlet(np.full(3, 0.5), 150)
        self._made["responses"] = dis.simulate_responses(truth, 5, annotators=12, seed=5)
        return self.label("responses", scheme)
