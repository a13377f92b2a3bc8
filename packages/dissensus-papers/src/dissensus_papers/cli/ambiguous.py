"""`dissensus curate ambiguous`: blends of two digits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dissensus.cli.options import JsonTo, Seed, not_standard_output
from dissensus.cli.printing import console, json_alone, next_step, note, plain, typed


def ambiguous(
    count: Annotated[int, typer.Option("-n", "--count", help="How many.", min=1)] = 2500,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="The .npz to write.", callback=not_standard_output),
    ] = Path("ambiguous-digits.npz"),
    digits: Annotated[
        Path | None,
        typer.Option(help="Folder of MNIST's idx files; by default in the data folder, else scikit-learn's digits."),
    ] = None,
    seed: Seed = 0,
    json: JsonTo = None,
) -> None:
    """Blends of two digits in the latent space of a VAE, each with a synthetic label distribution.

    Writes images, items, labels (the largest share), probabilities, parents and weight; every curate command reads it.
    """
    import numpy as np

    from dissensus.whole_file import whole_file
    from dissensus_papers.digits import ambiguous_digits, read_digits

    # Opened first: a place that cannot be written to is refused before half a minute of work.
    with whole_file(output) as part, part.open("wb") as file:
        read = read_digits(digits)
        note(f"from {read.note}")
        made = ambiguous_digits(read, count, seed=seed)
        np.savez_compressed(
            file,
            images=made.images,
            items=np.array([f"blend-{number}" for number in range(len(made))]),
            labels=made.winner,
            probabilities=made.probabilities,
            parents=made.parents,
            weight=made.weight,
        )
    numbers = {"items": len(made), "blends": made.candidates, "plausible": made.plausible}
    if json_alone(json, {"file": str(output), **numbers, "mean_entropy": float(made.entropy.mean())}):
        return
    console().print(
        f"{len(made):,} ambiguous digits in {plain(str(output))}, of {made.candidates:,} blends, {made.plausible:,} of "
        f"them plausible; mean entropy of the synthetic labels {made.entropy.mean():.2f} nats",
        soft_wrap=True,
    )
    next_step(typed("curate", "duplicates", output))
