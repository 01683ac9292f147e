"""scikit-learn's own checks of estimators, and what the two find."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="needs scikit-learn: make test-integrations installs it")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from adawidth import AdaWidth
from adawidth.data import Dataset
from adawidth.integrations.sklearn import RotationTransformer, WidthPlanner

pytestmark = pytest.mark.integrations


@parametrize_with_checks([RotationTransformer(), RotationTransformer(width=1), WidthPlanner(queries=20)])  # type: ignore[untyped-decorator, unused-ignore]
def test_the_checks_of_scikit_learn(estimator: object, check: object) -> None:
    check(estimator)


def test_a_rotation_in_a_pipeline_is_the_models(collection: Dataset) -> None:
    model, documents = AdaWidth.fit(collection, recipe="pca"), collection.documents.all()
    own = RotationTransformer(width=16, model=model).fit(documents)
    np.testing.assert_allclose(own.transform(documents), model.rotate(documents, 16), atol=1e-6)
    learned = RotationTransformer().fit(3 * documents)
    np.testing.assert_allclose(learned.inverse_transform(learned.transform(documents)), documents, atol=1e-5)
    with pytest.raises(ValueError, match="X has 3 features, but the model is 64 wide"):
        clone(own).fit(np.ones((4, 3)))
    with pytest.raises(ValueError, match="width=65"):
        RotationTransformer(width=65).fit(documents)


def test_the_planner_finds_fewer_coordinates_behind_a_rotation(collection: Dataset) -> None:
    documents = collection.documents.all()
    plain = WidthPlanner(k=5, quality=0.8).fit(documents)
    rotated = make_pipeline(RotationTransformer(), WidthPlanner(k=5, quality=0.8)).fit(documents)
    assert rotated[-1].width_ < plain.width_
    assert rotated[-1].kept_[-1] == 1
    place = rotated[-1].widths_.tolist().index(rotated[-1].width_)
    assert rotated[-1].kept_[place] >= 0.8 > rotated[-1].kept_[place - 1]
    assert rotated.transform(documents).shape == (len(documents), rotated[-1].width_)
    assert list(rotated.get_feature_names_out())[:1] == ["widthplanner0"]


def test_the_kept_share_is_that_of_brute_force(collection: Dataset) -> None:
    documents = collection.documents.all()[:60]
    found = WidthPlanner(k=3, queries=60).fit(documents)

    def nearest(width: int) -> np.ndarray:
        cut = documents[:, :width] / np.linalg.norm(documents[:, :width], axis=1, keepdims=True)
        scores = cut @ cut.T
        np.fill_diagonal(scores, -np.inf)
        return np.argsort(-scores, axis=1)[:, :3]

    whole = nearest(64)
    for width, kept in zip(found.widths_, found.kept_, strict=True):
        expected = np.mean([len(set(a) & set(b)) / 3 for a, b in zip(whole, nearest(width), strict=True)])
        assert kept == pytest.approx(expected, abs=1e-9)


def test_a_grid_search_chooses_the_width(collection: Dataset) -> None:
    labels = np.arange(len(collection.documents)) // 8
    pipeline = make_pipeline(RotationTransformer(), KNeighborsClassifier(1))
    grid = GridSearchCV(pipeline, {"rotationtransformer__width": [2, 32]}, cv=2).fit(collection.documents.all(), labels)
    assert grid.best_params_ == {"rotationtransformer__width": 32}
