"""A small variational autoencoder of grey images (Kingma, Welling 2014): codes that can be blended and decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dissensus.randomness import Purpose, stream

if TYPE_CHECKING:
    from dissensus.arrays import Table
    from dissensus_papers.digits.digits import Pixels

BATCH: Final = 128


class Vae(nn.Module):
    """One hidden layer each way; pixels are Bernoulli, the prior of codes is standard normal."""

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


def train_vae(images: Pixels, *, seed: int, latent: int = 10, hidden: int = 400, batches: int = 1400) -> Vae:
    """Fit a VAE to images by Adam (1e-3, batches of 128); about ten seconds on one CPU core.

    Args:
        images: (images, height, width) grey values.
        seed: of weights, batches and codes.
        latent: dimensions of a code.
        hidden: width of the hidden layers.
        batches: the least number of batches to learn from; the last pass over the images is finished.
    """
    x = torch.from_numpy(images.reshape(len(images), -1)).float() / 255
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream(seed, Purpose.WEIGHTS).integers(2**62)))
        vae = Vae(x.shape[1], hidden, latent)
    optimiser = torch.optim.Adam(vae.parameters(), lr=1e-3, fused=True)
    for epoch in range(-(-batches * BATCH // len(x))):
        order = torch.from_numpy(stream(seed, Purpose.ORDER, epoch).permutation(len(x)))
        noise = torch.from_numpy(stream(seed, Purpose.LAYERS, epoch).standard_normal((len(x), latent), np.float32))
        for rows in order.split(BATCH):
            optimiser.zero_grad(set_to_none=True)
            vae.loss(x[rows], noise[rows]).backward()
            optimiser.step()
    return vae.eval()


def encode(vae: Vae, images: Pixels) -> Table:
    """(images, latent) the mean of each image's code."""
    x = torch.from_numpy(images.reshape(len(images), -1)).float() / 255
    with torch.no_grad():
        mean, _ = vae.encoder(x).chunk(2, dim=1)
    return np.asarray(mean.numpy(), dtype=np.float64)


def decode(vae: Vae, codes: Table, shape: tuple[int, int]) -> Pixels:
    """(codes, height, width) the mean image of each code, in grey values."""
    with torch.no_grad():
        pixels: np.ndarray[Any, Any] = torch.sigmoid(vae.decoder(torch.from_numpy(codes).float())).numpy()
    return np.round(255 * pixels).astype(np.uint8).reshape(-1, *shape)
