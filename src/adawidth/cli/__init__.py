"""The command line: one file per command group, each command a few lines over a public function.
Nothing is computed here; heavy packages are imported inside the commands."""

import sys


def main() -> None:
    """The entry point `adawidth`. Ctrl-C ends it with one line and exit code 130, also while it is being imported."""
    try:
        from .app import app

        app(prog_name="adawidth")
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
