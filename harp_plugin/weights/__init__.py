"""Term weights: how much each word of a sentence or page matters to an anchor or to [CLS]."""
