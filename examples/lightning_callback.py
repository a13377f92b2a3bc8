"""Lightning on votes, with every item's probabilities recorded; lines with a number are the ones that change."""

import lightning
import numpy as np
import torch

import dissensus as dis
from dissensus_train.integrations import Recorder

truth = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 320)  # what people think of 320 items
x = torch.from_numpy(np.log(truth + 0.05)).float()
labels = dis.label(dis.simulate_votes(truth, 5, annotators=20, seed=0))


class Linear(torch.nn.Linear, lightning.LightningModule):
    def training_step(self, batch, _):
        inputs, target, item = batch
        return dis.losses.cross_entropy(self(inputs), target).mean()  # 1

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0)
model = Linear(3, 3)
batches = dis.loader(x, dis.deliver("sls", labels), batch_size=32)  # 2
callback = dis.lightning.DeliveryCallback(batches, recorder := Recorder(labels.items))  # 3
lightning.Trainer(max_epochs=15, accelerator="cpu", logger=False, callbacks=[callback]).fit(model, batches)
soft_nll = -(labels.probabilities * np.log(recorder.dynamics["train"][-1].astype(float))).sum(axis=1).mean()
print(f"soft NLL after the last of {recorder.ended} epochs: {soft_nll:.3f} nats")
