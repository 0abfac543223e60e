"""Learning the heuristic: data set, network, training, export, evaluation.

Alone imports torch (extra `train`); it leaves a model folder that `mlnav.risk` loads without it.
"""
