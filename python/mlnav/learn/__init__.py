"""Learning the heuristic: data set, network, training, export, evaluation.

The only part of the package that imports torch (extra `train`), and never imported at run time:
what it leaves is a model folder that `mlnav.risk` loads with onnxruntime alone.
"""
