"""The data of a study: what people saw and said, features, targets and splits put together."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dissensus.arrays import Features, Ints, Names, places_of
from dissensus.datasets.catalogue import cache_folder
from dissensus.errors import InputError, MissingItemsError, choices
from dissensus.items.pictures import ImageReading
from dissensus.items.shown import Items
from dissensus.labels.labelling import label
from dissensus.labels.schemes import UNSURE_WEIGHT
from dissensus.progress import Progress, silent
from dissensus.votes.echo import drop_notes, number
from dissensus.votes.kinds import people_alone
from dissensus.votes.sampling import subsample
from dissensus.votes.shown_pairs import shown_pairs
from dissensus_train.encoders.encoding import Encoder, encoded, fit_encoder
from dissensus_train.encoders.reading import places_in_file, read_features, read_images, read_texts
from dissensus_train.studies.labelled import ORIGINAL, LabelledItems, original_labels
from dissensus_train.studies.labelled_sets import LABELLED_SETS
from dissensus_train.studies.splitting import study_splits
from dissensus_train.studies.writing import toml_value
from dissensus_train.training.annotator_side import VOTES
from dissensus_train.training.data import TRAIN, TrainingData
from dissensus_train.training.fine_tuning import is_pretrained
from dissensus_train.training.losses import loss_of
from dissensus_train.training.models import PAIRS
from dissensus_train.training.run import Run, class_weights, delivery_of, known_settings, selection_of
from dissensus_train.training.tuning import trials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dissensus.labels.distribution import LabelDistribution
    from dissensus.votes.table import Votes
    from dissensus_train.studies.spec import Study, Target

Held = TypeVar("Held")

USUAL_ENCODER: Final = {"texts": "tfidf", "images": "pixels"}
"""What makes features of items where neither the study nor its dataset says."""

ITEM_BY_ITEM: Final = frozenset({"frequency", "majority", *UNSURE_WEIGHT})
"""Schemes that read an item's label distribution from its own votes alone."""


def study_data(study: Study, *, progress: Progress = silent) -> TrainingData:
    """Read what people saw and said, make the splits, the targets and the features.

    Encoding may take long: whatever can be refused without features is refused before it.
    """
    given = _known(study) if study.dataset is not None else _own(study)
    splits = study_splits(study, given)
    panels = {
        target.name: subsample(given.votes, target.votes, seed=target.seed)
        for target in study.targets
        if given.votes is not None and target.votes is not None
    }
    data = TrainingData(
        name=" ".join([study.held, *study.sources]),
        features=np.zeros((len(given.human), 0), dtype=np.float32) if given.features is None else given.features,
        human=given.human,
        targets={target.name: _target(target, given, panels, splits) for target in study.targets},
        splits=splits,
        votes=given.votes,
        panels=panels,
        note=given.note,
        items=given.items,
        # Nothing is known of features yet.
        normalise=False,
        folder=study.folder,
    )
    if given.features is None or study.encoder is not None:
        check_deliveries(_without_data(study), data)
    features, encoder = _features(study, given, data.splits[TRAIN], progress)
    normalise = study.normalise if study.normalise is not None else encoder is None or encoder.normalise
    return replace(data, features=features, encoder=encoder, normalise=normalise)


def check_deliveries(runs: Sequence[Run], data: TrainingData) -> None:
    """Refuse before training what would be refused in its middle, of all that does not depend on the network."""
    for run in {(run.method, run.network, repr(run.training)): run for run in runs}.values():
        if run.model in PAIRS and not data.human.pairs:
            raise InputError(
                f"{data.name}: {run.model} compares two answers, and the votes are no preferences; read them with "
                "format='preferences', or choose another model"
            )
        loss_of(run.training, data.folder)
        class_weights(run, data)
        for one in trials(run).values() or (run,):
            delivery_of(one, data)(0)
        selection_of(run, data)


def _without_data(study: Study) -> list[Run]:
    """A run of every target and delivery, and of every way to know people, that is never trained."""
    made: Any = partial(Run, seed=study.seeds[0], data="")
    runs = []
    for model, target, method in study.grid:
        settings, how = known_settings(model, study.training), {"delivery": method.delivery, "options": method.options}
        runs.append(made(model=model, target=target.name, training=settings, **how))
    on_votes = partial(made, target=VOTES, delivery=VOTES, training=study.training)
    return runs + [on_votes(model=known.name, people=known.people) for known in study.annotator_models]


def _target(
    target: Target, given: LabelledItems, panels: Mapping[str, Votes], splits: Mapping[str, Ints]
) -> LabelDistribution:
    """A target over all items, in which no training item knows anything of votes that are held out.

    A scheme that learns something over items, such as how reliable each annotator is, learns it for the training items
    from their own votes, and for those of another split from these and that split's.
    """
    if target.scheme in given.targets:
        return given.targets[target.scheme]
    assert given.votes is not None, "the study's reader lets no other target through"
    votes = panels.get(target.name, given.votes)
    made = label(votes, target.scheme)
    if target.scheme in ITEM_BY_ITEM:
        return made
    probabilities = made.probabilities.copy()
    trained = splits.get(TRAIN, np.arange(0))
    for name, members in splits.items():
        seen = members if name == TRAIN else np.concatenate([members, trained])
        probabilities[members] = label(votes.take_items(seen), target.scheme).probabilities[: len(members)]
    return replace(made, probabilities=probabilities, model=None)


def _features(
    study: Study, given: LabelledItems, training: Ints, progress: Progress
) -> tuple[Features, Encoder | None]:
    """Features as they were given, or made of the items by an encoder."""
    if given.features is not None and study.encoder is None:
        return given.features, None
    if given.items is None:
        raise InputError(f"study {study.name}: {study.held} brings features and no items to encode; leave encoder out")
    usual = LABELLED_SETS[study.dataset].encoder if study.dataset is not None else None
    networks = [*study.models, *(model.name for model in study.annotator_models)]
    # Such networks read texts or images themselves; a grid of these alone needs no features.
    if study.encoder is None and all(map(is_pretrained, networks)):
        return np.zeros((len(given.items), 0), dtype=np.float32), None
    name = study.encoder or usual or USUAL_ENCODER[given.items.kind]
    try:
        encoder = fit_encoder(name, given.items.take(training), folder=study.folder)
    except InputError as error:
        raise InputError(f"{study.path}: [dataset] encoder: {error}") from error
    return encoded(encoder, given.items, cache=cache_folder(), progress=progress), encoder


def _known(study: Study) -> LabelledItems:
    """A known set, or one of its sources."""
    if len(study.sources) > 1:
        raise InputError(
            f"study {study.name}: it is one study for each source of {study.dataset}; name one of "
            f"{', '.join(part.source for part in study.parts)}, or keep one source under [dataset]"
        )
    given = LABELLED_SETS[str(study.dataset)].read()
    return given.of_source(study.sources[0]) if study.sources else given


def _own(study: Study) -> LabelledItems:
    people, models_left_out = people_alone(_own_votes(study))

    def held(votes: Votes) -> tuple[Items | None, Any]:
        features = None if study.features is None else read_features(study.folder / study.features, votes.items)
        return _own_items(study, votes), features

    votes, (items, features), dropped = with_items(in_order_of_names(people), held, drop=bool(study.drop_missing_items))
    # People said what all their votes say; a target may be made from fewer.
    human = label(votes, "equal-weighted")
    return LabelledItems(
        features=features,
        human=human,
        targets={} if study.original is None else {ORIGINAL: _original(study, human, items)},
        splits={},
        source=np.full(len(votes.items), ""),
        votes=votes,
        items=items,
        note="; ".join(sentence for sentence in (models_left_out, dropped) if sentence),
    )


def with_items(
    votes: Votes, read: Callable[[Votes], Held], *, drop: bool, dropped: str | None = None
) -> tuple[Votes, Held, str]:
    """Votes, and what is read of their items; those of which there is none are dropped, and told, or refused."""
    kept = votes
    while True:
        try:
            gone = [str(name) for name in votes.items[places_of(votes.items, kept.items) < 0].tolist()]
            return kept, read(kept), drop_notes({"with votes and nothing else": gone}, dropped)[0] if gone else ""
        except MissingItemsError as error:
            if not drop or error.lacking.all():
                way = {f"leave {number(int(error.lacking.sum()), 'item')} out": {"drop_missing_items": True}}
                raise InputError(error.sentence, readings=None if drop else way) from None
            kept = kept.subset(items=~error.lacking)


def _own_votes(study: Study) -> Votes:
    from dissensus.votes.formats import Options
    from dissensus.votes.reading import understand

    path, models = study.folder / str(study.votes), [model.people for model in study.annotator_models]
    named = dict.fromkeys(name for people in models for name in (people.by, *people.population) if name)
    try:
        for name in study.reading or ():
            if name not in (options_of := Options.__dataclass_fields__):
                raise InputError(f"{path}: no way of reading is called '{name}'{choices(name, options_of)}")
        options = Options(**{"format": study.format, **(study.reading or {})})
        votes = understand(path, options).votes
        known = votes.annotator_attributes
        missing = [name for name in named if name not in known]
        # What describes annotators is a column like any other until a model asks for it.
        return understand(path, replace(options, attributes=(*known, *missing))).votes if missing else votes
    except InputError as error:
        # What is a keyword there is a key of the study file here.
        ways = [f"reading = {toml_value(ways)} ({meaning})" for meaning, ways in error.readings.items()]
        sentence = re.sub(r"format='([\w-]+)'", r'format = "\1" under [dataset]', error.sentence)
        say = f"; say under [dataset] {' or '.join(ways)}" if ways else ""
        raise InputError(f"{sentence}{say}") from error


def _own_items(study: Study, votes: Votes) -> Items | None:
    names = votes.items
    if study.texts is not None:
        path = study.folder / study.texts
        try:
            texts = read_texts(path, names, item=study.item, text=study.text)
        except InputError as error:
            if isinstance(error, MissingItemsError):
                raise
            raise InputError(re.sub(r"\b(item|text)=", r"\1 under [dataset]", error.sentence)) from error
        return _sides_as_voted(path, texts, votes)
    if study.images is None:
        return None
    path = study.folder / study.images
    if path.is_file():
        return images_of_file(path, names)
    return read_images(path, names, reading=ImageReading(study.background or "white"))


def _sides_as_voted(path: Path, items: Items, votes: Votes) -> Items:
    """Texts of two answers with the left one first, as votes name the pair; refuses those that may lie either way."""
    shown = shown_pairs(votes)
    if shown is None or len(items.texts) < 2:
        return items
    *question, left, right = items.texts
    names = [str(name) for name in items.names.tolist()]
    both = zip(names, left.tolist(), right.tolist(), strict=True)
    # Texts may be what votes call the sides.
    are_sides = all(sorted(shown.of[name][:2]) == sorted(texts) for name, *texts in both)
    own = shown.in_table({"model_a": left, "model_b": right} if are_sides else items.columns, names)
    either = [name for name in names if own.of[name][2]]
    if own is shown and either:
        raise InputError(
            f"{path}: {number(len(either), 'pair')} (first '{either[0]}') were shown either way round, and nothing "
            "says which text is of which side; columns model_a and model_b do"
        )
    other = own.turned(names)
    return replace(items, texts=(*question, np.where(other, right, left), np.where(other, left, right)))


def images_of_file(path: Path, names: Names) -> Items:
    """The images of the given items from one file that holds them all: npz, idx, or a CIFAR-10 batch."""
    from dissensus.datasets.sources import read_source

    source = read_source(path)
    if source.images is None:
        raise InputError(f"{path}: this is a table of texts; give it as texts, or give a folder or file of images")
    return Items(names=names, pixels=source.images[places_in_file(path, names, source.items, "image")])


def _original(study: Study, human: LabelDistribution, items: Items | None) -> LabelDistribution:
    """The labels that items had before people voted: a column of the texts' file, or a file of its own."""
    given = str(study.original)
    path = study.folder / given
    if items is not None and given in items.columns:
        said = items.columns[given]
        code = places_of(said, np.array(human.classes, dtype=np.dtypes.StringDType()))
        wrong = np.flatnonzero(code < 0)
        if wrong.size:
            raise InputError(
                f"{study.folder / str(study.texts)}: the original label of item {human.items[wrong[0]]} is "
                f"'{said[wrong[0]]}', which nobody voted for on any item; the classes are {', '.join(human.classes)}: "
                "spell it as the votes do"
            )
        return original_labels(human, code)
    if path.suffix:
        from dissensus.labels.reading import labels_beside

        return original_labels(human, labels_beside(path, human).argmax(axis=1))
    known = ", ".join(items.columns) if items is not None and items.columns else "none"
    raise InputError(
        f"{study.path}: [dataset] original is '{given}', which is neither a file nor a further column of the texts' "
        f"file (there are: {known}); give a file with the columns item and label, or name a column"
    )


def in_order_of_names(votes: Votes) -> Votes:
    """The same votes, items by name, and the judgements of an item by annotator and by what they say.

    A file whose rows were shuffled is the same study: the same splits, the same smaller panels, the same runs.
    """
    votes = votes.take_items(np.argsort(votes.items, kind="stable"))
    who: Any = 0 if votes.annotators is None else np.argsort(np.argsort(votes.annotators.names, kind="stable"))
    annotator = np.zeros(votes.n_judgements) if votes.judgement_annotator is None else who[votes.judgement_annotator]
    # What a judgement says, in one number that does not depend on the order of its votes.
    said = np.random.default_rng(0).integers(2**62, size=2 * len(votes.classes))
    response = said[2 * votes.label + (0 if votes.unsure is None else votes.unsure)]
    content = np.zeros(votes.n_judgements, dtype=np.int64)
    np.add.at(content, votes.judgement_of_vote, response)
    return votes.take_judgements(np.lexsort((content, annotator, votes.judgement_item)))
