"""A finished build of six pages."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest
import torch

from harp_plugin.corpus.build import CorpusOptions, build_corpus
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.tasks import HARP_TASKS
from harp_plugin.tasks.build import build_examples
from harp_plugin.tasks.registry import ExampleOptions
from harp_plugin.weights.build import build_weights
from harp_plugin.weights.options import WeightOptions

PAGES = {
    "Mercury (planet)": """Mercury is the planet nearest to the [[Sun]]. It has almost no air, and
its days are hotter than those of [[Venus]] in places, though [[Venus]] is the hottest planet.
Like [[Mercury (element)|mercury]] in a [[Thermometer|glass tube]], it seems to move quickly.""",
    "Mercury (element)": """&lt;script
&gt;alert("planted")&lt;/script
&gt; Mercury is a heavy silver [[metal]] that is liquid in a warm room. It rises in a
[[thermometer]] when heated by the [[Sun]]. Its old sign is that of the planet
[[Mercury (planet)|Mercury]], and [[alchemist|alchemists]] called it quick silver.""",
    "Sun": """The Sun is a star. [[Mercury (planet)|Mercury]] and [[Venus]] go around it faster
than the other planets. Its light warms every planet, and a [[thermometer]] in it shows more than
the air does. No [[metal]] stays solid there.""",
    "Venus": """Venus is the second planet from the [[Sun]], next to [[Mercury (planet)|Mercury]].
Its clouds are thick. A [[thermometer]] of lead would melt there, and so would any soft
[[metal]].""",
    "Thermometer": """A thermometer measures heat. In an old one [[Mercury (element)|mercury]]
rises in glass, since that [[metal]] swells. Probes took one to [[Venus]] and one towards the
[[Sun]].""",
    "Metal <shiny> & hard": """A metal carries current and heat. All but
[[Mercury (element)|mercury]] are solid in a warm room. Light from the [[Sun]] is thrown back by
it, and a [[thermometer]] may be made of it.""",
}
REDIRECTS = {"Metal": "Metal <shiny> & hard"}


def dump() -> str:
    """The pages as a MediaWiki XML export."""
    page = "<page><title>{}</title><ns>0</ns><id>{}</id>{}<revision><id>{}</id><text>{}</text>"
    page += "</revision></page>"
    texts = [(title, "", text.replace("\n", " ")) for title, text in PAGES.items()]
    texts = [(t, r, x.replace("script ", "script\n")) for t, r, x in texts]
    for title, target in REDIRECTS.items():
        redirect = f'<redirect title="{escape(target)}" />'
        texts.append((title, redirect, f"#REDIRECT [[{target}]]"))
    pages = "".join(
        page.format(escape(title), number, redirect, 100 + number, escape(text))
        for number, (title, redirect, text) in enumerate(texts, 1)
    )
    return (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" '
        'xml:lang="en"><siteinfo><sitename>Test</sitename><dbname>test</dbname>'
        "<case>first-letter</case>"
        '<namespaces><namespace key="0" case="first-letter" /></namespaces></siteinfo>'
        f"{pages}</mediawiki>"
    )


@pytest.fixture(scope="session")
def build(tmp_path_factory, tiny_bert) -> Path:
    """A finished build folder."""
    folder = tmp_path_factory.mktemp("six-pages")
    source = folder / "planets.xml"
    source.write_text(dump(), encoding="utf-8")
    directory = folder / "build"
    threads = torch.get_num_threads()
    build_corpus(directory, CorpusOptions(), sources=[source], quiet=True)
    build_graph(directory, GraphOptions(min_words=10))
    build_weights(directory, WeightOptions(model=str(tiny_bert)), device="cpu", quiet=True)
    build_examples(directory, ExampleOptions(tasks=list(HARP_TASKS)))
    torch.set_num_threads(threads)
    return directory
