"""Tevatron's training commands for builds of harp.

``python -m harp_plugin.tevatron.train_reranker --dataset_name harp:BUILD --dataset_config rqp,qdm``
and ``train_retriever`` take the names of options that the installed Tevatron has, or its JSON file,
and the options of ``harp train`` too.
"""
