"""TREC runs of any engine, reranked: the command ``harp rerank``."""
