"""Files of ours that are missing or damaged, and files that are not ours."""

import shutil

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, evaluate

pytestmark = pytest.mark.integration

RUN = "q1 Q0 d5 0 2.0 x\nq1 Q0 d1 1 1.0 x\nq2 Q0 d2 0 1.0 x\nq3 Q0 d1 0 1.5 x\nq3 Q0 d3 1 1.0 x\n"


@pytest.fixture
def made(make_dataset, tiny_bert, tmp_path):
    run = tmp_path / "first.run"
    run.write_text(RUN)
    options = EvaluationOptions(
        dataset=make_dataset(),
        first_stage=str(run),
        rerankers={"tiny": str(tiny_bert)},
        output_dir=str(tmp_path / "out"),
        quiet=True,
    )
    return options, evaluate(options).means


def test_what_is_missing_is_made_again(made, tmp_path):
    options, expected = made
    names = ["results.json", "manifest.json", "runs/tiny.run", "runs/first-stage.run"]
    for name in names:
        path = tmp_path / "out" / name
        before = path.read_bytes()
        path.unlink()
        if name == "manifest.json":
            with pytest.raises(HarpError, match="name another --output-dir"):
                evaluate(options)
            path.write_bytes(before)
        assert evaluate(options).means == expected
        assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["results.json", "runs/tiny.run", "runs/tiny.run.json"])
def test_a_strangers_file_is_left(made, tmp_path, name):
    options, _ = made
    for overwrite in (False, True):
        shutil.rmtree(tmp_path / "out")
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True)
        path.write_text("a stranger's")
        options.overwrite = overwrite
        with pytest.raises(HarpError, match="name another --output-dir"):
            evaluate(options)
        assert path.read_text() == "a stranger's"


def test_the_first_stage_is_never_the_output(made, tmp_path):
    options, _ = made
    shutil.rmtree(tmp_path / "out")
    run = tmp_path / "out" / "runs" / "tiny.run"
    run.parent.mkdir(parents=True)
    run.write_text(RUN)
    options.first_stage, options.overwrite = str(run), True
    with pytest.raises(HarpError, match=r"was not written by harp.*: name another"):
        evaluate(options)
    assert run.read_text() == RUN
