"""What to cite: dissensus, and the papers behind the methods that a page uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dissensus.version import __version__

if TYPE_CHECKING:
    from dissensus.report.chapters import Added
    from dissensus.report.subject import Subject

PAPERS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "baan2022stop": (
        "inproceedings",
        {
            "title": "Stop Measuring Calibration When Humans Disagree",
            "author": "Baan, Joris and Aziz, Wilker and Plank, Barbara and Fern{\\'a}ndez, Raquel",
            "booktitle": "Proceedings of the 2022 Conference on Empirical Methods in Natural Language Processing",
            "year": "2022",
        },
    ),
    "brier1950verification": (
        "article",
        {
            "title": "Verification of Forecasts Expressed in Terms of Probability",
            "author": "Brier, Glenn W.",
            "journal": "Monthly Weather Review",
            "volume": "78",
            "number": "1",
            "pages": "1--3",
            "year": "1950",
        },
    ),
    "guo2017calibration": (
        "inproceedings",
        {
            "title": "On Calibration of Modern Neural Networks",
            "author": "Guo, Chuan and Pleiss, Geoff and Sun, Yu and Weinberger, Kilian Q.",
            "booktitle": "Proceedings of the 34th International Conference on Machine Learning",
            "year": "2017",
        },
    ),
    "holm1979simple": (
        "article",
        {
            "title": "A Simple Sequentially Rejective Multiple Test Procedure",
            "author": "Holm, Sture",
            "journal": "Scandinavian Journal of Statistics",
            "volume": "6",
            "number": "2",
            "pages": "65--70",
            "year": "1979",
        },
    ),
    "hutto2014vader": (
        "inproceedings",
        {
            "title": "{VADER}: A Parsimonious Rule-Based Model for Sentiment Analysis of Social Media Text",
            "author": "Hutto, C. J. and Gilbert, Eric",
            "booktitle": "Proceedings of the Eighth International AAAI Conference on Weblogs and Social Media",
            "year": "2014",
        },
    ),
    "kullback1951information": (
        "article",
        {
            "title": "On Information and Sufficiency",
            "author": "Kullback, S. and Leibler, R. A.",
            "journal": "The Annals of Mathematical Statistics",
            "volume": "22",
            "number": "1",
            "pages": "79--86",
            "year": "1951",
        },
    ),
    "nixon2019measuring": (
        "inproceedings",
        {
            "title": "Measuring Calibration in Deep Learning",
            "author": "Nixon, Jeremy and Dusenberry, Michael W. and Zhang, Linchuan and Jerfel, Ghassen and "
            "Tran, Dustin",
            "booktitle": "IEEE/CVF Conference on Computer Vision and Pattern Recognition Workshops",
            "year": "2019",
        },
    ),
    "peterson2019human": (
        "inproceedings",
        {
            "title": "Human Uncertainty Makes Classification More Robust",
            "author": "Peterson, Joshua C. and Battleday, Ruairidh M. and Griffiths, Thomas L. and Russakovsky, Olga",
            "booktitle": "Proceedings of the IEEE/CVF International Conference on Computer Vision",
            "year": "2019",
        },
    ),
    "sheng2008get": (
        "inproceedings",
        {
            "title": "Get Another Label? {Improving} Data Quality and Data Mining Using Multiple, Noisy Labelers",
            "author": "Sheng, Victor S. and Provost, Foster and Ipeirotis, Panagiotis G.",
            "booktitle": "Proceedings of the 14th ACM SIGKDD International Conference on Knowledge Discovery and Data "
            "Mining",
            "year": "2008",
        },
    ),
    "swayamdipta2020dataset": (
        "inproceedings",
        {
            "title": "Dataset Cartography: Mapping and Diagnosing Datasets with Training Dynamics",
            "author": "Swayamdipta, Swabha and Schwartz, Roy and Lourie, Nicholas and Wang, Yizhong and Hajishirzi, "
            "Hannaneh and Smith, Noah A. and Choi, Yejin",
            "booktitle": "Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing",
            "year": "2020",
        },
    ),
    "toneva2019empirical": (
        "inproceedings",
        {
            "title": "An Empirical Study of Example Forgetting during Deep Neural Network Learning",
            "author": "Toneva, Mariya and Sordoni, Alessandro and Tachet des Combes, Remi and Trischler, Adam and "
            "Bengio, Yoshua and Gordon, Geoffrey J.",
            "booktitle": "International Conference on Learning Representations",
            "year": "2019",
        },
    ),
    "zhang2018mixup": (
        "inproceedings",
        {
            "title": "mixup: Beyond Empirical Risk Minimization",
            "author": "Zhang, Hongyi and Cisse, Moustapha and Dauphin, Yann N. and Lopez-Paz, David",
            "booktitle": "International Conference on Learning Representations",
            "year": "2018",
        },
    ),
}
"""By key, kind and fields of the papers that are cited."""

OF_METRICS: Final = {
    "kl": "kullback1951information",
    "brier": "brier1950verification",
    "abs_entce": "baan2022stop",
    "entce": "baan2022stop",
    "tvd": "baan2022stop",
    "rank_cs": "baan2022stop",
    "ece": "guo2017calibration",
    "ece_equal_mass": "nixon2019measuring",
    "second_best_accuracy": "peterson2019human",
}
OF_DELIVERIES: Final = {"repeated": "sheng2008get", "mixup": "zhang2018mixup"}


def bibliography(subject: Subject, added: Added) -> str:
    """BibTeX of dissensus, and of the papers behind the metrics, deliveries and data of a page."""
    used = [OF_METRICS[name] for name in subject.evaluation.metrics if name in OF_METRICS]
    used += [OF_DELIVERIES[name] for name in subject.deliveries.values() if name in OF_DELIVERIES]
    if any("temperature" in name for name in subject.evaluation.baselines):
        used.append("guo2017calibration")
    if len(subject.systems) > 1:
        used.append("holm1979simple")
    used += added.cited
    own = {"title": "dissensus: from the votes of annotators to models that are as unsure as people"}
    own |= {"note": f"Version {__version__}", "howpublished": "Software"}
    entries = [_entry("dissensus", "misc", own)]
    return "\n\n".join([*entries, *(_entry(key, *PAPERS[key]) for key in sorted(set(used)))])


def _entry(key: str, kind: str, fields: dict[str, str]) -> str:
    inside = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@{kind}{{{key},\n{inside}\n}}"
