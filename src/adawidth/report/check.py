"""The page of `adawidth check`: the sentence, a figure of then and now, and the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from .. import __version__
from ..evaluation.check import lines
from ..formats import atomic_file
from .page import PAGE, STYLE
from .tables import table

QUICK = "On queries held out from it. Closed forms only: `fit` chooses among more rotations, and finds none that is worse on dev."
ROW, LEFT, WIDE = 46, 20, 640  # of the figure, in pixels


def write_check(path: str | Path, result: Mapping[str, Any]) -> None:
    """Writes the HTML file, whole or not at all."""
    findings = result["findings"]
    body = f"<p><b>{escape(result['sentence'])}</b></p>{_figure(findings)}"
    body += "<h2>What was looked at</h2>" + _rows(["", "verdict", "at the fit", "now", "95 % interval"], map(cells, findings))
    if result["refits"]:
        body += f"<h2>What a quick refit gives</h2><p><small>{QUICK}</small></p>"
        body += _rows(["", "pays", "measure", "now", "refitted", "difference"], map(refits, result["refits"]))
    body += "".join(f"<p>{escape(line)}</p>" for line in lines(result["labels"]))
    facts = f"{result['documents']:,} documents · {result['queries']:,} queries looked at"
    title = f"{result['dataset']}: does the model still fit?"
    page = PAGE.format(title=escape(title), facts=escape(facts), style=STYLE, body=body, foot=f"<footer>AdaWidth {__version__}</footer>")
    with atomic_file(path) as file:
        file.write(page.encode())


def cells(finding: Mapping[str, Any]) -> list[str]:
    """One finding, in words."""
    then = "not recorded" if finding["then"] is None else _number(finding["then"])
    interval = "" if finding["low"] is None else f"{_number(finding['low'])} to {_number(finding['high'])}"
    verdict = finding["verdict"] + ("" if finding["decides"] or finding["verdict"] != "changed" else ", a note only")
    return [f"{finding['part']}: {finding['what']}", verdict, then, _number(finding["now"]), interval]


def refits(refit: Mapping[str, Any]) -> list[str]:
    """One refit, in words."""
    widths = ("", "") if refit["mean_width"] is None else (f" at {refit['mean_width']:.0f}", f" at {refit['refitted_width']:.0f}")
    difference = f"{refit['gain']:+.3f} ({refit['low']:+.3f} to {refit['high']:+.3f})"
    figures = [f"{refit['now']:.3f}{widths[0]}", f"{refit['refitted']:.3f}{widths[1]}"]
    return [refit["what"], "yes" if refit["pays"] else "no", refit["measure"], *figures, difference]


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    shown = (f"<tr><th>{escape(row[0])}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in row[1:])}</tr>" for row in rows)
    return table(head, shown)


def _figure(findings: Sequence[Mapping[str, Any]]) -> str:
    """Shares from 0 to 1, a line each: a ring at the fit, a dot with its interval now."""
    shown = [finding for finding in findings if 0 <= finding["now"] <= 1 and (finding["then"] is None or 0 <= finding["then"] <= 1)]
    height = ROW * len(shown) + 24
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<line x1="{_x(share)}" x2="{_x(share)}" y1="0" y2="{height - 22}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{_x(share)}" y="{height - 6}" font-size="13" text-anchor="middle" fill="var(--muted)">{share:g}</text>')
    for place, finding in enumerate(shown):
        y = ROW * place + 32
        colour = "var(--series-7)" if finding["verdict"] == "changed" and finding["decides"] else "var(--series-2)"
        name = escape(f"{finding['part']}: {finding['what']}")
        parts.append(f'<text x="{LEFT}" y="{y - 15}" font-size="14" fill="var(--ink)">{name}</text>')
        parts.append(f'<line x1="{_x(0)}" x2="{_x(1)}" y1="{y}" y2="{y}" stroke="var(--grid)"/>')
        if finding["low"] is not None:
            ends = _x(finding["low"]), _x(finding["high"])
            parts.append(f'<line x1="{ends[0]}" x2="{ends[1]}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="4"/>')
        if finding["then"] is not None:
            parts.append(f'<circle cx="{_x(finding["then"])}" cy="{y}" r="8" fill="none" stroke="var(--ink)" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{_x(finding["now"])}" cy="{y}" r="5" fill="{colour}"/>')
    svg = f'<svg viewBox="0 0 {WIDE} {height}" role="img" aria-label="then and now">{"".join(parts)}</svg>'
    return f"<figure>{svg}<figcaption>Ring: at the fit. Dot, with its 95 % interval: now.</figcaption></figure>"


def _x(share: float) -> float:
    return round(LEFT + (WIDE - 2 * LEFT) * share, 1)


def _number(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"
