"""Learn from annotator disagreement instead of averaging it away.

Votes:     read_votes, write_votes, votes_from_counts, inspect, agreement, load, simulate_votes, simulate_responses,
           subsample, count_votes, swap_sides, Votes
Labels:    label, expand (to rows with weights, for scikit-learn), LabelDistribution
Training:  deliver, loader, losses, hf, lightning, sklearn; whole studies: run, open_study, load_model
Scores:    evaluate, metrics, report, plot; where a run ended: basins
Questions: plan (how many items and votes?), stand_in (may a model take a person's place?), ranking (who wins?)
Together:  combine (predictions and votes), plan_with_model (how many votes beside it?), prediction_sets (which classes
           hold a person's answer?), defer (when to ask people)

What takes votes takes whatever `read_votes` reads, too: a frame, a list of dictionaries, a path.

Errors that a user can cause are `InputError`. Each name is loaded when it is first used, so that `import dissensus`
costs next to nothing; those that train are in `dissensus-train`, and say how to install it where it is missing.

Examples:
    >>> import numpy as np
    >>> import dissensus as dis
    >>> votes = dis.simulate_votes(np.full((4, 2), 0.5), 3, annotators=5, seed=0)
    >>> votes, dis.label(votes)
    (Votes(12 votes, 4 items, 2 classes, 5 annotators), LabelDistribution(4 items, 2 classes, frequency))
    >>> dis.__version__.split(".")[0]
    '0'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus import plot as plot
    from dissensus.datasets import load as load
    from dissensus.errors import InputError as InputError
    from dissensus.evaluation import evaluate as evaluate
    from dissensus.evaluation import metrics as metrics
    from dissensus.evaluation.stand_in import stand_in as stand_in
    from dissensus.evaluation.who_wins import ranking as ranking
    from dissensus.labels import LabelDistribution as LabelDistribution
    from dissensus.labels import expand as expand
    from dissensus.labels import label as label
    from dissensus.planning import plan as plan
    from dissensus.planning import plan_with_model as plan_with_model
    from dissensus.report.writing import report as report
    from dissensus.together import combine as combine
    from dissensus.together import defer as defer
    from dissensus.together import prediction_sets as prediction_sets
    from dissensus.version import __version__ as __version__
    from dissensus.votes import Votes as Votes
    from dissensus.votes import count_votes as count_votes
    from dissensus.votes import inspect as inspect
    from dissensus.votes import read_votes as read_votes
    from dissensus.votes import simulate_responses as simulate_responses
    from dissensus.votes import simulate_votes as simulate_votes
    from dissensus.votes import subsample as subsample
    from dissensus.votes import swap_sides as swap_sides
    from dissensus.votes import votes_from_counts as votes_from_counts
    from dissensus.votes import write_votes as write_votes
    from dissensus.votes.agreement import agreement as agreement
    from dissensus_train import basins as basins
    from dissensus_train.bundles import load_model as load_model
    from dissensus_train.delivery import deliver as deliver
    from dissensus_train.integrations import hf as hf
    from dissensus_train.integrations import lightning as lightning
    from dissensus_train.integrations import loader as loader
    from dissensus_train.integrations import sklearn as sklearn
    from dissensus_train.studies import open_study as open_study
    from dissensus_train.studies import run as run
    from dissensus_train.training import losses as losses

__getattr__, __dir__ = lazy_names(
    __name__,
    guesses={
        "dis.label(votes)": "soft_labels soft_label SoftLabels label_distribution labels aggregate",
        'dis.label(votes, "majority")': "majority majority_vote MajorityVote",
        'dis.label(votes, "dawid-skene")': "dawid_skene DawidSkene dawidskene",
        'dis.label(votes, "mace")': "mace MACE",
        'dis.label(votes, "glad")': "glad GLAD",
        'dis.agreement(votes)["krippendorff_alpha_nominal"]': "krippendorff_alpha krippendorff alpha cohen_kappa",
        'dis.agreement(votes)["fleiss_kappa"]': "fleiss_kappa kappa",
        "dis.losses.cross_entropy(logits, targets)": "loss soft_cross_entropy SoftCrossEntropy SoftCrossEntropyLoss "
        "CrossEntropyLoss soft_loss SoftLabelLoss",
        "dis.metrics.kl(human, model)": "kl kl_divergence metric",
        "dis.evaluate(votes, predictions)": "score scores evaluation compare",
        "dis.read_votes(source)": "read_csv load_votes from_pandas from_dataframe",
        "dis.votes_from_counts(counts, classes=names)": "counts from_counts",
    },
)
