"""Records the terminal of README.md from a real run, line by line, as an animated SVG: python tools/terminal.py"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from runpy import run_path

from adawidth import bundled, load_dataset

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "figures" / "terminal.svg"
THEME = run_path(str(ROOT / "benchmarks" / "theme.py"))
RUN = "import sys; sys.argv[0] = 'adawidth'; from adawidth.cli import main; main()"
COMMANDS = {
    "adawidth quickstart python.jsonl --out py": ":quit\n",
    "adawidth search py/index --text 'the middle value of a list of numbers' -k 3": "",
    "adawidth search py/index --text 'read a file that is compressed' -k 3": "",
}  # and what is typed into them
COLUMNS, SIZE, TALL, MARGIN = 92, 15, 22, 20
COLOURS = {"$": "#7ee787", "typed": "#ffffff", "said": "#c9d1d9", "read": "#ffb0a8"}


def recorded() -> Iterator[tuple[str, str]]:
    """(kind, line) of a session in a new folder that holds the documentation of Python and NumPy as one file."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: bundled.text_of(str(name)) for name in load_dataset(bundled.path()).documents.ids}
        lines = [json.dumps({"id": name, "title": name, "text": text}) for name, text in texts.items() if text]
        Path(folder, "python.jsonl").write_text("\n".join(lines), encoding="utf-8")
        for command, typed in COMMANDS.items():
            yield "typed", command
            words = ["bash", "-c", command.replace("adawidth", f'"{sys.executable}" -c "{RUN}"', 1)]
            environment = {**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
            done = subprocess.run(words, input=typed, cwd=folder, env=environment, capture_output=True, text=True, check=True)
            for line in done.stdout.rstrip().splitlines():
                yield "read" if "mean width" in line else "said", line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…"
            yield "said", ""


def drawn(lines: list[tuple[str, str]]) -> str:
    """Each line appears in its turn. Without animation, all of them are there."""
    width, height = round(COLUMNS * SIZE * 0.602) + 2 * MARGIN, TALL * len(lines) + 2 * MARGIN + 14
    body, at = [], 0.3
    for row, (kind, line) in enumerate(lines):
        at += 0.9 if kind == "typed" else 0.12
        prompt = f'<tspan fill="{COLOURS["$"]}">$ </tspan>' if kind == "typed" else ""
        place = f'x="{MARGIN}" y="{MARGIN + 14 + TALL * (row + 1) - 6}" fill="{COLOURS[kind]}" style="animation-delay:{at:.2f}s"'
        body.append(f'<text {place} xml:space="preserve">{prompt}{escape(line)}</text>')
    lights = enumerate(("#ff5f57", "#febc2e", "#28c840"))
    dots = "".join(f'<circle cx="{MARGIN + 6 + 20 * place}" cy="18" r="6" fill="{colour}"/>' for place, colour in lights)
    still = "@media (prefers-reduced-motion){text{animation:none}}"
    style = f"<style>text{{animation:show .01s backwards}}@keyframes show{{from{{opacity:0}}}}{still}</style>"
    border = f'stroke="{THEME["GRID"]}" stroke-width="2"'
    frame = f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10" fill="#0d1117" {border}/>'
    fonts = "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', Consolas, monospace"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="{fonts}" font-size="{SIZE}">'
    title = "<title>A terminal: texts become an index that answers questions</title>"
    return str(THEME["themed"]("\n".join([head, title, style, frame, dots, *body, "</svg>\n"])))


if __name__ == "__main__":
    OUT.write_text(drawn(list(recorded())), encoding="utf-8")
