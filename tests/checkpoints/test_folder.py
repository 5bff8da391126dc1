import pytest

from keraunos.checkpoints.folder import LocalFolder
from keraunos.testing.checkpoint_folder_suite import CheckpointFolderSuite


class TestLocalFolder(CheckpointFolderSuite):
    @pytest.fixture
    def files(self, tmp_path):
        return tmp_path / "a" / "folder with spaces"

    @pytest.fixture
    def folder(self, files):
        return LocalFolder(files)

    def test_what_goes_wrong_names_the_file(self, folder, files):
        files.parent.mkdir()
        files.write_bytes(b"a file where the folder would be")
        with pytest.raises(OSError, match="folder with spaces"):
            folder.make("sub")
        with pytest.raises(OSError, match="folder with spaces"):
            folder.write("file", [b"content"])
        with pytest.raises(NotADirectoryError):
            folder.names()
