"""Tasks of another package; what a build imports to make their examples is light."""

from harp_plugin.tasks import DocumentOrigin, Pair, PairGroup


class Titles:
    """Titles of pages with their leads: the page's own beats the next one's.

    More is not said here. Only one document says which page it is.
    """

    @staticmethod
    def examples(graph):
        return graph["documents"].select("id")

    def draw(self, example, rng, source, options):
        pages = source.documents.tolist()
        other = pages[pages.index(example) - 1]
        query = source.title(example)
        negatives = (Pair(query, source.document(other)), Pair(query, "not a page of this corpus"))
        origin = DocumentOrigin(page=example)
        positive = Pair(query, source.document(example), document_origin=origin)
        return PairGroup("titles", positive, negatives)


class Nothing(Titles):
    """A task that has no examples here."""

    @staticmethod
    def examples(graph):
        return graph["documents"].filter(graph["documents"].in_links < 0).select("id")


class Ties(Titles):
    """A task whose examples all give nothing."""

    def draw(self, example, rng, source, options):
        return None
