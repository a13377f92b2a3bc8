"""Duplicates among images and texts: what is found, what is wrongly found, and in what time, beside the peers.

    python benchmarks/curate.py                 # images, texts, and all of MNIST
    python benchmarks/curate.py --only images   # or: texts, mnist

Two sets of 20,000 are made from real items (environment variable DISSENSUS_DATA): 14,000 as they are and 6,000 changed
duplicates of some of them. Images are half MNIST and half CIFAR-10 (10 : 10 thousand), in their own sizes; texts are
the premises and hypotheses of ChaosNLI, the comments of POPQUORN and the words of VADER. **Every pair that was not
planted counts as wrong**, though CIFAR-10 holds real duplicates of its own. Peers: ImageHash's perceptual hash of 64
bits at the distance that is best for it in hindsight, and datasketch's MinHash LSH on lower-cased texts. Seconds are
of the wall clock; those of the processor stand beside them, since others may share the machine.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from dissensus.curate import find_duplicates
from dissensus.datasets import Source, read_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from dissensus.arrays import Names

Pairs = np.ndarray[Any, np.dtype[np.int64]]

ITEMS, PLANTED = 20_000, 6_000
BAR, SECONDS = 0.99, 60


# The images --------------------------------------------------------------------------------------------------------


def shifted(image: Any, generator: np.random.Generator) -> Any:
    """Moved by up to 3 pixels each way; what comes in repeats the edge."""
    steps = [(d, r) for d in range(-3, 4) for r in range(-3, 4) if d or r]
    down, right = steps[generator.integers(len(steps))]
    height, width = image.shape[1:]
    return np.pad(image, ((0, 0), (3, 3), (3, 3)), mode="edge")[:, 3 - down :, 3 - right :][:, :height, :width]


def encoded(image: Any, generator: np.random.Generator) -> Any:
    """Saved as JPEG of quality 50 to 95 and read again."""
    file = io.BytesIO()
    picture = Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0))
    picture.save(file, "JPEG", quality=int(generator.integers(50, 96)))
    read = np.asarray(Image.open(file))
    return read[None] if len(image) == 1 else read.transpose(2, 0, 1)


def brightened(image: Any, generator: np.random.Generator) -> Any:
    """Contrast times 0.7 to 1.3, brightness plus or minus up to 30, cut off at black and white."""
    changed = image * generator.uniform(0.7, 1.3) + generator.uniform(-30, 30)
    return np.clip(np.rint(changed), 0, 255).astype(np.uint8)


def all_three(image: Any, generator: np.random.Generator) -> Any:
    return encoded(shifted(brightened(image, generator), generator), generator)


IMAGE_CHANGES = {"shifted": shifted, "re-encoded": encoded, "brightness": brightened, "all three": all_three}


def made_images(data: Path) -> tuple[list[Source], Pairs, Names]:
    mnist = read_source(data / "mnist" / "train-images-idx3-ubyte.gz", name="mnist")
    cifar = read_source(data / "cifar-10-batches-bin" / "test_batch.bin", name="cifar")
    sources, pairs, kinds, begin = [], [], [], 0
    for number, source in enumerate((mnist, cifar)):
        chosen, planted, kind = planted_in(
            np.asarray(source.images), ITEMS // 2, PLANTED // 2, IMAGE_CHANGES, seed=number
        )
        images = np.stack(chosen)
        sources.append(Source(name=source.name, items=np.arange(len(images)).astype(np.str_), images=images))
        pairs.append(planted + begin)
        kinds.append(kind)
        begin += len(images)
    return sources, np.concatenate(pairs), np.concatenate(kinds)


# The texts ---------------------------------------------------------------------------------------------------------


def recased(text: str, generator: np.random.Generator) -> str:
    return (str.upper, str.title, str.swapcase, str.capitalize)[generator.integers(4)](text)


def repunctuated(text: str, generator: np.random.Generator) -> str:
    """Marks at the end taken away or added, commas gone, quotes around it."""
    bare = text.rstrip(".!? ").replace(",", "")
    return (bare, f"{bare}!!", f'"{bare}."', f"{bare} ...")[generator.integers(4)]


def respaced(text: str, generator: np.random.Generator) -> str:
    return f" {text.replace(' ', ('  ', chr(160), chr(10), chr(9))[generator.integers(4)])} "


def all_of_it(text: str, generator: np.random.Generator) -> str:
    return respaced(repunctuated(recased(text, generator), generator), generator)


TEXT_CHANGES = {"re-cased": recased, "re-punctuated": repunctuated, "white space": respaced, "all three": all_of_it}


def distinct_texts(data: Path) -> list[str]:
    """Real texts, each once; equal but for case and white space is not counted as two."""
    import polars as pl

    from dissensus.datasets import load, word_texts

    texts = pl.read_csv(data / "popquorn" / "offensiveness" / "raw_data.csv", infer_schema=False)["text"].to_list()
    for part in sorted((data / "chaosNLI_v1.0").glob("chaosNLI_*.jsonl")):
        for line in part.read_text(encoding="utf-8").splitlines():
            texts += [value for value in json.loads(line)["example"].values() if isinstance(value, str)]
    texts += [text for text in word_texts(load("words").items).tolist() if text.isalpha()]
    seen: dict[str, str] = {}
    for text in texts:
        if text and len(text.split()) + text.isalpha() > 1:
            seen.setdefault(" ".join(text.casefold().split()), text)
    return list(seen.values())


def made_texts(data: Path) -> tuple[list[Source], Pairs, Names]:
    base = distinct_texts(data)
    chosen, pairs, kinds = planted_in(base, ITEMS, PLANTED, TEXT_CHANGES, seed=2)
    texts = np.array(chosen, dtype=np.dtypes.StringDType())
    return [Source(name="texts", items=np.arange(len(texts)).astype(np.str_), texts=texts)], pairs, kinds


def planted_in(
    base: Any, items: int, planted: int, changes: dict[str, Callable[..., Any]], *, seed: int
) -> tuple[list[Any], Pairs, Names]:
    """Items, of which the last are changed duplicates of others; the planted pairs, and how each was changed."""
    generator = np.random.default_rng(seed)
    kept = [base[place] for place in generator.choice(len(base), items - planted, replace=False)]
    original = generator.choice(len(kept), planted, replace=False)
    kind = np.array(list(changes))[generator.integers(len(changes), size=planted)]
    duplicates = [changes[str(how)](kept[place], generator) for place, how in zip(original, kind, strict=True)]
    return [*kept, *duplicates], np.stack([original, len(kept) + np.arange(planted)], axis=1), kind


# Peers -------------------------------------------------------------------------------------------------------------


def image_hash(sources: list[Source], planted: Pairs) -> Pairs:
    """Pairs within the Hamming distance of perceptual hashes that is best for the planted pairs."""
    import imagehash  # type: ignore[import-untyped,import-not-found,unused-ignore]

    bits = []
    for source in sources:
        for image in np.asarray(source.images):
            picture = Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0))
            bits.append(imagehash.phash(picture).hash.reshape(-1))
    sign = np.where(np.stack(bits), 1, -1).astype(np.float32)
    blocks = []
    for start in range(0, len(sign), 2000):
        distance = (64 - sign[start : start + 2000] @ sign[start:].T) / 2
        one, other = np.nonzero(distance <= 12)
        after = other > one
        blocks.append(np.stack([one[after] + start, other[after] + start, distance[one[after], other[after]]], axis=1))
    near = np.concatenate(blocks).astype(np.int64)

    def score(limit: int) -> float:
        recall, precision, _ = scores(near[near[:, 2] <= limit, :2], planted)
        return 2 * recall * precision / max(recall + precision, 1e-9)

    return near[near[:, 2] <= max(range(13), key=score), :2]


def min_hash(sources: list[Source], planted: Pairs) -> Pairs:
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped,import-not-found,unused-ignore]

    index, pairs = MinHashLSH(threshold=0.9, num_perm=128), []
    for place, text in enumerate(np.asarray(sources[0].texts).tolist()):
        lower = " ".join(text.lower().split())
        made = MinHash(num_perm=128)
        made.update_batch([lower[k : k + 5].encode() for k in range(max(len(lower) - 4, 1))])
        pairs += [(other, place) for other in index.query(made)]
        index.insert(place, made)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


# Scores ------------------------------------------------------------------------------------------------------------


def scores(found: Pairs, planted: Pairs) -> tuple[float, float, Any]:
    """Recall, precision, and (planted,) whether each was found."""

    def code(pairs: Any) -> Any:
        return pairs.min(axis=1) * 1_000_000 + pairs.max(axis=1)

    hit = np.isin(code(planted), code(found))
    return float(hit.mean()), float(np.isin(code(found), code(planted)).mean()) if len(found) else 1.0, hit


def compare(title: str, made: tuple[list[Source], Pairs, Names], peer: str, rival: Callable[..., Pairs]) -> bool:
    sources, planted, kinds = made
    size = sum(len(source) for source in sources)
    sys.stdout.write(f"{title}: {size:,} items, {len(planted):,} planted duplicates\n")
    taken = {}
    met = True
    for name in ("dissensus", peer):
        wall, processor = time.perf_counter(), time.process_time()
        if name == peer:
            pairs = rival(sources, planted)
        else:
            found = find_duplicates(sources)
            pairs = np.stack([found.one, found.other], axis=1)
        taken[name] = time.perf_counter() - wall
        used = time.process_time() - processor
        recall, precision, hit = scores(pairs, planted)
        by_kind = ", ".join(f"{kind} {hit[kinds == kind].mean():.4f}" for kind in np.unique(kinds).tolist())
        sys.stdout.write(
            f"  {name:<12} recall {recall:.4f} ({by_kind})\n{'':15}precision {precision:.4f}, "
            f"{taken[name]:.1f} s ({used:.1f} s of processor)\n"
        )
        if name != peer:
            met = recall >= BAR and precision >= BAR
    sys.stdout.write(f"  {peer} takes {taken[peer] / taken['dissensus']:.1f} times as long; bar: both >= {BAR}: ")
    sys.stdout.write("met\n\n" if met else "MISSED\n\n")
    return met


def all_of_mnist(data: Path) -> bool:
    parts = [
        read_source(data / "mnist" / f"{part}-images-idx3-ubyte.gz", name=name)
        for part, name in (("train", "train"), ("t10k", "test"))
    ]
    wall, processor = time.perf_counter(), time.process_time()
    found = find_duplicates(parts)
    seconds, used = time.perf_counter() - wall, time.process_time() - processor
    sys.stdout.write(
        f"MNIST: {len(found.items):,} images in {seconds:.1f} s ({used:.1f} s of processor); {int(found.exact.sum())} "
        f"exact and {int((~found.exact).sum())} near pairs; bar: under {SECONDS} s: "
        f"{'met' if seconds < SECONDS else 'MISSED'}\n"
    )
    return seconds < SECONDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["images", "texts", "mnist"])
    only = parser.parse_args().only
    folder = os.environ.get("DISSENSUS_DATA")
    if not folder:
        sys.exit("DISSENSUS_DATA is not set: no real data here")
    data = Path(folder)
    met = []
    if only in (None, "images"):
        met.append(compare("images", made_images(data), "ImageHash", image_hash))
    if only in (None, "texts"):
        met.append(compare("texts", made_texts(data), "datasketch", min_hash))
    if only in (None, "mnist"):
        met.append(all_of_mnist(data))
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
