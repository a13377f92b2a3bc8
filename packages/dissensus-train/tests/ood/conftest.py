"""The trained study of images, once for all tests of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from tests.ood.problems import image_study, trained

if TYPE_CHECKING:
    from dissensus_train.studies import OpenStudy


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> OpenStudy:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("stripes")
    return trained(image_study(folder), folder / "store")
