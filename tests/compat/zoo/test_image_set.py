"""`zoo.feature` and `bigdl.transform.vision`: formulas of OpenCV's, images on executors, images as a dataset."""

import keras
import numpy as np
import pytest
from PIL import Image

from keraunos.compat.zoo.bigdl.transform.vision import image as bigdl
from keraunos.compat.zoo.bigdl.transform.vision import mats
from keraunos.compat.zoo.feature import common
from keraunos.compat.zoo.feature.image import (
    ImageAspectScale,
    ImageBrightness,
    ImageBytesToMat,
    ImageCenterCrop,
    ImageChannelNormalize,
    ImageColorJitter,
    ImageExpand,
    ImageFeatureToSample,
    ImageFiller,
    ImageFixedCrop,
    ImageHFlip,
    ImageHue,
    ImageMatToTensor,
    ImageMirror,
    ImagePixelNormalize,
    ImageRandomCrop,
    ImageRandomPreprocessing,
    ImageResize,
    ImageSaturation,
    ImageSet,
    ImageSetToSample,
    PerImageNormalize,
    RowToImageFeature,
)
from keraunos.compat.zoo.pipeline.nnframes import NNImageReader, with_origin_column
from keraunos.compat.zoo.tfpark.tf_dataset import TFDataset
from keraunos.errors import DataError, JobError

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (6, 8, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two classes of three images: the first is blue, the second red; and the classes' folder names have a space."""
    root = tmp_path_factory.mktemp("images")
    for name, colour in (("a cat", (0, 0, 200)), ("dog", (200, 0, 0))):
        (root / name).mkdir()
        for number in range(3):
            pixels = np.full((10 + number, 12, 3), colour, np.uint8)
            pixels += RANDOM.integers(0, 30, pixels.shape).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number}.png")
    return root


def through(step, pixels=PIXELS, label=None, path="one"):
    feature = bigdl.ImageFeature(pixels, label, path)
    return step.transform(feature)


def image_after(step, pixels=PIXELS):
    return through(step, pixels).pixels


def test_channels_are_bgr_and_normalized_by_their_own_numbers():
    found = image_after(ImageChannelNormalize(10, 20, 30, 2, 4, 5))
    expected = (PIXELS - np.array([30, 20, 10], np.float32)) / np.array([5, 4, 2], np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32
    tensor = through(ImageMatToTensor())["imageTensor"]
    np.testing.assert_array_equal(tensor, PIXELS.transpose(2, 0, 1))
    turned = through(ImageMatToTensor(to_RGB=True, format="NHWC"))["imageTensor"]
    np.testing.assert_array_equal(turned, PIXELS[:, :, ::-1])


def test_resizing_is_opencvs_and_does_not_smooth():
    # Between the middles of pixels, by hand: 4 pixels to 2 look at 0.5 and 2.5, 2 to 4 at -0.25, 0.25, 0.75, 1.25.
    row = np.array([0, 10, 20, 100], np.float32).reshape(1, 4, 1)
    np.testing.assert_allclose(mats.resized(row, 1, 2, mats.LINEAR).ravel(), [5, 60])
    pair = np.array([0, 100], np.float32).reshape(1, 2, 1)
    np.testing.assert_allclose(mats.resized(pair, 1, 4, mats.LINEAR).ravel(), [0, 25, 75, 100])
    np.testing.assert_allclose(mats.resized(row, 1, 2, mats.NEAREST).ravel(), [0, 20])
    np.testing.assert_allclose(mats.resized(row, 1, 2, mats.AREA).ravel(), [5, 60])
    # A third of 10 and two thirds of ...: what each new pixel covers.
    np.testing.assert_allclose(mats.resized(row[:, :3], 1, 2, mats.AREA).ravel(), [10 / 3, 50 / 3], rtol=1e-5)
    for mode in (mats.CUBIC, mats.LANCZOS):
        even = mats.resized(np.full((5, 5, 3), 7, np.uint8), 9, 4, mode)
        assert even.shape == (9, 4, 3)
        assert (even == 7).all()
    assert image_after(ImageResize(12, 4)).shape == (12, 4, 3)
    assert image_after(ImageAspectScale(12, max_size=14)).shape == (10 + 1, 14, 3)
    assert image_after(ImageAspectScale(12, scale_multiple_of=5)).shape == (10, 15, 3)


def test_crops_flips_and_fills_are_where_they_should_be():
    np.testing.assert_array_equal(image_after(ImageCenterCrop(4, 2)), PIXELS[2:4, 2:6])
    np.testing.assert_array_equal(image_after(ImageFixedCrop(0.25, 0.5, 1, 1)), PIXELS[3:, 2:])
    np.testing.assert_array_equal(image_after(ImageFixedCrop(1, 2, 5, 4, normalized=False)), PIXELS[2:4, 1:5])
    np.testing.assert_array_equal(image_after(ImageHFlip()), PIXELS[:, ::-1])
    np.testing.assert_array_equal(image_after(ImageMirror()), PIXELS[::-1, ::-1])
    filled = image_after(ImageFiller(0, 0, 0.5, 0.5, value=9))
    assert (filled[:3, :4] == 9).all()
    np.testing.assert_array_equal(filled[3:], PIXELS[3:])
    with pytest.raises(DataError, match="A crop must lie in the image, which has 6 rows and 8 columns"):
        image_after(ImageCenterCrop(100, 2, is_clip=False))


def test_colours_change_by_opencvs_formulas():
    np.testing.assert_array_equal(
        image_after(ImageBrightness(40, 40)), np.clip(PIXELS.astype(int) + 40, 0, 255).astype(np.uint8)
    )
    np.testing.assert_array_equal(
        image_after(bigdl.Contrast(1.5, 1.5)), np.clip(np.rint(PIXELS * np.float32(1.5)), 0, 255).astype(np.uint8)
    )
    blue, green, red = (np.full((1, 1, 3), each, np.uint8) for each in ([255, 0, 0], [0, 255, 0], [0, 0, 255]))
    # Eight bits have 180 units a circle: 60 of them lead from red to green, from green to blue.
    np.testing.assert_array_equal(image_after(ImageHue(60, 60), red), green)
    np.testing.assert_array_equal(image_after(ImageHue(60, 60), green), blue)
    np.testing.assert_array_equal(image_after(ImageSaturation(0, 0), blue), np.full((1, 1, 3), 255))
    floats = PIXELS.astype(np.float32)
    np.testing.assert_allclose(image_after(ImageHue(360, 360), floats), floats, atol=0.01)
    np.testing.assert_allclose(
        image_after(PerImageNormalize(0, 1), floats), (floats - floats.min()) / (floats.max() - floats.min()), atol=1e-6
    )
    np.testing.assert_allclose(image_after(PerImageNormalize(2, 0, norm_type=4), floats).ravel() @ floats.ravel(),
                               2 * np.linalg.norm(floats), rtol=1e-4)  # fmt: skip
    means = RANDOM.normal(size=PIXELS.size)
    np.testing.assert_allclose(image_after(ImagePixelNormalize(means)).ravel(), PIXELS.ravel() - means, rtol=1e-4)
    larger = image_after(ImageExpand(1, 2, 3, 2.0, 2.0))
    assert larger.shape == (12, 16, 3)
    assert (larger == [3, 2, 1]).all(axis=2).sum() >= 12 * 16 - 48


def test_random_steps_see_the_same_image_again_and_others_for_other_images():
    step = common.ChainedPreprocessing(
        [ImageRandomCrop(5, 4), ImageColorJitter(shuffle=True), ImageRandomPreprocessing(ImageHFlip(), 0.5)]
    )
    assert step.draws
    first, again = (through(step).pixels for _ in range(2))
    np.testing.assert_array_equal(first, again)
    others = [through(step, path=f"{number}").pixels for number in range(20)]
    assert len({each.tobytes() for each in others}) > 10
    kept = [through(ImageRandomPreprocessing(ImageHFlip(), 0.3), path=f"{number}").pixels for number in range(300)]
    assert 60 < sum(not np.array_equal(each, PIXELS) for each in kept) < 120


def test_local_and_distributed_sets_read_the_same(spark, folder):
    context = spark.sparkContext
    step = common.ChainedPreprocessing(
        [ImageResize(8, 8), ImageRandomCrop(4, 4), ImageMatToTensor(), ImageSetToSample()]
    )
    local = ImageSet.read(str(folder), with_label=True).transform(step)
    spread = ImageSet.read(str(folder), context, 2, with_label=True).transform(step)
    assert local.label_map == spread.label_map == {"a cat": 1, "dog": 2}
    assert local.is_local()
    assert spread.is_distributed()
    found = sorted(
        zip(spread.get_label().collect(), spread.get_image().collect(), strict=True), key=lambda each: each[0][0]
    )
    assert [label.tolist() for label, _ in found] == [[1.0]] * 3 + [[2.0]] * 3
    # In the order BGR: the first class is blue.
    assert [image.shape for image in local.get_image()] == [(3, 4, 4)] * 6
    assert all((image[0] > image[2]).all() for label, image in found if label[0] == 1)
    assert sorted(ImageSet.read(str(folder), with_label=True, one_based_label=False).get_label()) == [0, 0, 0, 1, 1, 1]
    assert [each[1] for each in local.get_predict()] == [None] * 6
    frame = bigdl.ImageFrame.read(str(folder / "dog"))
    assert ImageSet.from_image_frame(frame).get_image(to_chw=False)[0].shape == (10, 12, 3)
    both = ImageSet.from_rdds(context.parallelize([PIXELS] * 3, 2), context.parallelize([[1], [2], [0]], 2))
    assert [each.tolist() for each in both.get_label().collect()] == [[1.0], [2.0], [0.0]]
    read = ImageSet.read(f"{folder}/*", context, resize_height=5, resize_width=7, image_codec=0)
    assert {each.shape for each in read.transform(ImageBytesToMat()).get_image().collect()} == {(3, 5, 7)}


def test_a_file_that_is_no_image_is_named_where_it_is_needed(spark, folder, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"nothing")
    images = ImageSet.read(str(tmp_path), spark.sparkContext).transform(ImageMatToTensor())
    dataset = TFDataset.from_image_set(images, image=("float32", [3, 4, 4]), batch_size=2)
    with pytest.raises(Exception, match=r"broken.png' cannot be decoded. Expected: a file that Pillow reads"):
        dataset.row_source.records().collect()
    with pytest.raises(DataError, match="must lead to image files"):
        ImageSet.read(str(tmp_path / "*.gif"))
    with pytest.raises(JobError, match="`image_set` must be an ImageSet. Received: list"):
        TFDataset.from_image_set([], image=("float32", [3, 4, 4]))
    with pytest.raises(JobError, match="FeatureSet.tf_dataset must be replaced"):
        common.FeatureSet.tf_dataset(lambda: None, 3)
    with pytest.raises(JobError, match="RandomSampler is not here"):
        bigdl.RandomSampler  # noqa: B018 - looked up as programs import it


def test_sets_are_datasets_and_predictions_come_with_their_images(spark, folder):
    context = spark.sparkContext
    steps = [ImageResize(4, 4), ImageChannelNormalize(0, 0, 0, 255, 255, 255),
             ImageMatToTensor(to_RGB=True, format="NHWC"), ImageSetToSample()]  # fmt: skip
    images = ImageSet.read(str(folder), context, with_label=True, one_based_label=False)
    features = common.FeatureSet.image_frame(images.to_image_frame(), memory_type="DISK_2")
    for each in (common.ChainedPreprocessing(steps), ImageFeatureToSample()):
        features = features.transform(each)
    described = {"features": ("float32", [4, 4, 3]), "labels": ("int32", [1])}
    dataset = TFDataset.from_feature_set(features, batch_size=4, **described)
    assert dataset.memory_budget == 1
    kept = dataset.row_source.arrays(dataset.metas)
    assert kept[0].shape == (6, 4, 4, 3)
    assert sorted(kept[1].ravel()) == [0, 0, 0, 1, 1, 1]
    images.transform(common.ChainedPreprocessing(steps))
    served = TFDataset.from_image_set(images, ("float32", [4, 4, 3]), ("int32", [1]), batch_per_thread=2)
    entry = keras.Input((4, 4, 3))
    reddest = keras.Model(entry, keras.ops.mean(entry, axis=(1, 2)))

    from keraunos.compat.zoo.tfpark.tf_predictor import TFPredictor

    answered = TFPredictor.from_keras(reddest, served).predict()
    found = dict(answered.get_predict().collect())
    assert len(found) == 6
    for path, (means,) in found.items():
        assert (means.argmax() == 0) == ("dog" in path)
    assert answered.get_image(to_chw=False).first().shape == (4, 4, 3)


def test_records_are_made_of_what_columns_hold():
    vector = np.arange(6.0)
    both = common.FeatureLabelPreprocessing(common.SeqToMultipleTensors([[2], [2, 2]]), common.ScalarToTensor())
    sample = both.transform((vector, 3))
    assert [each.to_ndarray().tolist() for each in sample.features] == [[0, 1], [[2, 3], [4, 5]]]
    assert sample.label.to_ndarray().tolist() == [3]
    alone = common.ChainedPreprocessing([common.ToTuple(), both]).transform(vector)
    assert alone.labels == []
    assert common.FeatureToTupleAdapter(both).transform(vector).labels == []
    assert common.SeqToTensor([3, 2]).transform(vector).shape == (3, 2)
    assert common.BigDLAdapter(bigdl.Resize(1, 1)).transform(bigdl.ImageFeature(PIXELS)).pixels.shape == (1, 1, 3)
    with pytest.raises(DataError, match="SeqToTensor must be given 4 numbers"):
        common.SeqToTensor([4]).transform(vector)


def test_images_become_a_dataframe(spark, folder):
    frame = NNImageReader.readImages(f"{folder}/dog", spark.sparkContext, resizeH=5, resizeW=6, image_codec=1)
    rows = with_origin_column(frame).collect()
    assert len(rows) == 3
    for row in rows:
        assert (row.image.height, row.image.width, row.image.nChannels, row.image.mode) == (5, 6, 3, 16)
        assert len(row.image.data) == 90
        assert row.origin == row.image.origin
        pixels = RowToImageFeature().transform(row.image).pixels
        assert pixels[:, :, 2].min() >= 200 > pixels[:, :, 0].max()
