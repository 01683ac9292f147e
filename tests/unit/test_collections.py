"""The model that travels in an engine: packed, unpacked, and refused when damaged or foreign."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from adawidth.errors import ArtifactError
from adawidth.model.collections import FILES, packed_model, unpacked
from small_model import small_model


def test_a_model_comes_back_as_it_was() -> None:
    model = small_model()
    again = unpacked(packed_model(model), "here")
    assert again.rotation.fingerprint == model.rotation.fingerprint
    assert np.array_equal(again.rotation.matrix, model.rotation.matrix)


def test_any_damaged_byte_is_refused_or_harmless() -> None:
    model = small_model()
    packed, places = packed_model(model), np.random.default_rng(0)
    refused = 0
    for place in places.choice(len(packed), 200, replace=False).tolist():
        damaged = bytearray(packed)
        damaged[place] ^= 1 << int(places.integers(8))
        try:
            assert unpacked(bytes(damaged), "here").rotation.fingerprint == model.rotation.fingerprint
        except ArtifactError:
            refused += 1
    assert refused > 150


@pytest.mark.parametrize("names", [FILES[:-1], (*FILES, "other.txt"), ("../config.json", *FILES[1:])])
def test_other_files_than_a_models_are_refused(names: tuple[str, ...]) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"{}")
    with pytest.raises(ArtifactError, match="is no model"):
        unpacked(out.getvalue(), "here")
