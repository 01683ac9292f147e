"""AdaWidth: dense retrieval that evaluates only as many embedding coordinates as each query needs."""

__version__ = "0.1.0"
