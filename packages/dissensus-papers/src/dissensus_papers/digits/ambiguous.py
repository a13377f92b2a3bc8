"""Ambiguous digits: blends of two digits in the latent space of a VAE, with synthetic label distributions.

Rebuilt after Ambiguous-MNIST (Mukhoti, Kirsch, van Amersfoort, Torr, Gal 2021, Deep Deterministic Uncertainty): an
image is the decoded linear combination of the codes of two digits; a classifier of digits labels it by its softmax;
images on which an ensemble of others contradicts itself (mutual information) are junk and left out; the rest are
stratified by class and softmax entropy. Networks, sizes and the threshold of the filter are ours: these are not their
images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from scipy.special import entr
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus.errors import InputError
from dissensus.randomness import Purpose, stream
from dissensus_papers.digits.digits import SIDE
from dissensus_papers.digits.ensembles import grey, probabilities, train_member

if TYPE_CHECKING:
    from dissensus.arrays import Codes, Floats, Ints, Table
    from dissensus_papers.digits.digits import Digits, Pixels

ENTROPY_BINS: Final = 5
"""Strata of equal width between no entropy and the highest of the candidates, for each class."""

VAE_BATCH, HIDDEN, LATENT = 128, 400, 10
"""Images that the VAE learns from at once, the width of its hidden layers, and the dimensions of a code."""


@dataclass(frozen=True, kw_only=True)
class Blending:
    """How ambiguous digits are made.

    Attributes:
        vae_images: the most digits that the VAE is fitted to; the blended digits are drawn from the same ones.
        vae_batches: batches that it learns from.
        members: classifiers (LeNet) in the ensemble that finds junk; one more is the labeller.
        member_images: the most digits that each of them is trained on; each has its own draw.
        labeller_images: the most digits that the labeller is trained on.
        member_batches: batches that each classifier learns from.
        candidates: blends made for each image that is asked for.
        mutual_information: the most, in nats, that an image may have.
    """

    vae_images: int = 12_000
    vae_batches: int = 1_400
    members: int = 5
    member_images: int = 6_000
    labeller_images: int = 1_000
    member_batches: int = 375
    candidates: int = 8
    mutual_information: float = 0.2


@dataclass(frozen=True, eq=False, kw_only=True)
class AmbiguousDigits:
    """Blended digits with their synthetic labels.

    Attributes:
        images: (images, 28, 28) grey values.
        probabilities: (images, 10) the synthetic label distributions: the labeller's softmax.
        entropy: (images,) of those, in nats.
        mutual_information: (images,) how far the ensemble contradicts itself, in nats: H(mean q) - mean H(q).
        parents: (images, 2) the labels of the two blended digits.
        weight: (images,) of the first parent, 0 to 1.
        candidates: how many blends were made.
        plausible: how many of them passed the filter.
    """

    images: Pixels
    probabilities: Table
    entropy: Floats
    mutual_information: Floats
    parents: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    weight: Floats
    candidates: int
    plausible: int

    def __len__(self) -> int:
        return self.images.shape[0]

    @property
    def winner(self) -> Ints:
        """(images,) the class with the largest share."""
        return np.asarray(self.probabilities.argmax(axis=1))


def ambiguous_digits(digits: Digits, n: int, *, seed: int, blending: Blending | None = None) -> AmbiguousDigits:
    """Make n ambiguous digits; about half a minute for 2,500 on one CPU core at the default settings."""
    how = Blending() if blending is None else blending
    generator = stream(seed, Purpose.MIXING)
    ground = digits.take(_draw(len(digits), how.vae_images, generator))
    vae = train_vae(ground.images, seed=seed, batches=how.vae_batches)
    members = []
    for member in range(how.members + 1):
        own = digits.take(_draw(len(digits), how.member_images if member else how.labeller_images, generator))
        about: dict[str, Any] = {"model": "lenet", "batches": how.member_batches, "seed": seed * 1000 + member}
        members.append(train_member(grey(own.images), own.labels, **about))
    # As many pairs as are wanted: those of one class, about a tenth, are left out.
    pair = generator.integers(0, len(ground), (2, how.candidates * n))
    first, second = pair[:, ground.labels[pair[0]] != ground.labels[pair[1]]]
    weight = generator.random(len(first))
    codes = encode(vae, ground.images)
    images = decode(vae, weight[:, None] * codes[first] + (1 - weight[:, None]) * codes[second], (SIDE, SIDE))
    synthetic, *others = probabilities(members, grey(images))
    ensemble = np.stack(others)
    entropy = entr(synthetic).sum(axis=1)
    information = entr(ensemble.mean(axis=0)).sum(axis=1) - entr(ensemble).sum(axis=2).mean(axis=0)
    plausible = np.flatnonzero(information <= how.mutual_information)
    if len(plausible) < n:
        raise InputError(
            f"ambiguous digits: {len(plausible):,} of {len(images):,} blends have a mutual information of at most "
            f"{how.mutual_information:g} nats and {n:,} are asked for; make more candidates, or ask for fewer"
        )
    kept = plausible[stratified(synthetic[plausible].argmax(axis=1), entropy[plausible], n, generator=generator)]
    return AmbiguousDigits(
        images=images[kept],
        probabilities=synthetic[kept],
        entropy=entropy[kept],
        mutual_information=information[kept],
        parents=ground.labels[np.stack([first, second], axis=1)[kept]],
        weight=weight[kept],
        candidates=len(images),
        plausible=len(plausible),
    )


def stratified(
    classes: Codes | Ints, entropy: Floats, n: int, *, generator: np.random.Generator, bins: int = ENTROPY_BINS
) -> Ints:
    """(n,) rows, as evenly as they allow over every class and bin of entropy; a poor cell gives all that it has."""
    top = max(float(entropy.max(initial=0.0)), 1e-12)
    cell = classes * bins + np.minimum((bins * entropy / top).astype(np.int64), bins - 1)
    order = np.lexsort((generator.random(len(cell)), cell))
    size = np.bincount(cell)
    turn = np.empty(len(cell), dtype=np.int64)
    turn[order] = np.arange(len(cell)) - np.repeat(np.cumsum(size) - size, size)
    # Every cell gives its first, then every cell its second, until there are n.
    return np.sort(np.lexsort((generator.random(len(cell)), turn))[:n])


def _draw(size: int, n: int, generator: np.random.Generator) -> Ints:
    return generator.permutation(size)[:n]


class Vae(nn.Module):
    """A variational autoencoder (Kingma, Welling 2014): one hidden layer each way, Bernoulli pixels, normal codes."""

    def __init__(self, pixels: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, pixels))

    def loss(self, x: Tensor, noise: Tensor) -> Tensor:
        """Minus the evidence lower bound, nats per image: reconstruction plus KL(code || prior)."""
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        logits = self.decoder(mean + noise * (0.5 * log_variance).exp())
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        divergence = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum()
        bound: Tensor = (reconstruction + divergence) / x.shape[0]
        return bound


def train_vae(images: Pixels, *, seed: int, batches: int = 1400) -> Vae:
    """Fit a VAE to images by Adam (1e-3, batches of 128); about ten seconds on one CPU core.

    It learns from `batches` batches at least: the last pass over the images is finished.
    """
    x = _pixels(images)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(seed, Purpose.WEIGHTS).integers(2**62)))
        vae = Vae(x.shape[1], HIDDEN, LATENT)
    optimiser = torch.optim.Adam(vae.parameters(), lr=1e-3, fused=True)
    for epoch in range(-(-batches * VAE_BATCH // len(x))):
        order = torch.from_numpy(stream(seed, Purpose.ORDER, epoch).permutation(len(x)))
        noise = torch.from_numpy(stream(seed, Purpose.LAYERS, epoch).standard_normal((len(x), LATENT), np.float32))
        for rows in order.split(VAE_BATCH):
            optimiser.zero_grad(set_to_none=True)
            vae.loss(x[rows], noise[rows]).backward()
            optimiser.step()
    return vae.eval()


def _pixels(images: Pixels) -> Tensor:
    return torch.from_numpy(images.reshape(len(images), -1)).float() / 255


def encode(vae: Vae, images: Pixels) -> Table:
    """(images, latent) the mean of each image's code."""
    with torch.no_grad():
        mean, _ = vae.encoder(_pixels(images)).chunk(2, dim=1)
    return np.asarray(mean.numpy(), dtype=np.float64)


def decode(vae: Vae, codes: Table, shape: tuple[int, int]) -> Pixels:
    """(codes, height, width) the mean image of each code, in grey values."""
    with torch.no_grad():
        pixels: np.ndarray[Any, Any] = torch.sigmoid(vae.decoder(torch.from_numpy(codes).float())).numpy()
    return np.round(255 * pixels).astype(np.uint8).reshape(-1, *shape)
