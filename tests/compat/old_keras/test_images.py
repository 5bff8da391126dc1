"""Images as each day had them: the axis of channels, and the numbers of `ImageDataGenerator` by its old formulas."""

import keras
import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from keraunos.compat import keras0, keras1, keras2
from keraunos.compat.old_keras import undecided, values
from keraunos.compat.tensorflow2 import keras as tf_keras
from keraunos.errors import DataError, JobError

IMAGES = np.random.default_rng(0).uniform(0, 9, (6, 4, 5, 3)).astype("float32")
FIRST = np.moveaxis(IMAGES, 3, 1)


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """What a test sets of the ordering and says once is forgotten after it."""
    monkeypatch.setattr(values, "_chosen_ordering", {})
    monkeypatch.setattr(undecided, "_said", set())
    before = keras.config.image_data_format()
    yield
    keras.config.set_image_data_format(before)


def plain(package, **named):
    """A generator of images that does what is named, and nothing else."""
    flags = {} if package is not keras0 else {"featurewise_center": False, "featurewise_std_normalization": False}
    return package.preprocessing.image.ImageDataGenerator(**{**flags, **named})


@pytest.mark.parametrize(
    ("package", "shape"), [(keras0, (3, 5, 4)), (keras1, (5, 4, 3)), (keras2, (5, 4, 3)), (tf_keras, (5, 4, 3))]
)
def test_where_an_image_has_its_channels(package, shape):
    tools = package.preprocessing.image
    found = tools.img_to_array(Image.new("RGB", (4, 5), (1, 2, 3)))
    assert found.shape == shape
    assert tools.array_to_img(found).size == (4, 5)


def test_keras_json_says_where_an_image_has_its_channels(tmp_path, monkeypatch):
    (tmp_path / "keras.json").write_text('{"image_dim_ordering": "th"}')
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    tools = keras1.preprocessing.image
    assert tools.img_to_array(Image.new("L", (4, 5))).shape == (1, 5, 4)
    assert tools.img_to_array(Image.new("L", (4, 5)), "tf").shape == (5, 4, 1)
    assert tools.ImageDataGenerator(rotation_range=1).channel_axis == 1
    keras1.backend.set_image_dim_ordering("tf")
    assert tools.img_to_array(Image.new("L", (4, 5))).shape == (5, 4, 1)


def test_a_picture_is_lightened_only_where_values_are_negative(tmp_path):
    values_of = np.array([[[100.0], [200.0]]])
    found = np.asarray(keras1.preprocessing.image.array_to_img(values_of, dim_ordering="tf"))
    assert found.tolist() == [[127, 255]]
    Image.fromarray(found).save(tmp_path / "a.png")
    assert keras1.preprocessing.image.load_img(str(tmp_path / "a.png"), True).mode == "L"
    assert keras1.preprocessing.image.list_pictures(str(tmp_path)) == [str(tmp_path / "a.png")]


@pytest.mark.parametrize(
    ("package", "images", "axes"),
    [(keras0, FIRST, (0,)), (keras1, IMAGES, (0, 1, 2)), (keras2, IMAGES, (0, 1, 2))],
)
def test_images_are_centered_by_the_means_of_the_day(package, images, axes):
    flags = {"featurewise_center": True, "featurewise_std_normalization": True}
    generator = plain(package, **flags)
    generator.fit(images)
    mean, std = images.mean(axes, keepdims=True)[0], images.std(axes, keepdims=True)[0]
    found, _ = next(generator.flow(images, np.zeros(6), 6, False))
    np.testing.assert_allclose(found, (images - mean) / (std + 1e-7), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("package", "axis"), [(keras0, None), (keras1, 2), (keras2, None)])
def test_an_image_is_centered_by_itself_as_on_its_day(package, axis):
    generator = plain(package, samplewise_center=True, samplewise_std_normalization=True)
    image = IMAGES[0]
    expected = (image - image.mean(axis, keepdims=True)) / (image.std(axis, keepdims=True) + 1e-7)
    np.testing.assert_allclose(generator.standardize(image.copy()), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("package", "parts"), [(keras0, 60), (keras1, 6), (keras2, 6)])
def test_whitening(package, parts):
    generator = plain(package, zca_whitening=True, featurewise_center=package is keras2)
    generator.fit(FIRST if package is keras0 else IMAGES)
    flat = (FIRST if package is keras0 else IMAGES).reshape(6, -1).astype("float64")
    if package is keras2:
        flat = (IMAGES - IMAGES.mean((0, 1, 2))).reshape(6, -1).astype("float64")
    found, lengths, _ = np.linalg.svd(flat.T @ flat / parts)
    expected = found @ np.diag(1 / np.sqrt(lengths + 1e-6)) @ found.T
    x = flat[0] / np.linalg.norm(flat[0])
    np.testing.assert_allclose(x @ generator.zca_whitening_matrix, x @ expected, rtol=0.02, atol=0.02)


def affine(image, matrix, order):
    """The image, moved about its middle as until Keras 3: rows first."""
    middle = np.array([[1, 0, image.shape[0] / 2 + 0.5], [0, 1, image.shape[1] / 2 + 0.5], [0, 0, 1.0]])
    matrix = middle @ matrix @ np.linalg.inv(middle)
    moved = [ndimage.affine_transform(image[..., c], matrix[:2, :2], matrix[:2, 2], order=order, mode="nearest")
             for c in range(3)]  # fmt: skip
    return np.stack(moved, -1)


@pytest.mark.parametrize(("package", "unit", "order"), [(keras1, 1, 0), (keras2, np.pi / 180, 1)])
def test_an_image_is_moved_as_on_its_day(package, unit, order):
    generator = plain(package, shear_range=0.5)
    angle = np.random.RandomState(3).uniform(-0.5, 0.5) * unit
    expected = affine(IMAGES[0], np.array([[1, -np.sin(angle), 0], [0, np.cos(angle), 0], [0, 0, 1]]), order)
    np.testing.assert_allclose(generator.random_transform(IMAGES[0], seed=3), expected, atol=1e-4)
    image = np.zeros((4, 6, 3), "float32")
    image[0] = 1  # a shift of the height is along the rows
    shifted = plain(package, height_shift_range=0.5, fill_mode="constant").random_transform(image, seed=1)
    assert (shifted == shifted[:, :1]).all()


def test_keras_0_sheared_in_radians():
    angle = np.random.RandomState(3).uniform(-0.5, 0.5)
    matrix = np.array([[1, -np.sin(angle), 0], [0, np.cos(angle), 0], [0, 0, 1]])
    found = plain(keras0, shear_range=0.5).random_transform(FIRST[0], seed=3)
    np.testing.assert_allclose(found, ndimage.affine_transform(FIRST[0], matrix, mode="nearest", order=3), atol=1e-4)
    turned = plain(keras0, horizontal_flip=True, rotation_range=90).random_transform(FIRST[0], seed=2)
    assert turned.shape == FIRST[0].shape


def test_each_channel_of_keras_1_was_shifted_by_itself():
    draws = np.random.RandomState(5).uniform(-2, 2, 3)
    found = plain(keras1, channel_shift_range=2.0).random_transform(IMAGES[0], seed=5)
    np.testing.assert_allclose(found, np.clip(IMAGES[0] + draws, IMAGES[0].min(), IMAGES[0].max()), atol=1e-5)


def test_how_batches_flow():
    y = np.arange(6)
    rows = plain(keras0).flow(FIRST, y, batch_size=4)
    assert [labels.tolist() for _, labels in rows] == [[0, 1, 2, 3], [4, 5]]  # in their order, and once
    assert [len(next(rows)[1]) for _ in range(3)] == [4, 2, 4]
    flow = plain(keras1).flow(X=IMAGES, y=y, batch_size=4, seed=1)
    assert len(flow.next()[1]) == 4
    assert (flow.N, flow.save_format) == (6, "jpeg")
    with pytest.raises(JobError, match="`sample_weight` from 2.2 on"):
        plain(keras2).flow(IMAGES, y, 4, True, 1)


def test_images_of_a_folder_are_counted_as_then(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (4, 4)).save(tmp_path / name / "one.png")
    flow = plain(keras1).flow_from_directory(str(tmp_path), target_size=(2, 3), class_mode="binary")
    assert (flow.nb_sample, flow.nb_class, flow.next()[0].shape) == (2, 2, (2, 2, 3, 3))


def test_what_an_image_generator_is_told(caplog):
    plain(keras2, shear_range=0.2)
    assert "`shear_range` of ImageDataGenerator was in radians until 2.1.2 and in degrees" in caplog.text
    plain(keras1, featurewise_center=True)
    assert "for each pixel until 1.1 and for each channel in 1.2, which is taken" in caplog.text
    with pytest.raises(JobError, match="argument of ImageDataGenerator` must be one of"):
        plain(keras0, zoom_range=0.2)
    with pytest.raises(DataError, match=r"must be fit before it gives images.*featurewise_center=False"):
        next(keras0.preprocessing.image.ImageDataGenerator().flow(FIRST, np.zeros(6)))

    class Own(keras1.preprocessing.image.ImageDataGenerator):
        """A class of a program."""

    assert isinstance(Own(shear_range=0.1), keras1.preprocessing.image.ImageDataGenerator)


def test_datasets_of_pictures_have_their_channels_where_the_day_had_them(monkeypatch):
    data = ((IMAGES, np.zeros((6, 1))), (IMAGES, np.zeros((6, 1))))
    monkeypatch.setattr(keras.datasets.cifar10, "load_data", lambda: data)
    for package, shape in ((keras0, (6, 3, 4, 5)), (keras1, (6, 4, 5, 3)), (keras2, (6, 4, 5, 3))):
        assert package.datasets.cifar10.load_data()[0][0].shape == shape
