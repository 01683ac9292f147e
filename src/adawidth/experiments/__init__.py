"""One file per figure or table of the paper, with its verdict and the diagnostics that only it needs.
Only the command line imports from here."""

from ..threads import settle

settle()
