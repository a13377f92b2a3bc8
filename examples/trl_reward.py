"""TRL's RewardTrainer on votes about pairs of answers; lines with a number are the ones that change."""

import datasets
import numpy as np
import tokenizers
import transformers
import trl

import dissensus as dis

words = np.random.default_rng(0).integers(2, 9, (320, 2, 12))  # of a left and a right answer; high ones are liked
apart = (words[:, 1] - words[:, 0]).mean(axis=1, keepdims=True)
truth = np.diff(1 / (1 + np.exp(apart - [-np.inf, -0.5, 0.5, np.inf])), axis=1)  # left, tie, right
labels = dis.label(dis.simulate_votes(truth, 5, annotators=20, seed=0))
left, right = ([" ".join(map(str, answer)) for answer in words[:, side]] for side in (0, 1))
pairs = datasets.Dataset.from_dict({"item": range(320), "chosen": left, "rejected": right})  # TRL's names of the sides
vocabulary = tokenizers.Tokenizer(tokenizers.models.WordLevel({str(n): n for n in range(9)}, unk_token="0"))
vocabulary.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
tokeniser = transformers.PreTrainedTokenizerFast(tokenizer_object=vocabulary, pad_token="0", eos_token="1")
transformers.set_seed(0)
size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
model = transformers.LlamaForSequenceClassification(transformers.LlamaConfig(vocab_size=9, num_labels=1, **size))
settings = trl.RewardConfig(
    "rewards", per_device_train_batch_size=32, num_train_epochs=4, learning_rate=0.01, seed=0, use_cpu=True, bf16=False,
    lr_scheduler_type="constant", max_grad_norm=0, report_to="none", save_strategy="no", disable_tqdm=True,
)  # fmt: skip
Trainer = type("Trainer", (dis.hf.Delivering, trl.RewardTrainer), {})  # 1
how = {"train_dataset": dis.hf.labelled(pairs, labels), "delivery": dis.deliver("multipass", labels)}  # 2
trainer = Trainer(model, settings, processing_class=tokeniser, **how, loss=dis.hf.RewardLoss(classes=3))  # 3
trainer.train()
