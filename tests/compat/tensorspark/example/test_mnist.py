from keraunos.compat.tensorspark.example import mnist
from tests.compat.tensorspark.idx import write_digits


def test_one_process_learns_the_digits(tmp_path, capsys):
    write_digits(tmp_path / "mnist", images="idx1")
    accuracy = mnist.train(str(tmp_path), steps=150)
    assert accuracy > 0.85
    assert capsys.readouterr().out == f"test accuracy {accuracy:.4f}\n"
