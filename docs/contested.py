"""Draws contested.svg, the README's picture, from the runs of `dissensus demo`.

    dissensus demo --folder demo && python docs/contested.py demo

Which words it shows is a rule, not a choice: of the tenth of the held-out words that people disagreed on most, the
three whose gain (KL from people, majority-trained minus soft-trained) lies nearest to the median gain of that tenth.
"""

from __future__ import annotations

import sys
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl

from dissensus.evaluation.metrics import kl
from dissensus_train.studies import open_study, read_study, score_study

SHOWN = {"people": "ten people", "majority": "trained on the majority", "soft": "trained on all votes"}


def main(folder: Path) -> None:
    """Read the runs, choose the words and draw them."""
    scored = score_study(open_study(read_study("words"), folder / "runs"), resamples=2)
    data = scored.opened.data
    human = data.human.take(data.splits["test"])
    models = {name: scored.systems[name].mean("test") for name in ("majority", "soft")}
    gain = kl(human.probabilities, models["majority"]) - kl(human.probabilities, models["soft"])
    contested = np.argsort(-human.entropy, kind="stable")[: len(human) // 10]
    typical = np.abs(gain[contested] - np.median(gain[contested]))
    chosen = contested[np.argsort(typical, kind="stable")[:3]]
    rows = [
        {"word": str(human.items[item]), "who": told, "class": name, "place": place, "share": float(shares[place])}
        for item in chosen
        for who, told in SHOWN.items()
        for shares in [human.probabilities[item] if who == "people" else models[who][item]]
        for place, name in enumerate(human.classes)
    ]
    for one, each in zip(chosen, gain[chosen], strict=True):
        print(human.items[one], f"gain {each:.3f} nats")
    print(f"median of the tenth {np.median(gain[contested]):.3f}; above 0 for {np.mean(gain[contested] > 0):.0%}")
    bars = (
        alt.Chart(pl.DataFrame(rows))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X("share:Q", title=None, axis=alt.Axis(format="%", tickCount=3), scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("class:N", title=None, sort=list(human.classes)),
            color=alt.Color(
                "who:N",
                legend=None,
                scale=alt.Scale(domain=list(SHOWN.values()), range=["#3b4252", "#c0392b", "#1f7a8c"]),
            ),
        )
        .properties(width=190, height=74)
        .facet(
            row=alt.Row("word:N", title=None, header=alt.Header(labelFontSize=14, labelAngle=0, labelAlign="left")),
            column=alt.Column("who:N", title=None, sort=list(SHOWN.values()), header=alt.Header(labelFontSize=14)),
        )
        .configure(background="white")
        .configure_view(stroke=None)
    )
    bars.save(Path(__file__).with_name("contested.svg"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
