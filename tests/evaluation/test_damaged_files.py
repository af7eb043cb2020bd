"""Files of ours that are damaged, missing or replaced: the same result, or one line; never both."""

import gzip
import json
import shutil

import pytest

from harp_plugin import HarpReranker
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, evaluate
from harp_plugin.evaluation.reranking import service
from harp_plugin.evaluation.reranking.options import RerankOptions
from harp_plugin.work.records import write_record

pytestmark = pytest.mark.integration

RUN = "q1 Q0 d5 0 2.0 x\nq1 Q0 d1 1 1.0 x\nq2 Q0 d2 0 1.0 x\nq3 Q0 d1 0 1.5 x\nq3 Q0 d3 1 1.0 x\n"


def flipped(content: bytes, part: int, of: int = 7) -> bytes:
    """The same with one bit of it flipped, at a place between its beginning and its end."""
    changed = bytearray(content)
    changed[part * (len(content) - 1) // of] ^= 1 << part % 8
    return bytes(changed)


DAMAGES = {
    **{f"a bit at {part}/7": lambda b, part=part: flipped(b, part) for part in range(8)},
    "half": lambda content: content[: len(content) // 2],
    "one byte less": lambda content: content[:-1],
    "one byte more": lambda content: content + b"\n",
    "nothing in it": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "another file": lambda content: b'{"a stranger": true}\n',
    "missing": lambda content: None,
}


def damage(path, how):
    """Damage a file; gives whether that changed anything."""
    before = path.read_bytes()
    after = DAMAGES[how](before)
    path.unlink()
    if after is not None:
        path.write_bytes(after)
    return after != before


def same_or_one_line(work, expected, how):
    """Find that work on damaged files gives the undisturbed result, or one line."""
    try:
        found = work()
    except HarpError as error:
        assert "\n" not in str(error) and len(str(error)) < 1200, how
        return
    assert found == expected, how


@pytest.fixture
def model(tiny_bert):
    return str(tiny_bert)


class TestEvaluation:
    """The folder of `harp evaluate`."""

    @pytest.fixture
    def made(self, make_dataset, model, tmp_path):
        run = tmp_path / "first.run"
        run.write_text(RUN)
        options = EvaluationOptions(
            dataset=make_dataset(),
            first_stage=str(run),
            rerankers={"tiny": model},
            output_dir=str(tmp_path / "out"),
            quiet=True,
        )
        return options, evaluate(options).means

    def test_every_file_and_damage(self, made, tmp_path):
        options, expected = made
        folder = tmp_path / "out"
        good = {path: path.read_bytes() for path in folder.rglob("*.*") if path.name[0] != "."}
        assert len(good) == 5
        for path, content in good.items():
            for how in DAMAGES:
                path.unlink()
                path.write_bytes(content)
                if damage(path, how):
                    label = f"{path.name}: {how}"
                    same_or_one_line(lambda: evaluate(options).means, expected, label)
                for other, original in good.items():
                    other.write_bytes(original)
        assert evaluate(options).means == expected

    @pytest.mark.parametrize("name", ["results.json", "runs/tiny.run", "runs/tiny.run.json"])
    def test_a_strangers_file_is_left(self, made, tmp_path, name):
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

    def test_the_first_stage_is_never_the_output(self, made, tmp_path):
        options, _ = made
        shutil.rmtree(tmp_path / "out")
        run = tmp_path / "out" / "runs" / "tiny.run"
        run.parent.mkdir(parents=True)
        run.write_text(RUN)
        options.first_stage, options.overwrite = str(run), True
        with pytest.raises(HarpError, match="is the first stage: name another"):
            evaluate(options)
        assert run.read_text() == RUN


class TestRerankedRun:
    """A finished run, a half-done one, and their notes."""

    @pytest.fixture
    def work(self, make_dataset, model, tmp_path, monkeypatch):
        monkeypatch.setattr(service, "PAIRS_AT_ONCE", 1)
        run = tmp_path / "first.run"
        run.write_text(RUN)
        output = tmp_path / "out.run.gz"
        options = RerankOptions(dataset=make_dataset(), model=model, output=str(output), quiet=True)

        def rerank():
            service.rerank(str(run), options)
            return gzip.decompress(output.read_bytes())

        return rerank, output

    @pytest.mark.parametrize("name", ["out.run.gz", "out.run.gz.json"])
    def test_a_finished_run(self, work, tmp_path, name):
        rerank, output = work
        expected = rerank()
        note = output.with_name(f"{output.name}.json")
        good = output.read_bytes(), note.read_bytes()
        for how in DAMAGES:
            output.write_bytes(good[0])
            note.write_bytes(good[1])
            if damage(tmp_path / name, how):
                same_or_one_line(rerank, expected, how)

    @pytest.mark.parametrize("name", ["out.run.gz.part", "out.run.gz.part.json"])
    def test_a_half_done_run(self, work, tmp_path, name, monkeypatch):
        rerank, _ = work
        transform, calls = HarpReranker.transform, []

        def stopping(self, frame):
            calls.append(frame)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return transform(self, frame)

        monkeypatch.setattr(HarpReranker, "transform", stopping)
        with pytest.raises(KeyboardInterrupt):
            rerank()
        monkeypatch.setattr(HarpReranker, "transform", transform)
        half = {path: path.read_bytes() for path in tmp_path.glob("out.run.gz.part*")}
        assert len(half) == 2
        expected = rerank()
        assert expected.startswith(half[tmp_path / "out.run.gz.part"])
        for how in DAMAGES:
            for path in tmp_path.glob("out.run.gz*"):
                path.unlink()
            for path, content in half.items():
                path.write_bytes(content)
            if damage(tmp_path / name, how):
                same_or_one_line(rerank, expected, how)

    def test_a_damaged_score_of_a_half_done_run(self, work, tmp_path):
        """A digit of a score: the line is still a line of a run."""
        rerank, output = work
        expected = rerank()
        part = tmp_path / "out.run.gz.part"
        note = json.loads(output.with_name(f"{output.name}.json").read_text())
        note = {k: v for k, v in note.items() if k != "checksum"}
        lines = b"".join(expected.splitlines(keepends=True)[:2])
        output.unlink()
        output.with_name(f"{output.name}.json").unlink()
        part.write_bytes(lines.replace(b".", b".1", 1))
        write_record(part.with_name(f"{part.name}.json"), note | {"bytes": len(lines)})
        with pytest.raises(HarpError, match="has changed since it was written"):
            rerank()
