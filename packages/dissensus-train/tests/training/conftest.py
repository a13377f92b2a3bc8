"""Training tests use one thread: small nets on two busy cores spend their time waiting for each other."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
