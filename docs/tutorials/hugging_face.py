# %% [markdown]
# # Hugging Face
# The `Trainer` you know, with votes in place of labels. (`pip install "dissensus[hf]"`)
#
# Left to itself, a Hugging Face model that is given distributions as labels silently takes them for many yes-or-no questions
# (`multi_label_classification`). `dis.hf.Trainer` never lets that happen.
#
# ## Texts and votes
# So that nothing has to be downloaded, texts are made of three words, and the network is a very small BERT with random weights.
# With your own texts, the model and its tokenizer come from `from_pretrained`.

# %%
import datasets
import numpy as np
import torch
import transformers

import dissensus as dis

random = np.random.default_rng(0)
truth = random.dirichlet([0.5, 0.5, 0.5], 320)
tokens = np.array([random.choice(3, 12, p=shares) for shares in truth])
texts = datasets.Dataset.from_dict({"item": range(320), "input_ids": tokens.tolist()})
votes = dis.simulate_votes(truth, 5, annotators=20, seed=0, classes=["no", "perhaps", "yes"])
labels = dis.label(votes)

# %%
torch.manual_seed(0)
config = transformers.BertConfig(
    vocab_size=3, num_labels=3, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
)
model = transformers.BertForSequenceClassification(config)
settings = transformers.TrainingArguments(
    "checkpoints",
    per_device_train_batch_size=32,
    num_train_epochs=4,
    learning_rate=0.01,
    seed=0,
    use_cpu=True,
    report_to="none",
    save_strategy="no",
    disable_tqdm=True,
)

# %% [markdown]
# ## Three changed lines
# `labelled` brings the rows into the order of the labels and adds a column of distributions; the delivery says what the loss
# sees of them in each epoch; and the `Trainer` is ours.

# %%
rows = dis.hf.labelled(texts, labels)
train, held_out = rows.select(range(256)), rows.select(range(256, 320))
trainer = dis.hf.Trainer(
    model,
    settings,
    train_dataset=train,
    eval_dataset=held_out,
    delivery=dis.deliver("multipass", labels.take(np.arange(256)), seed=0),
)
trainer.train()
print(f"soft NLL on held-out texts: {trainer.evaluate()['eval_loss']:.3f} nats")

# %% [markdown]
# ## How close to people?

# %%
with torch.no_grad():
    said = model.eval()(torch.tensor(tokens[256:])).logits.softmax(dim=1).numpy()
dis.evaluate(labels.take(np.arange(256, 320)), said, classes=labels.classes, resamples=200)
