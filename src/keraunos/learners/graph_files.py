"""TensorFlow graphs in files, looked through before TensorFlow runs anything of them. Runs on the driver."""

from __future__ import annotations

import zlib
from pathlib import Path, PurePosixPath
from typing import Any

from keraunos.errors import ModelError
from keraunos.learners.archive_parts import check_expansion
from keraunos.learners.graph_archive import GraphArchive
from keraunos.learners.graph_trust import check_graph, check_reached, check_restoring

_ASSETS = "saved_model_assets"
_INITIALIZERS = ("saved_model_main_op", "legacy_init_op")
_INIT_SIGNATURE = "__saved_model_init_op"
_PIECE = 1 << 20


def read_meta_graph(path: Path) -> Any:
    """The MetaGraph of a checkpoint, in TensorFlow's binary format or in its text.

    Raises:
        ModelError: where it does more than compute, and restore the checkpoint that it belongs to.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import meta_graph_pb2

    content = path.read_bytes()
    meta = meta_graph_pb2.MetaGraphDef()
    try:
        meta.ParseFromString(content)
    except DecodeError:
        try:
            text_format.Parse(content.decode(), meta)
        except (UnicodeDecodeError, text_format.ParseError) as error:
            raise ModelError(f"The file {path.name!r} must hold a MetaGraph. Received: {str(error)[:200]}.") from error
    what = f"the graph of {path.name!r}"
    check_graph(meta.graph_def, what, saving=True)
    _check_saver(meta, what)
    return meta


def check_archive(archive: GraphArchive) -> None:
    """Refuse an archive of a file whose graph does more than compute."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import meta_graph_pb2

    meta = meta_graph_pb2.MetaGraphDef()
    try:
        meta.ParseFromString(archive.graph)
    except DecodeError as error:
        raise ModelError(f"The graph of an archive cannot be read. Received: {str(error)[:200]}.") from error
    check_graph(meta.graph_def, "the graph of the archive")


def check_saved_model(path: str) -> None:
    """Refuse a SavedModel that does more than compute, restore its own variables and read its own assets.

    Whatever else is asked of it has to be looked at with `check_reached`. The path may be on any file system that
    TensorFlow knows.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2
    from tensorflow.io import gfile

    model = saved_model_pb2.SavedModel()
    whole, text, pieces = (f"{path.rstrip('/')}/saved_model.{ending}" for ending in ("pb", "pbtxt", "cpb"))
    if gfile.exists(pieces):
        raise ModelError(
            f"The SavedModel {path!r} must be in one file. Expected: 'saved_model.pb'. Received: one in pieces, "
            "'saved_model.cpb', whose operations are not looked through. Save it again as one file."
        )
    try:
        if gfile.exists(whole):
            model.ParseFromString(gfile.GFile(whole, "rb").read())
        elif gfile.exists(text):
            text_format.Parse(gfile.GFile(text, "r").read(), model)
    except (DecodeError, UnicodeDecodeError, text_format.ParseError) as error:
        raise ModelError(f"The folder {path!r} must hold a SavedModel. Received: {str(error)[:200]}.") from error
    # Where there is none, TensorFlow says what is missing.
    for meta in model.meta_graphs:
        _check_meta_graph(meta, f"the SavedModel {path!r}")


def inflated(content: bytes, *, gzip: bool = False) -> bytes:
    """Compressed bytes as they were; raises where they are none, or become far more."""
    unpacking = zlib.decompressobj(wbits=31 if gzip else 15)
    pieces: list[bytes] = []
    size, rest = 0, content
    try:
        while rest and not unpacking.eof:
            pieces.append(unpacking.decompress(rest, _PIECE))
            rest = unpacking.unconsumed_tail
            size += len(pieces[-1])
            check_expansion("graph", size, len(content))
        pieces.append(unpacking.flush())
    except zlib.error as error:
        raise ModelError(f"A graph of a model cannot be unpacked. Received: {error}.") from error
    if not unpacking.eof:
        raise ModelError("A graph of a model cannot be unpacked. Received: bytes that end too early.")
    return b"".join(pieces)


def _check_meta_graph(meta: Any, what: str) -> None:
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import meta_graph_pb2

    assets = list(meta.asset_file_def)
    try:
        for packed in meta.collection_def[_ASSETS].any_list.value if _ASSETS in meta.collection_def else ():
            asset = meta_graph_pb2.AssetFileDef()
            packed.Unpack(asset)
            assets.append(asset)
    except DecodeError as error:
        raise ModelError(f"An asset of {what} cannot be read. Received: {error}.") from error
    for asset in assets:
        name = PurePosixPath(asset.filename)
        if name.is_absolute() or ".." in name.parts or "://" in asset.filename:
            raise ModelError(
                f"An asset of {what} must lie in its folder. Expected: the name of a file. Received: "
                f"{asset.filename!r}."
            )
    paths = {asset.tensor_info.name.partition(":")[0] for asset in assets}
    check_graph(meta.graph_def, what, saving=True, assets=paths)
    _check_saver(meta, what)
    ends = [
        name for key in _INITIALIZERS if key in meta.collection_def for name in meta.collection_def[key].node_list.value
    ]
    if _INIT_SIGNATURE in meta.signature_def:
        ends += [each.name for each in meta.signature_def[_INIT_SIGNATURE].outputs.values()]
    check_reached(meta.graph_def, ends, what, assets=paths)


def _check_saver(meta: Any, what: str) -> None:
    if meta.HasField("saver_def"):
        saver = meta.saver_def
        path = saver.filename_tensor_name.partition(":")[0]
        check_restoring(meta.graph_def, saver.restore_op_name, path, what)
