"""One file a figure or table of the paper, with the diagnostics that only they need."""
