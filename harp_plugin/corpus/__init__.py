"""Sources → pages, sentences, links, redirects."""
