"""`bigdl.dataset.news20`: the 20 Newsgroups texts, and GloVe's word vectors, from a folder. Runs on the driver."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

from keraunos.compat.zoo.bigdl.dataset import base

NEWS20_URL = "http://qwone.com/~jason/20Newsgroups/20news-18828.tar.gz"
GLOVE_URL = "http://nlp.stanford.edu/data/glove.6B.zip"

CLASS_NUM = 20


def download_news20(dest_dir: str) -> str:
    """Returns the folder with the texts: an existing one, or the archive in `dest_dir`, unpacked there."""
    folder = Path(dest_dir, "20news-18828")
    if not folder.is_dir():
        with tarfile.open(base.maybe_download("20news-18828.tar.gz", dest_dir, NEWS20_URL)) as archive:
            archive.extractall(dest_dir, filter="data")
    return str(folder)


def download_glove_w2v(dest_dir: str) -> str:
    """Returns the folder with the vectors: an existing one, or the archive in `dest_dir`, unpacked there."""
    folder = Path(dest_dir, "glove.6B")
    if not folder.is_dir():
        with zipfile.ZipFile(base.maybe_download("glove.6B.zip", dest_dir, GLOVE_URL)) as archive:
            archive.extractall(folder)  # noqa: S202 - a zip file of the user's; zipfile keeps it in the folder
    return str(folder)


def get_news20(source_dir: str = "./data/news20/") -> list[tuple[str, int]]:
    """Returns each text with its label; groups count from 1, in the order of their names."""
    texts = []
    for label, group in enumerate(sorted(Path(download_news20(source_dir)).iterdir()), 1):
        if group.is_dir():
            numbered = sorted(each for each in group.iterdir() if each.name.isdigit())
            texts += [(each.read_text(encoding="latin-1"), label) for each in numbered]
    return texts


def get_glove_w2v(source_dir: str = "./data/news20/", dim: int = 100) -> dict[str, list[float]]:
    """Returns the vector of each word, with `dim` numbers."""
    folder = download_glove_w2v(source_dir)
    name = f"glove.6B.{dim}d.txt"
    vectors = {}
    with Path(base.maybe_download(name, folder, GLOVE_URL)).open(encoding="latin-1") as file:
        for line in file:
            word, *numbers = line.rstrip("\n").split(" ")
            vectors[word] = [float(each) for each in numbers]
    return vectors
