"""Hard negatives of queries: by BM25, by an encoder, by a cross-encoder."""
