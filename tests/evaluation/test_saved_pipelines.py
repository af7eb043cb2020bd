"""Pipelines that are saved and loaded: the same results, in another place, and what is refused."""

import json
import re
import shutil
import tarfile
from pkgutil import resolve_name

import pandas as pd
import pyterrier as pt
import pytest
from lz4.frame import LZ4FrameFile
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from harp_plugin import HarpFusion, HarpPipeline, HarpReranker
from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.commands.index import IndexOptions, index
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions, evaluate
from harp_plugin.evaluation.runs import read_run
from harp_plugin.ranking.bm25 import Bm25
from harp_plugin.ranking.dense import DenseCosine, HarpRetriever
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex, LexicalFeatures
from harp_plugin.ranking.fusion import StageBefore
from harp_plugin.ranking.learned import LearnedRanker
from harp_plugin.ranking.pipeline import PIPELINE_PARTS
from harp_plugin.work.records import read_record, write_record

TOPICS = pd.DataFrame({"qid": ["q1", "q3"], "query": ["inverted index", "hyperlinks & pages"]})


@pytest.fixture
def pipeline(dataset, tiny_bert, tmp_path):
    """BM25 with and without fields, a cosine and a cross-encoder, whose files lie in ``here``."""
    here = tmp_path / "here"
    shutil.copytree(tiny_bert, here / "model")
    bm25 = Bm25(dataset, here / "index", num_results=4)
    fielded = FieldedBm25(FieldedIndex(dataset, here / "fields"), num_results=4)
    reranker = HarpReranker(here / "model", dataset=f"irds:{dataset}", passages="max")
    cosine = DenseCosine(here / "model", dataset=dataset, index_dir=here / "vectors")
    index(dataset, IndexOptions(output_dir=here / "dense", model=here / "model", quiet=True))
    dense = HarpRetriever(here / "dense", num_results=4)
    rest = {"fielded": fielded % 3, "model": bm25 >> reranker, "cosine": cosine, "dense": dense}
    systems = {"BM25": bm25, **rest}
    weights = {"BM25": 1, "fielded": 0.5, "model": 0.2, "cosine": 0.1, "dense": 0.1}
    made = HarpPipeline(HarpFusion(systems, weights=weights, candidates="union") % 3)
    made(TOPICS)
    return made


class TestContract(
    pt.testing.transformer_test_class(
        lambda: HarpPipeline(HarpFusion.of_scores({"model": HarpReranker("no/weights")}))
    )
):
    """Inspection and schematics."""


def test_a_loaded_pipeline_ranks_as_the_saved_one_wherever_it_is(pipeline, tmp_path):
    expected = pipeline(TOPICS)
    assert len(expected) > 2
    pipeline.save(tmp_path / "here" / "model")
    (tmp_path / "here").rename(tmp_path / "there")
    loaded = HarpPipeline.load(tmp_path / "there" / "model")
    pd.testing.assert_frame_equal(loaded(TOPICS), expected)
    assert loaded.search("inverted index")["docno"].tolist() == (
        expected.loc[expected["qid"] == "q1", "docno"].tolist()
    )
    systems = loaded.pipeline[0].systems
    assert systems["model"][0] is systems["BM25"]  # one object, which runs once
    assert systems["model"][1].model == str(tmp_path / "there" / "model")


def test_the_file_holds_relative_paths_and_is_the_same_each_time(pipeline, tmp_path):
    path = pipeline.save(tmp_path / "here" / "model")
    assert path.name == "harp_pipeline.json" and str(tmp_path) not in path.read_text()
    first = path.read_bytes()
    assert pipeline.save(tmp_path / "here" / "model").read_bytes() == first
    record = json.loads(first)
    assert list(record["models"]) == ["."] and record["versions"]["torch"]


def test_a_fusion_in_a_pipeline(tiny_bert, tmp_path):
    fusion = HarpFusion.of_scores({"a": HarpReranker(tiny_bert), "b": HarpReranker(tiny_bert)})
    HarpPipeline(fusion).save(tmp_path)
    assert HarpPipeline.load(tmp_path) == HarpPipeline(fusion)


def test_the_fields_of_a_collection_are_saved(dataset, tmp_path):
    titles = Bm25(JudgedDataset("harp-encyclopedia", ["title"]), tmp_path / "index", num_results=5)
    expected = titles(TOPICS)
    HarpPipeline(titles).save(tmp_path / "saved")
    pd.testing.assert_frame_equal(HarpPipeline.load(tmp_path / "saved")(TOPICS), expected)


def test_features_that_one_pass_computes(dataset, tiny_bert, tmp_path):
    """`a ** b` is compiled to one transformer, which can be saved as its parts can."""
    options = [{"max_length": 16}, {"max_length": 32}]
    first, second = (HarpReranker(tiny_bert, dataset=f"irds:{dataset}", **o) for o in options)
    compiled = HarpPipeline(
        Bm25(dataset, tmp_path / "index", num_results=4) >> (first**second).compile()
    )
    expected = compiled(TOPICS)
    compiled.save(tmp_path / "saved")
    pd.testing.assert_frame_equal(HarpPipeline.load(tmp_path / "saved")(TOPICS), expected)


def test_a_model_that_has_changed_is_refused(pipeline, tmp_path):
    folder = tmp_path / "here" / "model"
    pipeline.save(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 1e-3}))
    with pytest.raises(HarpError, match=r"model \. is not the one that .* was saved with"):
        HarpPipeline.load(folder)


def test_a_cosine_whose_pooling_has_changed_is_refused(tiny_bert, tmp_path):
    modules = [Transformer(str(tiny_bert)), Pooling(32, pooling_mode="mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "encoder"))
    HarpPipeline(DenseCosine(tmp_path / "encoder")).save(tmp_path / "saved")
    HarpPipeline.load(tmp_path / "saved")
    config = tmp_path / "encoder" / "1_Pooling" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "pooling_mode": "cls"}))
    with pytest.raises(HarpError, match=r"model \.\./encoder is not the one that .* saved with"):
        HarpPipeline.load(tmp_path / "saved")


def test_an_index_that_is_missing_is_named(pipeline, tmp_path):
    pipeline.save(tmp_path / "here" / "model")
    shutil.rmtree(tmp_path / "here" / "fields")
    with pytest.raises(HarpError, match=r"needs .*/here/fields, which is not there"):
        HarpPipeline.load(tmp_path / "here" / "model")


def test_other_versions_are_told(pipeline, tmp_path, caplog):
    path = pipeline.save(tmp_path / "here" / "model")
    record = read_record(path)
    record["versions"]["torch"] = "1.0"
    write_record(path, record)
    HarpPipeline.load(path.parent)
    assert "was saved with other packages (torch: 1.0 then, " in caplog.text


def test_damaged_files_and_those_of_others_are_refused(pipeline, tmp_path):
    folder = tmp_path / "here" / "model"
    with pytest.raises(HarpError, match=r"no pipeline in .*: name a folder that"):
        HarpPipeline.load(folder)
    path = pipeline.save(folder)
    record = read_record(path)
    write_record(path, {**record, "format": 2})
    with pytest.raises(HarpError, match="has format 2, and this release reads 1"):
        HarpPipeline.load(folder)
    write_record(path, {**record, "pipeline": {"$kind": "os.system", "command": "ls"}})
    with pytest.raises(HarpError, match=r"unknown part of a pipeline 'os\.system'"):
        HarpPipeline.load(folder)
    write_record(path, {**record, "pipeline": {"$kind": "cutoff", "k": 3, "x": 1}})
    with pytest.raises(HarpError, match="part 'cutoff' of the pipeline cannot be made"):
        HarpPipeline.load(folder)
    path.write_text("{}")
    with pytest.raises(HarpError, match="is damaged"):
        HarpPipeline.load(folder)
    with pytest.raises(HarpError, match="or was not written by harp"):
        pipeline.save(folder)


STEP = {"$kind": "cutoff", "k": 3}
AGAIN = "is damaged ({}): save the pipeline again"
DAMAGES = {
    "no pipeline": ({"pipeline": None}, AGAIN.format("KeyError")),
    "no models": ({"models": None}, AGAIN.format("KeyError")),
    "models are a list": ({"models": []}, AGAIN.format("AttributeError")),
    "versions are a number": ({"versions": 3}, AGAIN.format("TypeError")),
    "the pipeline is a text": ({"pipeline": "bm25"}, "'bm25' is not a pipeline"),
    "no steps": ({"pipeline": {"$steps": []}}, "part '$steps' of the pipeline cannot be made"),
    "steps are a text": ({"pipeline": {"$steps": "a"}}, "part '$steps' of the pipeline cannot"),
    "a step is a text": ({"pipeline": {"$steps": ["a"]}}, "part '$steps' of the pipeline cannot"),
    "a path is a number": (
        {"pipeline": {"$kind": "bm25", "index_dir": {"$path": 3}}},
        AGAIN.format("TypeError"),
    ),
    "a dataset is a number": (
        {"pipeline": {"$kind": "bm25", "dataset": {"$dataset": 3}}},
        AGAIN.format("AttributeError"),
    ),
    "a mapping without pairs": (
        {"pipeline": {"$kind": "fusion", "systems": {"$mapping": [1]}}},
        AGAIN.format("TypeError"),
    ),
    "a key is a list": (
        {"pipeline": {"$kind": "fusion", "systems": {"$mapping": [[[], STEP]]}}},
        AGAIN.format("TypeError"),
    ),
    "no kind": ({"pipeline": {}}, "unknown part of a pipeline ''"),
    "a kind is a list": ({"pipeline": {"$kind": []}}, AGAIN.format("TypeError")),
    "a function": ({"pipeline": {"$kind": "os:abort"}}, "unknown part of a pipeline 'os:abort'"),
    "an argument of another type": (
        {"pipeline": {"$kind": "fusion", "systems": 7}},
        "part 'fusion' of the pipeline cannot be made",
    ),
    "a model is a list": (
        {"pipeline": {"$steps": [STEP, {"$kind": "cosine", "model": []}]}},
        "model is []: name a folder, one of the hub, package:NAME, or a SentenceTransformer",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_pipeline_is_one_line(name, tmp_path):
    damage, said = DAMAGES[name]
    whole = {"format": 1, "pipeline": STEP, "models": {}, "versions": {}}
    record = {key: value for key, value in {**whole, **damage}.items() if value is not None}
    write_record(tmp_path / "harp_pipeline.json", record)
    with pytest.raises(HarpError, match=re.escape(said)) as caught:
        HarpPipeline.load(tmp_path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_what_cannot_be_saved_is_named(tmp_path, dataset):
    with pytest.raises(HarpError, match=r"there is no .*/none yet: search once before you save"):
        HarpPipeline(Bm25(dataset, tmp_path / "none")).save(tmp_path)
    with pytest.raises(HarpError, match="cannot be saved in a pipeline: known parts are bm25, "):
        HarpPipeline(pt.apply.doc_score(lambda row: 1.0)).save(tmp_path)
    with pytest.raises(HarpError, match=r"^Sum cannot be saved .* write a sum as HarpFusion"):
        HarpPipeline(StageBefore() + StageBefore()).save(tmp_path)
    with pytest.raises(HarpError, match="is not a pipeline: name a transformer"):
        HarpPipeline("bm25")
    assert not (tmp_path / "harp_pipeline.json").exists()


def test_a_saved_pipeline_is_a_first_stage(pipeline, dataset, tmp_path):
    pipeline.save(tmp_path / "here")
    options = {"dataset": dataset, "measures": ["RR@10"], "quiet": True}
    stage = {"first_stage": f"pipeline:{tmp_path / 'here'}", "output_dir": str(tmp_path / "out")}
    results = evaluate(EvaluationOptions(**options, **stage))
    assert list(results.means) == ["pipeline"]
    run = read_run(tmp_path / "out" / "runs" / "pipeline.run")
    expected = pipeline(JudgedDataset(dataset).topics)
    keys = ["qid", "docno", "rank"]
    assert sorted(run[keys].values.tolist()) == sorted(expected[keys].values.tolist())
    HarpPipeline(pipeline.pipeline % 1).save(tmp_path / "here")
    with pytest.raises(HarpError, match="other settings"):
        evaluate(EvaluationOptions(**options, **stage))


def unpacked(package, folder):
    with LZ4FrameFile(package) as file, tarfile.open(fileobj=file, mode="r|") as members:
        members.extractall(folder, filter="data")
    return folder


def test_a_pipeline_is_an_artifact_of_pyterrier(tiny_bert, tmp_path):
    """The package has what the pipeline needs, and is loaded where nothing else is."""
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(tiny_bert, here / "model")
    (here / "collection" / "test").mkdir(parents=True)
    names = ("doc_id", "title", "text", "anchor_text")
    texts = {"d1": "An inverted index", "d2": "Links lead to pages", "d3": "An index of pages"}
    pages = (dict(zip(names, (id, id, text, ""), strict=True)) for id, text in texts.items())
    lines = "".join(f"{json.dumps(page)}\n" for page in pages)
    (here / "collection" / "documents.jsonl").write_text(lines)
    (here / "collection" / "test" / "queries.tsv").write_text("q\tindex\n")
    (here / "collection" / "test" / "qrels.txt").write_text("q 0 d1 1\n")
    (here / "notes.txt").write_text("not needed")
    collection = f"harp:{here / 'collection'}/test"
    bm25 = FieldedBm25(FieldedIndex(collection, here / "i"), num_results=4)
    made = HarpPipeline(bm25 >> HarpReranker(here / "model", dataset=f"irds:{collection}"))
    with pytest.raises(HarpError, match="in no folder yet: save it before you share it"):
        made.build_package(str(tmp_path / "package"))
    (here / "i").mkdir()
    made.save(here)
    with pytest.raises(HarpError, match=r"/i/fielded-bm25.* is no whole index: search"):
        made.build_package(str(tmp_path / "package"), verbose=False)
    expected = made(TOPICS)
    assert pt.Artifact.load(str(here)) == made
    FieldedIndex(collection, here / "i", ["title"]).make()
    unpacked(made.build_package(str(tmp_path / "package"), verbose=False), there)
    shutil.rmtree(here)
    parts = {path.name for path in there.iterdir()}
    assert parts == {"collection", "i", "model", "harp_pipeline.json", "pt_meta.json"}
    assert len(list((there / "i").iterdir())) == 1
    assert json.loads((there / "pt_meta.json").read_text())["package_hint"] == "harp_plugin"
    loaded = pt.Artifact.load(str(there))
    pd.testing.assert_frame_equal(loaded(TOPICS), expected)
    loaded.save(there / "model")
    with pytest.raises(HarpError, match=r"which is not in .*/there/model: make it there"):
        loaded.build_package(str(tmp_path / "package"), verbose=False)


def test_indexes_may_lie_in_the_folder_of_a_model_or_of_a_collection(tiny_bert, tmp_path):
    here = tmp_path / "here"
    shutil.copytree(tiny_bert, here)
    names = ("doc_id", "title", "text", "anchor_text")
    page = dict(zip(names, ("d1", "index", "An index", ""), strict=True))
    (here / "documents.jsonl").write_text(f"{json.dumps(page)}\n")
    first = FieldedBm25(FieldedIndex(f"harp:{here}", here))
    made = HarpPipeline(first >> HarpReranker(here, dataset=f"irds:harp:{here}"))
    expected = made(TOPICS)
    made.save(here)
    FieldedIndex(f"harp:{here}", here, ["title"]).make()
    package = made.build_package(str(tmp_path / "package"), verbose=False)
    there = unpacked(package, tmp_path / "there")
    shutil.rmtree(here)
    assert len(list(there.glob("fielded-bm25-*"))) == 1 and not list(there.rglob("*.lock"))
    pd.testing.assert_frame_equal(pt.Artifact.load(str(there))(TOPICS), expected)


def write_documents(folder):
    folder.mkdir(parents=True)
    page = {"doc_id": "d1", "title": "index", "text": "An index", "anchor_text": ""}
    (folder / "documents.jsonl").write_text(f"{json.dumps(page)}\n")
    return folder


def test_a_collection_named_as_a_split_is_shared_and_nothing_else(tmp_path):
    here = tmp_path / "here"
    collection = write_documents(here / "test")
    (here / "private.txt").write_text("not needed")
    made = HarpPipeline(FieldedBm25(FieldedIndex(f"harp:{collection}", here / "index")))
    expected = made(TOPICS)
    made.save(here)
    package = made.build_package(str(tmp_path / "package"), verbose=False)
    there = unpacked(package, tmp_path / "there")
    shutil.rmtree(here)
    assert not (there / "private.txt").exists()
    pd.testing.assert_frame_equal(pt.Artifact.load(str(there))(TOPICS), expected)


def test_collections_in_the_home_folder_and_at_a_url_are_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write_documents(tmp_path / "pages")
    for name in ("harp:~/pages", f"harp:file://{folder}"):
        made = HarpPipeline(Bm25(name, tmp_path / "index", num_results=3))
        expected = made(TOPICS)
        made.save(tmp_path / "saved")
        pd.testing.assert_frame_equal(HarpPipeline.load(tmp_path / "saved")(TOPICS), expected)
        shutil.rmtree(tmp_path / "saved")


def test_a_collection_at_a_url_stays_there_when_a_pipeline_is_shared(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, here = write_documents(tmp_path / "pages"), tmp_path / "here"
    here.mkdir()
    made = HarpPipeline(FieldedBm25(FieldedIndex(f"harp:file://{folder}", here / "index")))
    expected = made(TOPICS)
    made.save(here)
    package = made.build_package(str(tmp_path / "package"), verbose=False)
    there = unpacked(package, tmp_path / "there")
    assert not list(there.rglob("documents.jsonl"))
    pd.testing.assert_frame_equal(pt.Artifact.load(str(there))(TOPICS), expected)


def test_a_pipeline_that_has_learned_is_saved(dataset, tmp_path):
    judged = JudgedDataset(dataset)
    index = FieldedIndex(dataset, tmp_path / "fields")
    lexical = LexicalFeatures(index, fields=index.fields[:1])
    first = FieldedBm25(index, num_results=4)
    learned = first >> (StageBefore() ** lexical) >> LearnedRanker()
    learned.fit(judged.topics, judged.qrels)
    expected = learned(judged.topics)
    HarpPipeline(learned).save(tmp_path)
    loaded = HarpPipeline.load(tmp_path)
    assert loaded.pipeline == learned
    pd.testing.assert_frame_equal(loaded(judged.topics), expected)


@pytest.mark.parametrize("kind", PIPELINE_PARTS)
def test_a_kind_of_part_is_named_by_where_it_is_defined(kind):
    """By that name, its objects are found when they are saved."""
    made = resolve_name(PIPELINE_PARTS[kind])
    assert PIPELINE_PARTS[kind] == f"{made.__module__}:{made.__name__}"
