"""May a model take a person's place among annotators?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissensus.lazy import lazy_names

if TYPE_CHECKING:
    from dissensus.evaluation.stand_in.alternative_annotator import (
        alternative_annotator_test as alternative_annotator_test,
    )
    from dissensus.evaluation.stand_in.answers import named_answers as named_answers
    from dissensus.evaluation.stand_in.answers import read_model_answers as read_model_answers
    from dissensus.evaluation.stand_in.answers import voted_answers as voted_answers
    from dissensus.evaluation.stand_in.diversity import diversity as diversity
    from dissensus.evaluation.stand_in.judging import stand_in as stand_in

__getattr__, __dir__ = lazy_names(__name__)
