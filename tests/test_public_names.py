"""The names that users and other packages may import, and that every module says what it offers."""

import ast
import importlib
from pathlib import Path

import pytest

import harp_plugin

PACKAGE = Path(harp_plugin.__file__).parent
WITHOUT_NAMES = {"_version", "__main__"}

PUBLIC = {
    "harp_plugin": [
        "HarpFusion",
        "HarpPipeline",
        "HarpReranker",
        "HarpRetriever",
        "Scorer",
        "__version__",
    ],
    "harp_plugin.tasks": [
        "DocumentOrigin",
        "DrawOptions",
        "HARP_TASKS",
        "NoPairError",
        "PRESETS",
        "Pair",
        "PairGroup",
        "PreTrainingData",
        "QueryOrigin",
        "SampledWord",
        "TASKS",
    ],
    "harp_plugin.ranking": [
        "HarpEnsemble",
        "HarpFeatures",
        "HarpFusion",
        "HarpPipeline",
        "HarpReranker",
        "Scorer",
    ],
    "harp_plugin.evaluation": ["EvaluationOptions", "Results", "evaluate"],
    "harp_plugin.evaluation.report": ["changed_queries", "render", "rows_of"],
    "harp_plugin.evaluation.training": ["finetune", "ranking_validation", "train"],
    "harp_plugin.evaluation.cross_validation": [
        "CrossValidation",
        "CrossValidationOptions",
        "cross_validate",
    ],
    "harp_plugin.evaluation.reranking": ["PAIRS_AT_ONCE", "rerank"],
    "harp_plugin.ranking.learned": ["LearnedRanker"],
    "harp_plugin.ranking.dense": ["DenseCosine", "HarpRetriever", "WordSimilarity"],
    "harp_plugin.ranking.fielded": [
        "FieldSettings",
        "FieldedBm25",
        "FieldedIndex",
        "LexicalFeatures",
        "Tuning",
        "tune",
    ],
    "harp_plugin.negatives.options": ["NegativeOptions", "QueryLikenessOptions"],
    "harp_plugin.inspection": ["InspectOptions", "InspectionReport", "inspect"],
    "harp_plugin.inspection.checks": [
        "CHECKS",
        "Check",
        "CheckResult",
        "GREEN_UP_TO",
        "Level",
        "TOO_EASY",
        "YELLOW_UP_TO",
    ],
    "harp_plugin.commands.build": ["BuildOptions", "STAGES", "build", "check", "summary"],
    "harp_plugin.commands.export": ["ExportOptions", "as_tevatron", "export"],
    "harp_plugin.commands.adapt": ["AdaptOptions", "LEARNED", "RERANKED", "adapt"],
    "harp_plugin.commands.collect": ["CollectOptions", "collect", "summary"],
    "harp_plugin.collections.known_items.collection": ["build_collection", "summary"],
    "harp_plugin.commands.check": ["Checked", "check"],
    "harp_plugin.commands.quickstart": ["QuickstartOptions", "RECIPES", "quickstart"],
    "harp_plugin.corpus.readers": [
        "ClueWeb22Reader",
        "HarpAnchorsReader",
        "HtmlReader",
        "IrDatasetsReader",
        "KiltReader",
        "MarkdownReader",
        "MediaWikiReader",
        "READERS",
        "Reader",
        "Source",
        "UnknownFormat",
        "WarcReader",
        "WikimediaEnterpriseReader",
        "choose_reader",
        "configured_reader",
        "sources",
    ],
    "harp_plugin.corpus.markup": ["Link", "LinkedText", "joined", "linked_lines"],
    "harp_plugin.corpus.pages": [
        "Dropped",
        "EMPTY_INDEX",
        "HATNOTE",
        "IndexTerm",
        "Item",
        "NO_TEXT",
        "NO_TITLE",
        "Page",
        "Redirect",
        "SEE_ALSO_HEADINGS",
        "Section",
        "WITH_SITE_ROOT",
    ],
    "harp_plugin.corpus.options": ["CorpusOptions", "DialectName", "site_roots"],
    "harp_plugin.graph": ["FUNCTIONAL_ANCHORS", "GraphOptions", "build_graph"],
    "harp_plugin.weights.options": ["DTYPES", "WeightOptions"],
    "harp_plugin.collections.dataset": ["Dataset", "JudgedDataset"],
    "harp_plugin.training.arguments": [
        "HarpDataArguments",
        "HarpModelArguments",
        "HarpTrainingArguments",
        "PRETRAINING",
        "PairOptions",
        "SHOWN",
        "SHOWN_IN_BOTH",
        "multiplies_in_bf16",
    ],
    "harp_plugin.training.finetune": ["FINETUNING", "FinetuneDataArguments", "SHOWN", "finetune"],
    "harp_plugin.training.losses": [
        "CITATIONS",
        "LOSSES",
        "Loss",
        "LossOption",
        "Margin",
        "Temperature",
        "WeightedSum",
        "bce",
        "checked_weights",
        "contrastive",
        "hinge",
        "kl",
        "lce",
        "margin_mse",
        "mean_over_negatives",
        "mlm",
        "ranknet",
        "softmax_margin",
    ],
    "harp_plugin.models.trainable": [
        "Batch",
        "GroupKeys",
        "LossInputs",
        "ModelDescription",
        "PairBatches",
        "TrainableModel",
        "group_scores",
        "load_with_new_weights",
        "tied_names",
        "without_pooler",
    ],
    "harp_plugin.models.pairs": [
        "PackedPairs",
        "PairEncoder",
        "PairTemplate",
        "TextTemplate",
        "TokenPairs",
        "cut_sizes",
        "joining_pairs",
        "joins_pairs",
    ],
    "harp_plugin.models.tokenizing": ["first_words", "tokenize"],
    "harp_plugin.models.packing": [
        "PACKED",
        "PackedClassifier",
        "PackedOutput",
        "Packing",
        "PassThroughEncoder",
        "can_pack",
        "compiled_layers",
        "encode",
        "packed_states",
        "prepare",
        "without_encoder",
    ],
    "harp_plugin.models.loading": [
        *("COSINE", "PACKAGE_PREFIX", "PIPELINE", "POOLING", "WEIGHTS", "check_base"),
        *("check_model_folder", "choose_device", "load_pretrained", "load_tokenizer"),
        *("longest_input", "model_errors", "model_fingerprint", "module_folders"),
        *("resolve_model", "trained_with", "without_notices"),
    ],
    "harp_plugin.registry": ["Registry"],
    "harp_plugin.errors": [
        *("HarpError", "LONGEST_MESSAGE", "folded", "one_line", "show", "user_message"),
    ],
}
"""A change here is a change for users: CHANGELOG has to tell it."""


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {module_name(path): ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}


def names_of(tree):
    """The list ``__all__`` of a module, None if it has none."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return ast.literal_eval(statement.value)
    return None


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_those_that_are_listed(name):
    module = importlib.import_module(name)
    assert sorted(module.__all__) == PUBLIC[name]
    assert [public for public in module.__all__ if not hasattr(module, public)] == []


@pytest.mark.parametrize("name", sorted(TREES))
def test_every_module_says_what_it_offers(name):
    body = TREES[name].body
    only_a_docstring = len(body) == 1 and isinstance(body[0], ast.Expr)
    if only_a_docstring or name.rpartition(".")[2] in WITHOUT_NAMES:
        return
    names = names_of(TREES[name])
    assert names is not None
    assert len(set(names)) == len(names)
    defined = {ast.unparse(node) for node in ast.walk(TREES[name]) if isinstance(node, ast.Name)}
    defined |= {getattr(node, "name", "") for node in ast.walk(TREES[name])}
    defined |= {
        alias.asname or alias.name
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(names) - defined == set()


def test_modules_import_public_names_alone():
    private = []
    for name, tree in TREES.items():
        is_package = (PACKAGE.parent / Path(*name.split("."))).is_dir()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                above = name.split(".")[: len(name.split(".")) - node.level + is_package]
                source = ".".join([*above, *filter(None, [node.module])])
                offered = names_of(TREES[source]) if source in TREES else None
                for alias in node.names:
                    is_module = f"{source}.{alias.name}" in TREES
                    if offered is not None and not is_module and alias.name not in offered:
                        private.append((name, source, alias.name))
    assert private == []
