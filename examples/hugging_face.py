"""The Trainer of Hugging Face on votes; lines with a number are the ones that change."""

import datasets
import numpy as np
import torch
import transformers

import dissensus as dis

random = np.random.default_rng(0)
truth = random.dirichlet([0.5, 0.5, 0.5], 320)  # what people think of 320 texts, and which words they hold
words = np.array([random.choice(3, 12, p=shares) for shares in truth])
texts = datasets.Dataset.from_dict({"item": range(320), "input_ids": words.tolist(), "label": truth.argmax(axis=1)})
labels = dis.label(dis.simulate_votes(truth, 5, annotators=20, seed=0))

torch.manual_seed(0)
no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
config = transformers.BertConfig(vocab_size=3, num_labels=3, **size, **no_dropout)
model = transformers.BertForSequenceClassification(config)
settings = transformers.TrainingArguments(
    "checkpoints", per_device_train_batch_size=32, num_train_epochs=4, learning_rate=0.01, seed=0, use_cpu=True,
    lr_scheduler_type="constant", max_grad_norm=0, report_to="none", save_strategy="no", disable_tqdm=True,
)  # fmt: skip
rows = dis.hf.labelled(texts, labels)  # 1
delivery = dis.deliver("multipass", labels)  # 2
trainer = dis.hf.Trainer(model, settings, train_dataset=rows, eval_dataset=rows, delivery=delivery)  # 3
trainer.train()
print(f"soft NLL: {trainer.evaluate()['eval_loss']:.3f} nats")
