"""Top eigenvalue and trace of a LeNet's Hessian: dissensus, PyHessian and curvlinops on the same machine in one run.

    python benchmarks/basins.py                2,000 images, one thread
    python benchmarks/basins.py --quick        500 images, to see that it works
    python benchmarks/basins.py --errors       how often stated errors hold, over 1,000 random spectra
    python benchmarks/basins.py --transformer  a transformer of 22 million weights, on a GPU where there is one

The network has 61,706 weights and was trained for some epochs on digits drawn by scikit-learn (real scans, upsampled
and jittered) with simulated votes; the loss is soft cross-entropy over all images. Every library is asked for the same:
the largest eigenvalue to a relative tolerance of 1e-3, and the trace from 40 Rademacher probes. Ours pays for building
its operator and for its determinism check in each line; the libraries' operators are built in theirs. A tight reference
(float64, Lanczos to 1e-8; 400 probes) says how wrong each answer is.

PyHessian 0.1 stops its trace after two probes where the running estimate is negative, and stops early by a rule that
knows no error; it is given tol=0, so that it uses all 40. Its eigenvalue has the largest magnitude, which here is the
largest. Both of its ways are timed, the whole set as one batch (the graph is kept) and a loader, and the faster counts.
curvlinops has no eigenvalue solver; its operator goes to SciPy's eigsh, as its documentation does it, and its
determinism check is off. Its trace draws all probes at once; it is given them five at a time, which is faster.

The spectra have 30 to 300 eigenvalues above a bulk: tops within 2 % of each other, gaps of .98, .95 and .9, values that
occur several times, all rotated at random and scaled. An error holds where every value asked for is within its own.

The transformer has the shape of all-MiniLM-L6 (6 layers, 384 wide, 12 heads, 30,522 tokens) and reads 1,000 texts of
128 random tokens; it is trained for 60 steps first, so that its Hessian has outliers. Both libraries compute attention
by matrix products, since fused kernels have no second derivatives.

With one thread seconds are those of the processor, so that other work on the machine does not decide; on a quiet
machine they are those of the clock.
"""

from __future__ import annotations

import argparse
import gc
import platform
import resource
import subprocess
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import t as t_quantile
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from dissensus_train.basins import hessian, top_eigenvalues, trace
from dissensus_train.basins.objectives import derivable
from dissensus_train.basins.operators import Operator
from dissensus_train.cores import available_cores
from dissensus_train.training.models import build

if TYPE_CHECKING:
    from collections.abc import Callable

TOLERANCE, PROBES, CLASSES, TOKENS = 1e-3, 40, 10, 128


def digits(items: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(items, 1, 28, 28) scans and (items, 10) shares of ten simulated votes."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped, unused-ignore]

    scans = load_digits()
    generator = np.random.default_rng(0)
    rows = generator.integers(0, len(scans.images), items)
    small = torch.from_numpy(scans.images[rows]).float()[:, None] / 16
    large = F.interpolate(small, size=(24, 24), mode="bilinear", align_corners=False)
    shifts = generator.integers(0, 5, (items, 2))
    images = torch.stack([F.pad(x, (c, 4 - c, r, 4 - r)) for x, (r, c) in zip(large, shifts.tolist(), strict=True)])
    images += 0.1 * torch.from_numpy(generator.standard_normal(images.shape)).float()
    truth = np.eye(CLASSES)[scans.target[rows]] * 0.6 + 0.4 * generator.dirichlet(np.full(CLASSES, 0.3), items)
    votes = np.stack([generator.multinomial(10, p) for p in truth])
    return images, torch.from_numpy(votes / 10).float()


def trained(x: torch.Tensor, t: torch.Tensor, *, epochs: int = 8) -> torch.nn.Module:
    model = build("lenet", (1, 28, 28), classes=CLASSES, seed=0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=generator).split(64):
            optimiser.zero_grad()
            F.cross_entropy(model(x[rows]), t[rows]).backward()
            optimiser.step()
    return model.eval()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    gc.collect()
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
    clock = time.process_time if torch.get_num_threads() == 1 and not gpu else time.perf_counter
    began = clock()
    result = work()
    if gpu:
        torch.cuda.synchronize()
    return result, clock() - began


def ours(model: torch.nn.Module, x: torch.Tensor, t: torch.Tensor) -> dict[str, tuple[float, float, str]]:
    def top() -> Any:
        return top_eigenvalues(hessian(model, x, t), tolerance=TOLERANCE)

    def total() -> Any:
        return trace(hessian(model, x, t), probes=PROBES, tolerance=None)

    def both() -> Any:
        operator = hessian(model, x, t)
        return top_eigenvalues(operator, tolerance=TOLERANCE), trace(operator, probes=PROBES, tolerance=None)

    found, seconds = timed(top)
    result = {"top": (float(found.values[0]), seconds, f"{found.iterations} products")}
    found, seconds = timed(total)
    result["trace"] = (found.value, seconds, f"± {found.error:.2f}")
    found, seconds = timed(both)
    result["both"] = (found[1].value, seconds, "one operator")
    return result


def pyhessian(model: torch.nn.Module, x: torch.Tensor, t: torch.Tensor) -> dict[str, tuple[float, float, str]]:
    from pyhessian import hessian as peer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    def made(batch: int | None) -> Any:
        torch.manual_seed(0)
        if batch is None:
            return peer(model, F.cross_entropy, data=(x, t), cuda=False)
        loader = DataLoader(TensorDataset(x, t), batch_size=batch)
        return peer(model, F.cross_entropy, dataloader=loader, cuda=False)

    found: dict[str, tuple[float, float, str]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in (None, 500):
            way = "one batch" if batch is None else f"loader of {batch}"
            value, seconds = timed(lambda batch=batch: made(batch).eigenvalues(tol=TOLERANCE)[0][0])  # type: ignore[misc]
            if "top" not in found or seconds < found["top"][1]:
                found["top"] = (float(value), seconds, way)
            value, seconds = timed(lambda batch=batch: np.mean(made(batch).trace(maxIter=PROBES, tol=0)))  # type: ignore[misc]
            if "trace" not in found or seconds < found["trace"][1]:
                found["trace"] = (float(value), seconds, way)
            model.zero_grad()
    found["both"] = (found["trace"][0], found["top"][1] + found["trace"][1], "sum")
    return found


def curvlinops(model: torch.nn.Module, x: torch.Tensor, t: torch.Tensor) -> dict[str, tuple[float, float, str]]:
    from curvlinops import HessianLinearOperator, hutchinson_trace  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from scipy.sparse.linalg import eigsh

    def made() -> Any:
        weights = [value for value in model.parameters() if value.requires_grad]
        batches = list(zip(x.split(500), t.split(500), strict=True))
        loss = torch.nn.CrossEntropyLoss()
        return HessianLinearOperator(model, loss, weights, batches, check_deterministic=False)

    products = 0

    def top() -> float:
        nonlocal products
        operator = made().to_scipy()
        plain = operator._matvec

        def counted(vector: Any) -> Any:
            nonlocal products
            products += 1
            return plain(vector)

        operator._matvec = counted
        start = np.random.default_rng(0).standard_normal(operator.shape[0]).astype(np.float32)
        return float(eigsh(operator, k=1, which="LA", tol=TOLERANCE, v0=start, return_eigenvectors=False)[0])

    def total() -> float:
        torch.manual_seed(0)
        operator = made()
        return float(np.mean([float(hutchinson_trace(operator, num_matvecs=5)) for _ in range(PROBES // 5)]))

    value, seconds = timed(top)
    found = {"top": (value, seconds, f"{products} products")}
    value, seconds = timed(total)
    found["trace"] = (value, seconds, "5 probes at a time")
    found["both"] = (value, found["top"][1] + seconds, "sum")
    return found


def reference(model: torch.nn.Module, x: torch.Tensor, t: torch.Tensor, *, probes: int) -> tuple[float, float, float]:
    exact = top_eigenvalues(hessian(model.double(), x.double(), t.double()), tolerance=1e-8).values[0]
    total = trace(hessian(model.float(), x, t), probes=probes, tolerance=None, seed=1)
    return float(exact), total.value, total.error


def spectrum(generator: np.random.Generator, kind: str) -> np.ndarray[Any, Any]:
    """Eigenvalues whose largest are hard to tell apart, largest first."""
    size = int(generator.integers(30, 300))
    top = {
        "cluster": 1 - generator.uniform(0, 0.02, 8),
        "gaps": generator.choice([0.98, 0.95, 0.9]) ** np.arange(8),
        "multiple": np.repeat([1, 0.95, 0.9], generator.integers(1, 5, 3)),
        "one, many times": np.ones(int(generator.integers(1, 7))),
        "network": generator.exponential(1, 5),
    }[kind]
    bulk = generator.normal(0, 0.2, size) if kind == "network" else generator.uniform(0, 0.5, size)
    return np.sort(np.concatenate([top, bulk]))[::-1] * 10 ** generator.uniform(-2, 2)


def rotated(values: np.ndarray[Any, Any], generator: np.random.Generator) -> Operator:
    axes = np.linalg.qr(generator.standard_normal((len(values), len(values))))[0]
    matrix = (axes * values) @ axes.T
    whole = torch.from_numpy((matrix + matrix.T) / 2)
    return Operator(name="matrix", size=len(whole), dtype=whole.dtype, device=whole.device, product=lambda v: whole @ v)


def errors_hold(spectra: int) -> None:
    """How often the errors of eigenvalues and traces hold."""
    kinds = ("cluster", "gaps", "multiple", "one, many times", "network")
    row("what", "spectra", "errors held", "bar", "converged", "products, mean")
    row(*["---"] * 6)
    for count in (1, 5):
        generator = np.random.default_rng(count)
        held, converged, products = 0, 0, 0
        for number in range(spectra):
            values = spectrum(generator, kinds[number % len(kinds)])
            found = top_eigenvalues(rotated(values, generator), count, seed=number)
            held += bool((np.abs(found.values - values[:count]) <= found.errors + 1e-12 * values[0]).all())
            converged += found.converged
            products += found.iterations
        shares = (f"{held / spectra:.1%}", "99 %", f"{converged / spectra:.1%}", f"{products / spectra:.1f}")
        row(f"largest {count}, default settings", spectra, *shares)
    row("what", "traces", "95 % held", "bar", "mean z", "probes, mean")
    for tolerance in (0.05, 0.1):
        generator = np.random.default_rng(0)
        away, within, probes = [], 0, 0
        for number in range(spectra):
            values = spectrum(generator, "network")
            exact = values.sum()
            found_trace = trace(rotated(values, generator), probes=2000, tolerance=tolerance, seed=number)
            away.append((found_trace.value - exact) / found_trace.error)
            within += abs(away[-1]) <= t_quantile.ppf(0.975, found_trace.probes - 1)
            probes += found_trace.probes
        drift = f"{np.mean(away):+.3f} ± {np.std(away) / spectra**0.5:.3f}"
        row(
            f"trace, tolerance {tolerance}",
            spectra,
            f"{within / spectra:.1%}",
            "93 to 97 %",
            drift,
            f"{probes / spectra:.0f}",
        )


class MiniLM(torch.nn.Module):
    """An encoder of the shape of all-MiniLM-L6, and one logit for each class."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(30_522, 384), torch.nn.Embedding(512, 384)
        layer = torch.nn.TransformerEncoderLayer(384, 12, 1536, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.out = torch.nn.Linear(384, classes)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        read: torch.Tensor = self.layers(self.words(ids) + self.places(places))
        return self.out(read.mean(dim=1))  # type: ignore[no-any-return]


def texts(items: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(items, TOKENS) random tokens, and (items, 3) shares of ten votes that depend on how many are of which third."""
    generator = np.random.default_rng(0)
    ids = generator.integers(0, 3_000, (items, TOKENS))
    share = np.stack([(ids // 1_000 == k).mean(axis=1) for k in range(3)], axis=1) ** 8
    votes = np.stack([generator.multinomial(10, p / p.sum()) for p in share])
    return torch.from_numpy(ids).to(device), torch.from_numpy(votes / 10).float().to(device)


def transformer(items: int) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.random.fork_rng(devices=["cuda"] if device == "cuda" else []):
        torch.manual_seed(0)
        model = MiniLM(3).to(device)
        x, t = texts(items, device)
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
        for step in range(60):
            rows = torch.arange(step * 32, step * 32 + 32, device=device) % items
            optimiser.zero_grad()
            F.cross_entropy(model(x[rows]), t[rows]).backward()
            optimiser.step()
    model.eval()
    weights = sum(value.numel() for value in model.parameters())
    where = torch.cuda.get_device_name() if device == "cuda" else "a CPU"
    print(f"{weights:,} weights, {items:,} texts of {TOKENS} tokens, on {where}\n")
    with derivable(model):
        timed(lambda: ours(model, x[:8], t[:8]))
        found = {"dissensus": ours(model, x, t)}
        try:
            found["curvlinops"] = curvlinops(model, x, t)
        except ImportError as error:
            print(f"curvlinops is left out: {error}")
    row("library", "what", "seconds", "value", "ours is faster by", "how")
    row(*["---"] * 6)
    for what in ("top", "trace", "both"):
        for name, values in found.items():
            value, seconds, how = values[what]
            ratio = "" if name == "dissensus" else f"{seconds / found['dissensus'][what][1]:.2f}x (bar 1x)"
            row(name, what, f"{seconds:.2f}", "" if what == "both" else f"{value:.4f}", ratio, how)
    print(f"\neigenvalue and trace: {found['dissensus']['both'][1]:.1f} s (bar: 60 s on one H200)")


def peak(probes: int, items: int) -> float:
    """MB of memory at most, of a process of its own that takes the trace."""
    command = [sys.executable, __file__, "--trace-only", str(probes), "--items", str(items)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def trace_only(probes: int, items: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x, t = torch.randn(items, 1, 28, 28, generator=generator), torch.full((items, CLASSES), 1 / CLASSES)
    trace(hessian(build("lenet", (1, 28, 28), classes=CLASSES, seed=0).eval(), x, t), probes=probes, tolerance=None)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def row(*cells: Any) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="500 images")
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--errors", type=int, nargs="?", const=1000, help="how many spectra, 1000 if not given")
    parser.add_argument("--transformer", action="store_true", help="a transformer in place of the LeNet")
    parser.add_argument("--trace-only", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    items = 500 if given.quick else given.items
    if given.trace_only:
        trace_only(given.trace_only, items)
        return
    if given.errors:
        errors_hold(given.errors)
        return
    if given.transformer:
        transformer(1000 if given.items == 2000 else given.items)
        return
    cores = available_cores()
    print(
        f"torch {torch.__version__}, Python {platform.python_version()}, {given.threads} thread(s) on {cores} cores of "
        f"{platform.machine()}; {items:,} images\n"
    )
    x, t = digits(items)
    model = trained(x, t)
    # What PyTorch loads on first use belongs to nobody.
    timed(lambda: ours(model, x[:100], t[:100]))
    libraries = {"dissensus": ours, "PyHessian": pyhessian, "curvlinops": curvlinops}
    for name in ("PyHessian", "curvlinops"):
        try:
            libraries[name](model, x[:100], t[:100])
        except ImportError as error:
            print(f"{name} is left out: {error}")
            del libraries[name]
    found = {name: work(model, x, t) for name, work in libraries.items()}
    top, total, total_error = reference(model, x, t, probes=40 if given.quick else 400)
    print(f"reference: largest eigenvalue {top:.6f}; trace {total:.2f} ± {total_error:.2f}\n")
    row("library", "what", "seconds", "value", "relative error", "ours is faster by", "how")
    row(*["---"] * 7)
    for what, true in (("top", top), ("trace", total), ("both", None)):
        for name, values in found.items():
            value, seconds, how = values[what]
            ratio = "" if name == "dissensus" else f"{seconds / found['dissensus'][what][1]:.2f}x (bar 2x)"
            wrong = "" if true is None else f"{abs(value - true) / abs(true):.1e}"
            row(name, what, f"{seconds:.2f}", "" if true is None else f"{value:.4f}", wrong, ratio, how)
    few, many = (peak(probes, 500 if given.quick else items) for probes in (10, 100))
    print(f"\npeak memory of the trace: {few:.0f} MB with 10 probes, {many:.0f} MB with 100")


if __name__ == "__main__":
    main()
