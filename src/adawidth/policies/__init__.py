"""Policies decide, from the scores so far, what to read next; and the features, budgets and choice between them.
A new policy is a file with one class after base.Policy. No training code here."""

from .base import Policy, finish, ladder_from
from .fixed import Fixed

__all__ = ["Fixed", "Policy", "finish", "ladder_from"]
