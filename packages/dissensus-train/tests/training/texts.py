"""A tiny transformer made on the spot, and texts whose words say how people vote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dissensus.items.shown import Items
from dissensus.labels.schemes import frequency
from dissensus.votes.simulate import simulate_votes
from dissensus_train.training.data import TrainingData, split_items

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ["good", "bad", "plain", "odd", *(f"filler{number}" for number in range(20))]


def tiny_transformer(folder: Path, *, dropout: float = 0.1) -> Path:
    """A BERT of two narrow layers with fresh weights, and a tokeniser that knows `WORDS`."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    known = {word: number for number, word in enumerate([*special, *WORDS])}
    tokeniser = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokeniser.pre_tokenizer = pre_tokenizers.Whitespace()
    tokeniser.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(
        tokenizer_object=tokeniser, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **named
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(known),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def texts(items: int = 90, *, pairs: bool = False) -> TrainingData:
    """Texts of 3 to 26 words, of which the first three say whether people vote yes."""
    generator = np.random.default_rng(0)
    kind = generator.integers(0, 4, items)
    truth = np.array([[0.05, 0.95], [0.95, 0.05], [0.5, 0.5], [0.7, 0.3]])[kind]
    votes = simulate_votes(truth, 5, annotators=10, seed=0)
    labels = frequency(votes)
    written = [
        " ".join([*[WORDS[each]] * 3, *generator.choice(WORDS[4:], generator.integers(0, 24))])
        for each in kind.tolist()
    ]
    columns = [written, [WORDS[5]] * items] if pairs else [written]
    return TrainingData(
        name="texts",
        features=np.zeros((items, 0), dtype=np.float32),
        human=labels,
        targets={"frequency": labels},
        splits=split_items(labels.majority().label, {"train": 0.6, "validation": 0.2, "test": 0.2}, seed=0),
        votes=votes,
        items=Items(
            names=np.arange(items), texts=tuple(np.array(column, dtype=np.dtypes.StringDType()) for column in columns)
        ),
        normalise=False,
    )
