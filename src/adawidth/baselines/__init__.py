"""Methods to compare with, one file each, behind one interface (base.py) and one registry of names.
A new method is a new file and a line in the registry."""

from __future__ import annotations

from importlib import import_module

from ..errors import OptionalDependencyError, OptionError
from ..threads import settle
from .base import Baseline, Encoding, Role, Rotated, Staged

REGISTRY = {
    "truncation": "truncation:Truncation",
    "random": "random:Random",
    "random-subset": "random_subset:RandomSubset",
    "pca": "pca:PCA",
    "pca:centred": "pca:CentredPCA",
    "pca:pooled": "pca:PooledPCA",
    "whitening": "whitening:Whitening",
    "spectral-tempering": "spectral_tempering:SpectralTempering",
    "kyfan": "kyfan:KyFan",
    "matryoshka-adaptor": "matryoshka_adaptor:MatryoshkaAdaptor",
    "matryoshka-adaptor:unsupervised": "matryoshka_adaptor:UnsupervisedMatryoshkaAdaptor",
    "dense": "dense:Dense",
    "dense:paper": "dense:PaperDense",
    "search-adaptor": "search_adaptor:SearchAdaptor",
    "conae": "conae:ConAE",
    "smec": "smec:SMEC",
    "smec:nested": "smec:NestedSMEC",
    "learning-to-select": "learning_to_select:LearningToSelect",
    "learning-to-select:renormalised": "learning_to_select:RenormalisedLearningToSelect",
    "learning-to-select:oracle": "learning_to_select:OracleLearningToSelect",
    "dime": "dime:PRFDIME",
    "dime:magnitude": "dime:MagnitudeDIME",
    "dime:soft": "dime:SoftDIME",
    "dime:oracle": "dime:OracleDIME",
    "eclipse": "eclipse:Eclipse",
    "rdime": "rdime:RDIME",
    "funnel": "funnel:PlainFunnel",
    "funnel:steps": "funnel:SteppedFunnel",
    "adsampling": "adsampling:ADSampling",
    "panorama": "panorama:Panorama",
    "int8": "quantised:Int8",
    "pq4": "quantised:PQ4",
    "paper": "paper:Paper",
    "adawidth": "adawidth:AdaWidthTaper",
    "adawidth:unlabelled": "adawidth:UnlabelledAdaWidth",
    "adawidth-query": "adawidth_query:AdaWidthQuery",
    "adawidth-query:labelled": "adawidth_query:LabelledAdaWidthQuery",
}  # name or name:variant -> module:class, imported on first use; a variant "oracle" reads the test queries' own labels


def baseline(name: str) -> Baseline:
    """A new, unfitted method by its name."""
    if name not in REGISTRY:
        raise OptionError(f"there is no method {name!r}; there are {', '.join(REGISTRY)}")
    module, _, attribute = REGISTRY[name].partition(":")
    try:
        made: Baseline = getattr(import_module(f".{module}", __name__), attribute)()
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise OptionalDependencyError("torch", "train") from None
    return made


__all__ = ["REGISTRY", "Baseline", "Encoding", "Role", "Rotated", "Staged", "baseline"]

settle()
