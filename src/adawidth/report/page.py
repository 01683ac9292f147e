"""The report's page: its style, light and dark, and its frame."""

from ..colours import style_sheet

STYLE = (
    f"{style_sheet()}\n"
    + """\
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
.keys i, tbody th i { display: inline-block; width: 1.5rem; height: 0; margin-right: .45rem; vertical-align: .25rem;
  border-top: 3px solid var(--line); }
i.dashes-1 { border-top-style: dashed !important; }
i.dashes-2, i.dashes-3 { border-top-style: dotted !important; }
.keys i.other, tbody th i.other { border-top-width: 1px; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.sheet { width: 100%; background: white; border-radius: .4rem; }
details { margin: .4rem 0; }
summary { cursor: pointer; }
.keys i.frozen { border-top: 2px dashed var(--line); }
.keys i.spot { width: .7rem; height: .7rem; margin: 0 .85rem 0 .4rem; vertical-align: -.02rem; transform: rotate(45deg);
  background: var(--series-0); border: 1px solid var(--ink); }
.scroll { overflow-x: auto; background: linear-gradient(to right, var(--page) 40%, transparent) local,
  linear-gradient(to left, var(--page) 40%, transparent) right / 3rem 100% local,
  radial-gradient(farthest-side at 0 50%, var(--line), transparent) scroll,
  radial-gradient(farthest-side at 100% 50%, var(--line), transparent) right / .8rem 100% scroll;
  background-size: 3rem 100%, 3rem 100%, .8rem 100%, .8rem 100%; background-repeat: no-repeat; }
.swipe { display: none; color: var(--muted); font-size: .85rem; margin: .3rem 0 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; min-width: 100%; }
th, td { padding: .38rem .7rem; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; font-weight: 400; }
th:first-child { text-align: left; padding-left: 0; }
thead th, .size th, .size td { color: var(--muted); }
td b { font-weight: 650; }
.steps { min-width: 0; width: 100%; }
.steps .bar { width: 60%; }
.bar i { display: block; height: .7rem; border-radius: .2rem; min-width: 2px; background: var(--series-0); }
footer { margin-top: 2.5rem; font-size: .85rem; }
.answers { margin: .2rem 0 1rem; padding: 0; list-style: none; font-size: .92rem; }
.answers li { overflow-wrap: anywhere; }
.answers small { display: block; }
blockquote { margin: 1.2rem 0 .3rem; font-style: italic; }
@media (max-width: 36rem) { .swipe { display: block; } .wide { display: none; } .narrow { display: block; }
  .pair { grid-template-columns: 1fr; }
  body { padding-top: 1.25rem; } th, td { padding: .34rem .5rem; } }
"""
)

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
