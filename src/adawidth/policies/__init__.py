"""Policies decide, from the scores so far, what to read next. Scores in, what to read next out; no training code here."""

from .base import Policy, finish, ladder_from
from .fixed import Fixed

__all__ = ["Fixed", "Policy", "finish", "ladder_from"]
