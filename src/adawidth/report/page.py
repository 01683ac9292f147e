"""The report's page: its style, light and dark, and its frame."""

STYLE = """
:root { color-scheme: light dark; --page: #fdfdfc; --ink: #1d2430; --muted: #667085; --grid: #e7e9ee; --line: #98a2b3;
  --series-0: #d9480f; --series-1: #98a2b3; --series-2: #2f9e8f; --series-3: #3b6fd4; --series-4: #8a4fbf; --series-5: #b58900;
  --series-6: #c2255c; --series-7: #5c7c3a; --series-8: #4a5568; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --ink: #e8eaee; --muted: #9aa4b2; --grid: #2a2f38; --line: #7a8494;
  --series-0: #ff8a4c; --series-1: #7c8798; --series-2: #4fc3b1; --series-3: #7aa5f7; --series-4: #bd93e8; --series-5: #dcb545;
  --series-6: #f0709b; --series-7: #9dc172; --series-8: #a0aec0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; padding: 2rem 1.25rem 3rem; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
.facts, figcaption, footer, small { color: var(--muted); }
.facts { margin: 0; }
figure { margin: 1.6rem 0 0; }
figcaption { font-size: .85rem; }
svg { display: block; width: 100%; height: auto; }
svg text { font-family: inherit; }
.narrow { display: none; }
.keys { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none; margin: 0 0 .4rem; padding: 0; font-size: .92rem; }
.keys i, tbody th i { display: inline-block; width: .8rem; height: .8rem; border-radius: 50%; margin-right: .45rem;
  vertical-align: -.06rem; }
i.other { background: var(--line); opacity: .55; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.sheet { width: 100%; background: white; border-radius: .4rem; }
details { margin: .4rem 0; }
summary { cursor: pointer; }
.keys i.dashed { width: 1.4rem; height: 0; border-radius: 0; border-top: 2px dashed var(--line); vertical-align: .25rem; }
.keys i.spot { border-radius: 0; transform: rotate(45deg) scale(.8); background: var(--series-0); border: 1px solid var(--ink); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; min-width: 100%; }
th, td { padding: .38rem .7rem; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; font-weight: 400; }
th:first-child { text-align: left; padding-left: 0; }
thead th, .size th, .size td { color: var(--muted); }
td b { font-weight: 650; }
.steps { min-width: 0; width: 100%; }
.steps .bar { width: 60%; }
.bar i { display: block; height: .7rem; border-radius: .2rem; min-width: 2px; background: var(--series-0); }
footer { margin-top: 2.5rem; font-size: .85rem; }
@media (max-width: 36rem) { .wide { display: none; } .narrow { display: block; } .pair { grid-template-columns: 1fr; }
  body { padding-top: 1.25rem; } th, td { padding: .34rem .5rem; } }
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p class="facts">{facts}</p>
{body}
{foot}
</body>
</html>
"""
