"""Whole cross-validations: who learns from what, what is pooled, what is made again."""

import json
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import ir_datasets
import ir_measures
import pandas as pd
import pytest
from safetensors.torch import load_file, save_file
from scipy.stats import ttest_rel
from statsmodels.stats.multitest import multipletests
from training.judged_data import QRELS, register, write_run

from harp_plugin import HarpReranker
from harp_plugin.cli import main
from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.collections.judged_queries import few_shot_order
from harp_plugin.errors import HarpError
from harp_plugin.evaluation.cross_validation import cross_validate, experiment, fold_runs
from harp_plugin.evaluation.cross_validation.plot import draw
from harp_plugin.evaluation.results import measure_runs
from harp_plugin.evaluation.runs import read_run
from harp_plugin.ranking.fusion import fuse
from harp_plugin.ranking.fusion_weights import learn_weights

from .conftest import FINETUNING

pytestmark = pytest.mark.integration

CELLS = {
    (count, system): f"{system}-{count}-queries-seed-42"
    for count in ("2", "all")
    for system in ("slow", "fast")
}


@pytest.fixture(scope="module")
def done(make, tmp_path_factory):
    """A finished cross-validation, its checkpoints kept."""
    return cross_validate(make(tmp_path_factory.mktemp("done"), keep_checkpoints=True))


@pytest.fixture(scope="module")
def written(done):
    return json.loads((done.path / "results.json").read_text())


def everything(folder: Path) -> dict[str, bytes]:
    """What is written but for options, checkpoints and manifests, which name the folder."""
    kinds = (".run", ".txt", ".tex", ".png", ".svg")
    files = [*folder.glob("runs/*"), *folder.glob("finetuning/*/*.run"), *folder.glob("*.*")]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files if f.suffix in kinds}


def test_what_is_learnt_from_is_never_held_out(done, written, judged):
    folds = [set(fold) for fold in written["folds"]]
    queries = {query.query_id for query in ir_datasets.load(judged[0]).queries_iter()}
    assert sorted(query for fold in folds for query in fold) == sorted(queries)
    for number, fold in enumerate(folds, start=1):
        train = set((done.path / "folds" / f"fold-{number}.train.txt").read_text().split())
        assert train == queries - fold
        for cell in CELLS.values():
            folder = done.path / "finetuning" / cell
            manifest = json.loads((folder / f"fold-{number}" / "manifest.json").read_text())
            query_ids = Path(manifest["settings"]["query_ids"])
            assert query_ids == done.path / "folds" / f"fold-{number}.train.txt"
            assert {line.split()[0] for line in (folder / f"fold-{number}.run").open()} == fold


def test_few_queries_are_the_first_of_the_few_shot_order(done):
    for number in (1, 2):
        train = (done.path / "folds" / f"fold-{number}.train.txt").read_text().split()
        usable = [query for query in few_shot_order(train, 42) if query != "q3"]
        learnt = {}
        for cell in CELLS.values():
            folder = done.path / "finetuning" / cell / f"fold-{number}"
            manifest = json.loads((folder / "manifest.json").read_text())
            learnt[cell] = manifest["settings"]["groups_per_epoch"]
            assert manifest["settings"].get("queries") in (None, 2)
        for (count, _), cell in CELLS.items():
            assert learnt[cell] == (2 if count == "2" else len(usable))


def test_pooled_measures_equal_ir_measures_on_the_folds_runs(done, judged):
    dataset = ir_datasets.load(judged[0])
    qrels = pd.DataFrame(
        [(q.query_id, q.doc_id, max(q.relevance, 0)) for q in dataset.qrels_iter()],
        columns=["query_id", "doc_id", "relevance"],
    )
    queries = {query.query_id for query in dataset.queries_iter()}
    for (count, system), cell in CELLS.items():
        lines = "".join(
            (done.path / "finetuning" / cell / f"fold-{number}.run").read_text()
            for number in (1, 2)
        )
        run = list(ir_measures.read_trec_run(lines))
        measures = [ir_measures.AP, ir_measures.nDCG @ 10]
        sums: Counter = Counter()
        for value in ir_measures.iter_calc(measures, qrels, run):
            sums[str(value.measure)] += value.value
        for measure, total in sums.items():
            assert done.means[count][system][measure] == pytest.approx(total / len(queries))


def test_a_held_out_run_is_the_checkpoints(done, judged):
    dataset, first = judged
    checkpoint = done.path / "finetuning" / "fast-all-queries-seed-42" / "fold-2"
    held_out = read_run(checkpoint.with_name("fold-2.run"))
    texts = {doc.doc_id: doc.default_text() for doc in ir_datasets.load(dataset).docs_iter()}
    queries = {query.query_id: query.text for query in ir_datasets.load(dataset).queries_iter()}
    top = read_run(Path(first))
    top = top[top["qid"].isin(held_out["qid"]) & (top["rank"] < 8)]
    top = top.assign(query=top["qid"].map(queries), text=top["docno"].map(texts))
    again = HarpReranker(str(checkpoint), max_length=32).transform(top)
    scores = again.set_index(["qid", "docno"])["score"].to_dict()
    assert scores == pytest.approx(held_out.set_index(["qid", "docno"])["score"].to_dict())


def test_negatives_come_from_deeper_than_what_is_reranked(done, judged):
    whole = read_run(Path(judged[1]))
    for name, depth in (("runs/first-stage.run", 8), ("finetuning/first-stage.run", 20)):
        run = read_run(done.path / name)
        assert run.equals(whole[whole["rank"] < depth].reset_index(drop=True))
    manifest = done.path / "finetuning" / "fast-2-queries-seed-42" / "fold-1" / "manifest.json"
    negatives_run = json.loads(manifest.read_text())["settings"]["negatives_run"]
    assert negatives_run == str(done.path / "finetuning" / "first-stage.run")


def test_untuned_systems_are_ranked_as_they_are(done):
    zero = done.per_query["0"]
    assert zero["slow"] == zero["fast"]
    assert done.per_query["all"]["fast"] != zero["fast"]
    assert list(done.means) == ["0", "2", "all"]
    assert list(done.means["2"]) == ["first stage", "slow", "fast"]


def test_tests_are_paired_at_each_number_of_queries(done, written):
    assert done.baseline == "slow" and written["means"] == done.means
    for count, rows in done.per_query.items():
        for row in ("first stage", "fast"):
            for measure, values in rows[row].items():
                given = done.p_values[count][row][measure]
                others = [rows["slow"][measure][qid] for qid in values]
                if list(values.values()) == others:
                    assert given is None
                else:
                    assert given == pytest.approx(ttest_rel(list(values.values()), others).pvalue)


def test_holms_correction_is_over_all_tests_of_a_measure(make, done, tmp_path):
    shutil.copytree(done.path, tmp_path / "copy")
    with pytest.raises(HarpError, match=r"other settings \(correction: none then, holm now"):
        cross_validate(make(tmp_path / "copy", correction="holm"))
    corrected = cross_validate(make(tmp_path / "copy", correction="holm", overwrite=True))
    places = [
        (c, r) for c, rows in done.p_values.items() for r in rows if rows[r]["AP"] is not None
    ]
    given = [done.p_values[count][row]["AP"] for count, row in places]
    assert len(given) >= 4
    for (count, row), p in zip(places, multipletests(given, method="holm")[1], strict=True):
        assert corrected.p_values[count][row]["AP"] == pytest.approx(p)


def test_holms_correction_counts_first_stages_once(make, done, tmp_path, monkeypatch):
    """They have one test at all numbers of training queries, where they are the baseline too."""
    ps = {"beside": 0.001, "slow": 0.002, "fast": 0.01}
    tests = {row: dict.fromkeys(["AP", "nDCG@10"], p) for row, p in ps.items()}
    monkeypatch.setattr(experiment, "paired_tests", lambda rows, baseline: tests)
    shutil.copytree(done.path, tmp_path / "copy")
    options = {"first_stages": {"beside": "bm25"}, "baseline": "first stage"}
    options |= {"correction": "holm", "overwrite": True}
    found = cross_validate(make(tmp_path / "copy", **options)).p_values
    given = [0.001, *[0.002] * 3, *[0.01] * 3]
    expected = multipletests(given, method="holm")[1]
    for rows in found.values():
        got = [rows[row]["AP"] for row in ps]
        assert got == pytest.approx([expected[0], expected[1], expected[-1]])
    assert list(found) == ["0", "2", "all"]


def test_other_judgments_make_other_models(make, tmp_path, tiny_bert):
    name = register(tmp_path)
    run = write_run(tmp_path / "first.run")
    asked = {"dataset": name, "first_stage": run, "train_queries": ["all"]}
    asked["systems"] = {"fast": str(tiny_bert)}
    first = cross_validate(make(tmp_path / "out", **asked))
    qrels = tmp_path / name / "qrels.txt"
    lines = qrels.read_text().splitlines()
    qrels.write_text("\n".join(line[:-1] + ("0" if line.endswith("2") else "1") for line in lines))
    with pytest.raises(
        HarpError, match=r"made from other settings \(judgments: .*give --overwrite"
    ):
        cross_validate(make(tmp_path / "out", **asked))
    again = cross_validate(make(tmp_path / "out", **asked, overwrite=True))
    assert again.per_query["all"]["fast"] != first.per_query["all"]["fast"]
    manifests = (tmp_path / "out" / "finetuning").glob("*/fold-1/manifest.json")
    (inputs,) = (json.loads(path.read_text())["settings"]["data"] for path in manifests)
    (run,) = (tmp_path / "out" / "finetuning").glob("*/fold-1.run.json")
    assert json.loads(run.read_text())["settings"]["data"] == inputs


def test_the_table_and_the_plot(done):
    table = (done.path / "table.txt").read_text()
    assert table == f"{done.table}\n"
    lines = table.splitlines()
    assert lines[0].endswith(", 12 queries, 2 folds, top 8")
    assert lines[2:4] == [
        "AP, by the number of training queries",
        "                   0         2       all",
    ]
    assert max(map(len, lines)) <= 80
    assert f"{done.means['all']['fast']['AP']:.4f}" in (done.path / "table.tex").read_text()
    svg = (done.path / "plot.svg").read_text()
    assert all(f">{text}</text>" in svg for text in ("slow", "fast", "first stage", "nDCG@10", "2"))
    assert ">all (5–6)</text>" in svg
    assert (done.path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_caption_prints_what_is_written(done):
    latex = replace(done, title=r"harp:~/50%_off\a&b#1, {$x^2$}").latex
    caption = r"harp:\textasciitilde{}/50\%\_off\textbackslash{}a\&b\#1, "
    caption += r"\{\$x\textasciicircum{}2\$\}. * p \textless{} 0.05 against slow"
    assert f"\\caption{{{caption} (paired t-test)}}" in latex


def test_the_plot_prints_what_is_written(done):
    title = "a_$_$"
    assert f">{title}. *" in draw(replace(done, title=title), "svg").decode()


class Stopped(BaseException):
    """Ends a cross-validation where a signal might."""


@pytest.fixture
def count_trainings(monkeypatch):
    """Counts fine-tunings; stops before or after the n-th if asked."""
    calls = []

    def install(stop=None, after=False):
        calls.clear()
        monkeypatch.undo()
        real = fold_runs.finetune

        def finetune(*arguments):
            calls.append(Path(arguments[2].output_dir).parent.name)
            if len(calls) == stop and not after:
                raise Stopped
            folder = real(*arguments)
            if len(calls) == stop:
                raise Stopped
            return folder

        monkeypatch.setattr(fold_runs, "finetune", finetune)
        return calls

    return install


@pytest.mark.slow
def test_it_resumes_and_gives_the_same_bytes(make, done, tmp_path, count_trainings):
    for stop, after in ((3, False), (2, True)):
        count_trainings(stop, after)
        with pytest.raises(Stopped):
            cross_validate(make(tmp_path))
    calls = count_trainings()
    cross_validate(make(tmp_path))
    assert len(calls) == 8 - 3
    assert everything(tmp_path) == everything(done.path)
    calls = count_trainings()
    cross_validate(make(tmp_path))
    assert calls == []
    kept = {path.name for path in tmp_path.glob("finetuning/*/fold-*/*")}
    assert {"manifest.json", "started.json", "training_log.json"} <= kept
    assert not any(name.endswith(".safetensors") for name in kept)


def test_only_what_changed_is_made_again(make, done, tmp_path, count_trainings):
    shutil.copytree(done.path, tmp_path / "copy")
    folder = tmp_path / "copy"
    cell = folder / "finetuning" / "slow-2-queries-seed-42"
    run = cell / "fold-1.run"
    run.write_text(run.read_text()[:30])
    for path in (cell / "fold-1").iterdir():
        if path.name not in ("manifest.json", "started.json", "training_log.json"):
            path.unlink()
    calls = count_trainings()
    with pytest.raises(HarpError, match=r"fold-1.run has changed since it was written"):
        cross_validate(make(folder))
    again = cross_validate(make(folder, overwrite=True))
    assert calls == ["slow-2-queries-seed-42"]
    assert again.means == done.means

    calls = count_trainings()
    changed = {**FINETUNING, "negatives_per_group": 2}
    systems = make(folder).systems
    systems["slow"]["finetuning"]["negatives_per_group"] = 3
    new = {"systems": systems, "finetuning": changed, "train_queries": [2]}
    cross_validate(make(folder, **new, overwrite=True))
    assert len(calls) == 2 and all(name.startswith("fast") for name in calls)


@pytest.mark.slow
def test_seeds_are_averaged_query_by_query(make, tmp_path, tiny_bert):
    options = make(
        tmp_path,
        systems={"fast": str(tiny_bert)},
        folds=2,
        train_queries=[2],
        seeds=[1, 2],
        measures=["AP"],
    )
    results = cross_validate(options)
    runs = [read_run(tmp_path / "runs" / f"fast-2-queries-seed-{seed}.run") for seed in (1, 2)]
    assert not runs[0].equals(runs[1])
    collection = JudgedDataset(options.dataset)
    one, two = (
        measure_runs({"r": run}, collection.topics, collection.qrels, [ir_measures.AP])["r"]["AP"]
        for run in runs
    )
    for qid, value in results.per_query["2"]["fast"]["AP"].items():
        assert value == pytest.approx((one[qid] + two[qid]) / 2)
    means = pd.Series([sum(values.values()) / 12 for values in (one, two)])
    assert results.deviations["2"]["fast"]["AP"] == pytest.approx(means.std())


def test_the_grid_is_chosen_from_on_the_validation_fold(make, tmp_path, tiny_bert):
    grid = {"learning_rate": [1e-9, 1e-2]}
    options = make(
        tmp_path,
        systems={"fast": str(tiny_bert)},
        folds=3,
        train_queries=["all"],
        grid=grid,
        finetuning={k: v for k, v in FINETUNING.items() if k != "learning_rate"},
        measures=["AP"],
    )
    results = cross_validate(options)
    written = json.loads((tmp_path / "results.json").read_text())
    folder = tmp_path / "finetuning" / "fast-all-queries-seed-42"
    values = results.per_query["all"]["fast"]["AP"]
    for place, test in enumerate(written["folds"]):
        validation = written["folds"][(place + 1) % 3]
        train = (tmp_path / "folds" / f"fold-{place + 1}.train.txt").read_text().split()
        assert not set(train) & {*test, *validation}
        chosen = written["chosen"]["fast-all-queries-seed-42"][place]
        measured = []
        for number in (1, 2):
            lines = (folder / f"fold-{place + 1}-candidate-{number}.run").read_text()
            run = list(ir_measures.read_trec_run(lines))
            qrels = list(ir_datasets.load(options.dataset).qrels_iter())
            of_query = {
                value.query_id: value.value
                for value in ir_measures.iter_calc([ir_measures.AP], qrels, run)
            }
            measured.append((sum(of_query[qid] for qid in validation), of_query))
        best = 0 if measured[0][0] >= measured[1][0] else 1
        assert chosen == {"learning_rate": grid["learning_rate"][best]}
        for qid in test:
            assert values[qid] == pytest.approx(measured[best][1][qid])


@pytest.mark.slow
def test_few_queries_take_the_least_number_of_steps(make, tmp_path, tiny_bert):
    systems = {"fast": str(tiny_bert)}
    cross_validate(make(tmp_path, systems=systems, folds=2, train_queries=[1, 5], min_steps=3))
    steps = {
        path.parts[-3]: json.loads(path.read_text())["steps"]
        for path in tmp_path.glob("finetuning/*/*/manifest.json")
    }
    assert steps == {"fast-1-queries-seed-42": 3, "fast-5-queries-seed-42": 4}


@pytest.mark.slow
def test_an_ensemble_is_the_mean_of_its_checkpoints_scores(make, tmp_path, tiny_bert):
    other = tmp_path / "other"
    shutil.copytree(tiny_bert, other)
    weights = load_file(other / "model.safetensors")
    weights["classifier.weight"] = -2 * weights["classifier.weight"]
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
    systems = {"both": [str(tiny_bert), str(other)], "one": str(tiny_bert), "two": str(other)}
    options = make(tmp_path / "out", systems=systems, folds=2, train_queries=[0, 2])
    cross_validate(options)
    for count in ("0", "2"):
        both, one, two = (
            read_run(tmp_path / "out" / "runs" / f"{name}-{count}-queries-seed-42.run")
            .set_index(["qid", "docno"])["score"]
            .sort_index()
            for name in ("both", "one", "two")
        )
        assert both.to_numpy() == pytest.approx(((one + two) / 2).to_numpy(), abs=1e-6)
        assert not one.equals(two)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_queries": [9]}, r"train_queries has 9, but fold 1 has \d queries to learn from"),
        ({"folds": 13}, "13 folds of 12 queries"),
        ({"systems": {"x": "./nowhere"}}, "no model at ./nowhere"),
        ({"finetuning": {"learning_rat": 1}}, "finetuning: .*did you mean learning.rate"),
        ({"finetuning": {"learning_rate": "fast"}}, "finetuning: .*learning.rate"),
        ({"finetuning": {**FINETUNING, "max_length": 4096}}, "max_length is 4096"),
        ({"finetuning": {**FINETUNING, "losses": {"lcee": 1}}}, "lcee"),
        (
            {"finetuning": {**FINETUNING, "negatives_run": "no.run"}},
            "cannot read run no.run: No such file",
        ),
        ({"measures": ["MAPP"]}, "unknown measure 'MAPP'"),
        ({"fold_files": ["no-1", "no-2"]}, "cannot read .*no-1"),
        ({"fields": ["body"]}, "have no text field 'body'"),
        (
            {"finetuning": {**FINETUNING, "model_kind": "bi-encoder"}},
            "model_kind bi-encoder cannot be",
        ),
        ({"fusions": {"f": {"of": ["slow", "fast"], "measure": "MAPP"}}}, "unknown measure 'MAPP'"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_trained(
    make, tmp_path, count_trainings, changes, message
):
    calls = count_trainings()
    with pytest.raises(HarpError, match=message) as raised:
        cross_validate(make(tmp_path, **changes))
    assert "\n" not in str(raised.value)
    assert calls == [] and not (tmp_path / "results.json").exists()


def test_a_bad_run_of_a_further_first_stage_is_told_before_anything_is_trained(
    make, tmp_path, count_trainings
):
    calls = count_trainings()
    (tmp_path / "bad.run").write_text("q1 Q0 d1 1 high x\n")
    with pytest.raises(HarpError, match=r"bad\.run, line 1: score 'high' is not a number"):
        cross_validate(make(tmp_path / "out", first_stages={"bad": str(tmp_path / "bad.run")}))
    assert calls == []


def test_judgments_that_differ_are_told_before_anything_is_trained(
    make, judged, tmp_path, count_trainings
):
    calls = count_trainings()
    name = register(tmp_path, qrels=[*QRELS, ("q1", "d11", 3)])
    with pytest.raises(HarpError, match=f"{name}: query q1: document d11 is judged 0 and 3: keep"):
        cross_validate(make(tmp_path / "out", dataset=name))
    assert calls == []


def test_an_untrained_head_is_measured_only_when_asked(make, tmp_path, tiny_bert):
    from transformers import AutoModel, AutoTokenizer

    base = str(tmp_path / "base")
    AutoModel.from_pretrained(tiny_bert).save_pretrained(base)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(base)
    changes = {"folds": 2, "train_queries": [0, 2]}
    with pytest.raises(HarpError, match="no trained weights for classifier"):
        cross_validate(make(tmp_path / "out", systems={"x": base}, **changes))
    systems = {"x": {"model": base, "allow_untrained": True}}
    results = cross_validate(make(tmp_path / "out", systems=systems, **changes))
    assert results.per_query["0"]["x"] != results.per_query["2"]["x"]


def test_the_command(make, tmp_path, capsys, tiny_bert, judged, monkeypatch):
    recipe = {
        "dataset": judged[0],
        "first_stage": judged[1],
        "systems": {"tiny": str(tiny_bert)},
        "folds": 2,
        "train_queries": [2],
        "finetuning": {**FINETUNING, "max_steps": 1},
        "output_dir": str(tmp_path / "out"),
    }
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    assert main(["cross-validate", str(tmp_path / "recipe.json"), "--measures", "AP"]) == 0
    output, progress = capsys.readouterr()
    assert output.startswith((tmp_path / "out" / "table.txt").read_text())
    assert output.endswith(f"plot: {tmp_path / 'out' / 'plot.png'}\n")
    assert "2/2" in progress and "tiny, 2 queries, fold-2" in progress
    again = ["cross-validate", str(tmp_path / "recipe.json"), "--measures", "AP", "--quiet"]
    assert main(again) == 0
    assert "cross-validate" not in capsys.readouterr().err
    for path in (tmp_path / "out").glob("plot.*"):
        path.unlink()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(again) == 0
    hint = "plot: none; run `pip install 'harp-plugin[plot]'` and this command again\n"
    assert capsys.readouterr().out.endswith(hint)


@pytest.mark.parametrize("name", ["results.json", "table.txt", "plot.svg", "manifest.json"])
@pytest.mark.parametrize("kind", ["a stranger's", "changed"])
def test_what_is_not_as_we_wrote_it_is_left(make, done, tmp_path, count_trainings, name, kind):
    if kind == "changed":
        shutil.copytree(done.path, tmp_path, dirs_exist_ok=True)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-9] + b"mine")
    else:
        (tmp_path / name).write_text("mine")
    before = (tmp_path / name).read_bytes()
    with pytest.raises(HarpError, match=name):
        cross_validate(make(tmp_path))
    assert (tmp_path / name).read_bytes() == before


def test_an_input_is_no_output(make, tmp_path, judged):
    run = tmp_path / "runs" / "first-stage.run"
    run.parent.mkdir()
    shutil.copy(judged[1], run)
    with pytest.raises(HarpError, match=r"was not written by harp.*: name another --output-dir"):
        cross_validate(make(tmp_path, first_stage=str(run), overwrite=True))
    assert run.read_text() == Path(judged[1]).read_text()


def test_fusions_learn_on_the_training_folds(make, done, tmp_path):
    """The weights of a fold are those that its training queries' pooled rankings give."""
    shutil.copytree(done.path, tmp_path / "out")
    fusions = {
        "fused": {"of": ["first stage", "slow"], "measure": "nDCG@10"},
        "rrf": {"of": ["first stage", "slow"], "weights": "rrf"},
    }
    options = make(tmp_path / "out", fusions=fusions, train_queries=["0", "all"], overwrite=True)
    options.systems["slow"]["allow_untrained"] = options.systems["fast"]["allow_untrained"] = True
    results = cross_validate(options)
    assert results.rows == ["first stage", "slow", "fast", "fused", "rrf"]
    assert results.baseline == "first stage"
    written = json.loads((results.path / "results.json").read_text())
    runs = results.path / "runs"
    pooled = read_run(runs / "slow-all-queries-seed-42.run")
    first = read_run(runs / "first-stage.run")
    judged = JudgedDataset(options.dataset)
    learnt = written["fusions"]["fused-all-queries-seed-42"]["learnt"]
    for fold, part in zip(written["folds"], learnt, strict=True):
        train = {
            name: run[~run["qid"].isin(fold)]
            for name, run in {"first stage": first, "slow": pooled}.items()
        }
        qrels = judged.qrels[~judged.qrels["qid"].isin(fold)]
        expected = learn_weights(train, qrels, measure="nDCG@10")
        assert part["weights"] == expected.weights and part["queries"] == expected.queries
    alone = written["fusions"]["fused-0-queries-seed-42"]["weights"]
    assert alone == {"first stage": 1, "slow": 0}
    assert results.means["0"]["fused"] == results.means["0"]["first stage"]
    rrf = fuse(
        {"first stage": first, "slow": pooled}, {"first stage": 1, "slow": 1}, normalization="rrf"
    )
    ours = read_run(runs / "rrf-all-queries-seed-42.run")
    key = ["qid", "rank"]
    assert ours.sort_values(key)["docno"].tolist() == rrf.sort_values(key)["docno"].tolist()
