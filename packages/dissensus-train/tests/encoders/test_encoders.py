from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from dissensus.errors import InputError
from dissensus.items import Items
from dissensus.parts import install_line
from dissensus.progress import Step
from dissensus_train.encoders import Encoder, encoded, fit_encoder, restore_encoder
from dissensus_train.encoders.pretrained import MINILM, hf_folder
from dissensus_train.encoders.tfidf import fit_tfidf, tfidf

TEXTS = ["The cat sat on the mat, the cat!", "A dog_2 barked: Über-laut", "", "cat\x00dog \n cat", "x y z"]


def names(n: int) -> Any:
    return np.array([f"item {k}" for k in range(n)], dtype=np.dtypes.StringDType())


def strings(texts: list[str]) -> Any:
    return np.array(texts, dtype=np.dtypes.StringDType())


def text_items(*columns: list[str]) -> Items:
    return Items(names=names(len(columns[0])), texts=tuple(strings(column) for column in columns))


def image_items(n: int = 3, side: int = 6) -> Items:
    pixels = np.random.default_rng(0).integers(0, 256, (n, 3, side, side), dtype=np.uint8)
    return Items(names=names(n), pixels=pixels)


WORDS = st.text(st.sampled_from("aA bB_1é,.\x00\nİß"), max_size=30)


@given(st.lists(WORDS, min_size=1, max_size=12), st.lists(WORDS, min_size=1, max_size=5))
def test_tfidf_is_scikit_learns(training: list[str], others: list[str]) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    peer = TfidfVectorizer(dtype=np.float32)
    # A NUL is our mark between texts, and counts as a space.
    training = [text.replace("\x00", " ") for text in training]
    try:
        peer.fit(training)
    except ValueError:
        with pytest.raises(InputError, match="no text holds a word"):
            fit_tfidf([strings(training)])
        return
    state = fit_tfidf([strings(training)])
    assert state["words"].tobytes().decode().split("\n") == sorted(peer.vocabulary_)
    ours = tfidf([strings(others)], state)
    assert np.allclose(ours.toarray(), peer.transform(t.replace("\x00", " ") for t in others).toarray(), atol=1e-6)


def test_tfidf_keeps_the_words_that_occur_most_and_of_equals_the_first_in_the_alphabet() -> None:
    state = fit_tfidf([strings(["bb bb cc dd", "aa cc ee"])], columns=3)
    assert state["words"].tobytes().decode().split("\n") == ["aa", "bb", "cc"]


def test_tfidf_of_a_pair_has_the_words_of_the_second_text_beside_those_of_the_first() -> None:
    items = text_items(["cats sleep", "dogs bark"], ["dogs bark", "cats sleep"])
    encoder = fit_encoder("tfidf", items, folder=Path())
    features = encoded(encoder, items)
    assert isinstance(features, csr_matrix)
    assert features.dtype == np.float32
    half = features.shape[1] // 2
    assert np.allclose(features[0, :half].toarray(), features[1, half:].toarray())
    assert not encoder.normalise


def test_words_of_other_items_than_the_training_items_are_not_learnt() -> None:
    encoder = fit_encoder("tfidf", text_items(["seen words"]), folder=Path())
    assert encoded(encoder, text_items(["unseen", "seen"])).toarray().tolist() == [[0, 0], [1, 0]]


def test_an_encoder_is_restored_from_its_name_and_state() -> None:
    items = text_items(TEXTS)
    fitted = fit_encoder("tfidf", items, folder=Path())
    again = restore_encoder("tfidf", fitted.state, folder=Path())
    assert (encoded(again, items) != encoded(fitted, items)).nnz == 0


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with a vocabulary of a few words, saved as Hugging Face saves."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "dog", ",", "!"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    BertModel(config).save_pretrained(folder)
    return folder


def test_hf_embeds_a_text_by_the_mean_of_its_tokens(tiny: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = ["the cat sat", "on the mat , the dog !", "cat"]
    encoder = fit_encoder("hf:tiny", text_items(texts), folder=tiny.parent)
    features = encoded(encoder, text_items(texts))
    tokeniser, model = AutoTokenizer.from_pretrained(tiny), AutoModel.from_pretrained(tiny).eval()
    for text, row in zip(texts, features, strict=True):
        with torch.no_grad():
            hidden = model(**tokeniser(text, return_tensors="pt")).last_hidden_state[0]
        mean = hidden.mean(dim=0)
        assert np.allclose(row, mean / mean.norm(), atol=1e-5)


def test_a_pair_is_the_embedding_of_the_first_text_then_of_the_second(tiny: Path) -> None:
    pair = text_items(["the cat", "dog"], ["dog", "the cat"])
    features = encoded(fit_encoder("hf:tiny", pair, folder=tiny.parent), pair)
    assert features.shape == (2, 32)
    assert np.allclose(features[0, :16], features[1, 16:], atol=1e-6)


def test_progress_is_told_up_to_the_last_item(tiny: Path) -> None:
    seen: list[Step] = []
    items = text_items(["cat"] * 150)
    encoded(fit_encoder("hf:tiny", items, folder=tiny.parent), items, progress=seen.append)
    assert seen[-1] == Step("encoded items", 150, 150)
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("hf:nowhere/to-be-found", "the hub does not give a model of that name"),
        ("hf:empty", "holds no config.json"),
        ("tf-idf", "'tf-idf' is no encoder; did you mean 'tfidf'"),
        ("pixels:none", "is no encoder"),
        ("pixels", "encoder pixels reads images, and the items are texts; choose tfidf"),
        ("nothing.py:encode", "encoder nothing.py:encode: there is no file"),
        ("own.py:absent", "has no attribute 'absent'"),
        ("own.py:number", "this is a int, not a function"),
        ("broken.py:encode", "encoder broken.py:encode: of all things"),
    ],
)
def test_an_encoder_that_cannot_be_had_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", _no_hub)
    (tmp_path / "empty").mkdir()
    (tmp_path / "own.py").write_text("number = 1\n")
    (tmp_path / "broken.py").write_text("raise ValueError('of all things')\n")
    with pytest.raises(InputError, match=sentence):
        fit_encoder(name, text_items(["a"]), folder=tmp_path)


def _no_hub(*_: Any, **__: Any) -> str:
    raise OSError("no network here")


def test_a_folder_with_a_damaged_model_is_refused(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "config.json").write_text((tiny / "config.json").read_text())
    items = text_items(["cat"])
    with pytest.raises(InputError, match="cannot be loaded"):
        encoded(fit_encoder("hf:damaged", items, folder=tmp_path), items)


def test_a_name_of_the_hub_is_loaded_from_its_copy_on_this_machine(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def copy(name: str, **_: Any) -> str:
        asked.append(name)
        return str(tiny)

    monkeypatch.setattr("huggingface_hub.snapshot_download", copy)
    assert hf_folder("somebody/tiny", beside=tmp_path) == tiny
    assert asked == ["somebody/tiny"]


def test_an_own_encoder_reads_the_items_and_may_say_that_it_is_not_to_be_normalised(tmp_path: Path) -> None:
    (tmp_path / "lengths.py").write_text("def of(text):\n    return [len(text), text.count('a')]\n")
    (tmp_path / "own.py").write_text(
        "import numpy as np\nfrom lengths import of\n"
        "def encode(items):\n    return np.array([of(text) for text in items.texts[0].tolist()])\n"
        "encode.normalise = False\n"
    )
    items = text_items(["banana", "kiwi"])
    encoder = fit_encoder("own.py:encode", items, folder=tmp_path)
    assert encoded(encoder, items).tolist() == [[6, 3], [4, 0]]
    assert not encoder.normalise


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("np.zeros(2)", "returned ndarray of one axis"),
        ("[1, 2]", "returned list"),
        ("np.zeros((3, 1))", "returned 3 rows for 2 items"),
        ("np.zeros((2, 1), dtype=complex)", "features of type complex128"),
    ],
)
def test_what_an_own_encoder_returns_is_checked(tmp_path: Path, returned: str, sentence: str) -> None:
    (tmp_path / "own.py").write_text(f"import numpy as np\ndef encode(items):\n    return {returned}\n")
    items = text_items(["a", "b"])
    with pytest.raises(InputError, match=sentence):
        encoded(fit_encoder("own.py:encode", items, folder=tmp_path), items)


def counting(calls: list[int], **change: Any) -> Encoder:
    def encode(items: Items, progress: Any) -> Any:
        calls.append(len(items))
        return np.full((len(items), 2), len(calls), dtype=np.float32)

    return Encoder(**{"name": "counting", "reads": "texts", "normalise": True, "encode": encode, **change})


def test_features_are_cached_by_all_that_decides_them(tmp_path: Path) -> None:
    calls: list[int] = []
    items, plain = text_items(["a", "b"]), counting(calls)
    first = encoded(plain, items, cache=tmp_path)
    assert (encoded(plain, text_items(["a", "b"]), cache=tmp_path) == first).all()
    assert len(calls) == 1
    for other, of in (
        (plain, text_items(["b", "a"])),
        (plain, text_items(["a", "b", ""])),
        (plain, text_items(["a", "b"], ["", ""])),
        (counting(calls, name="other"), items),
        (counting(calls, state={"w": np.ones(2)}), items),
        (counting(calls, decided_by={"torch": "2"}), items),
    ):
        before = len(calls)
        encoded(other, of, cache=tmp_path)
        assert len(calls) == before + 1
    encoded(plain, items)
    assert len(calls) == 8


def test_sparse_features_come_back_from_the_cache_sparse(tmp_path: Path) -> None:
    items = text_items(TEXTS)
    encoder = fit_encoder("tfidf", items, folder=tmp_path)
    first, again = (encoded(encoder, items, cache=tmp_path) for _ in range(2))
    assert isinstance(again, csr_matrix)
    assert (first != again).nnz == 0
    assert again.dtype == np.float32


def test_a_damaged_cache_and_one_that_cannot_be_written_do_no_harm(tmp_path: Path) -> None:
    calls: list[int] = []
    items, encoder = text_items(["a"]), counting(calls)
    encoded(encoder, items, cache=tmp_path)
    for path in (tmp_path / "encoded").iterdir():
        path.write_bytes(b"PK\x03\x04 no more")
    encoded(encoder, items, cache=tmp_path)
    (tmp_path / "file").write_text("")
    encoded(encoder, items, cache=tmp_path / "file")
    assert len(calls) == 3


def test_pixels_are_from_0_to_1_and_a_side_scales_them() -> None:
    items = image_items(n=3, side=6)
    assert items.pixels is not None
    features = encoded(fit_encoder("pixels", items, folder=Path()), items)
    assert np.allclose(features, items.pixels / 255)
    assert features.dtype == np.float32
    assert encoded(fit_encoder("pixels:4", items, folder=Path()), items).shape == (3, 3, 4, 4)


class _Network:
    """A network as timm makes them, as far as an encoder uses one: the mean of each channel, in place of a layer."""

    def eval(self) -> _Network:
        return self

    def to(self, place: object) -> _Network:
        return self

    def __call__(self, pixels: Any) -> Any:
        assert pixels.shape[1:] == (3, 8, 8)
        return pixels.mean(dim=(2, 3))


def test_timm_networks_see_squares_scaled_as_timm_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """timm itself needs torchvision, which not every machine has; what stands in for it is the four calls we make."""
    made: list[tuple[str, dict[str, Any]]] = []

    def create_model(name: str, **options: Any) -> _Network:
        made.append((name, options))
        return _Network()

    stub = types.ModuleType("timm")
    stub.__spec__ = importlib.util.spec_from_loader("timm", loader=None)
    config = {"input_size": (3, 8, 8), "mean": (0.5, 0.4, 0.3), "std": (0.1, 0.2, 0.4)}
    monkeypatch.setattr(stub, "create_model", create_model, raising=False)
    monkeypatch.setattr(
        stub, "data", types.SimpleNamespace(resolve_model_data_config=lambda model: config), raising=False
    )
    monkeypatch.setitem(sys.modules, "timm", stub)
    monkeypatch.setattr("dissensus_train.encoders.pretrained.version", lambda package: "0")
    items = image_items(n=3, side=8)
    assert items.pixels is not None
    features = encoded(fit_encoder("timm:resnet18", items, folder=tmp_path), items)
    mean = (items.pixels / 255).mean(axis=(2, 3))
    assert np.allclose(features, (mean - config["mean"]) / config["std"], atol=1e-5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    encoded(fit_encoder("timm:mine", items, folder=tmp_path), items)
    assert [name for name, _ in made] == ["resnet18", f"local-dir:{tmp_path / 'mine'}"]
    assert all(options == {"pretrained": True, "num_classes": 0} for _, options in made)


@pytest.mark.skipif(importlib.util.find_spec("timm") is not None, reason="timm is installed")
def test_a_missing_library_is_named_with_the_extra_that_brings_it() -> None:
    with pytest.raises(InputError, match=re.escape(f"timm is not installed; get it with `{install_line('images')}`")):
        encoded(fit_encoder("timm:resnet18", image_items(), folder=Path()), image_items())


@pytest.mark.skipif(importlib.util.find_spec(MINILM) is None, reason=f"the package {MINILM} is not installed")
def test_minilm_places_like_sentences_side_by_side() -> None:
    items = text_items(["A man plays the guitar.", "Someone is playing an instrument.", "The stock market fell today."])
    features = encoded(fit_encoder("minilm", items, folder=Path()), items)
    assert features.shape == (3, 384)
    assert features[0] @ features[1] > 0.5 > 0.2 > features[0] @ features[2]
