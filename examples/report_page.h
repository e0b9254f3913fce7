// The report's HTML. `{{name}}` is replaced by what report.cpp computes.
#pragma once

namespace examples {

inline constexpr char kReportPage[] = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{program}}: {{headline}}</title>
<style>
:root {
  color-scheme: light dark;
  --paper: #faf8f4; --card: #ffffff; --ink: #23201b; --faint: #776f63; --line: #e5dfd4;
  --first: #c2610c; --second: #0f7c86; --third: #6d4bb0; --wrong: #c02b2b; --flame: #e88a1a;
  --digit-filter: invert(1); --digit-blend: multiply;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14120f; --card: #1d1a16; --ink: #efe9de; --faint: #9a9184; --line: #332e27;
    --first: #f5a142; --second: #56c2cb; --third: #b79bf0; --wrong: #ff7a6e; --flame: #ffb347;
    --digit-filter: none; --digit-blend: screen;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { margin: 0; font-size: 68px; line-height: 1.05; letter-spacing: -.03em; font-variant-numeric: tabular-nums; }
h2 { margin: 44px 0 4px; font-size: 22px; }
p { margin: 0 0 14px; color: var(--faint); }
header { border-left: 6px solid var(--flame); padding-left: 22px; }
header p { margin: 6px 0 0; font-size: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(136px, 1fr)); gap: 12px; margin-top: 28px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 14px 16px; }
.tiles dt { color: var(--faint); font-size: 13px; }
.tiles dd { margin: 0; font-size: 18px; font-weight: 600; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 16px; }
.chart { display: block; width: 100%; height: auto; }
.chart text { fill: var(--ink); font-size: 12px; font-variant-numeric: tabular-nums; }
.chart .title { font-size: 15px; font-weight: 600; }
.chart .tick { fill: var(--faint); }
.chart .grid { stroke: var(--line); }
.chart .axis { stroke: var(--faint); }
.chart polyline { fill: none; stroke-linejoin: round; }
.chart .thin { stroke-width: 1; opacity: .3; }
.chart .line { stroke-width: 2.2; }
.picture { display: block; width: min(100%, 760px); height: auto; margin: 0 auto; border-radius: 12px; background: #ffffff; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 14px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.pairs { margin: 10px 0 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); gap: 0 32px; }
.pairs div { display: flex; gap: 16px; justify-content: space-between; padding: 5px 0; border-bottom: 1px solid var(--line); }
.pairs dt { color: var(--faint); }
.pairs dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
.digits { display: grid; grid-template-columns: repeat(auto-fill, minmax(46px, 1fr)); gap: 12px; }
.mistakes { display: grid; grid-template-columns: repeat(auto-fill, minmax(118px, 1fr)); gap: 12px; }
figure { margin: 0; text-align: center; font-size: 13px; font-variant-numeric: tabular-nums; }
figure.wrong { outline: 2px solid var(--wrong); outline-offset: 2px; border-radius: 6px; }
figure img { display: block; width: 100%; height: auto; image-rendering: pixelated; }
figure img { filter: var(--digit-filter); mix-blend-mode: var(--digit-blend); }
figcaption b { font-size: 17px; }
figcaption s { color: var(--wrong); }
.bar { height: 5px; margin-top: 6px; border-radius: 3px; background: var(--line); overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--wrong); }
.scroll { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 2px; font-variant-numeric: tabular-nums; }
th, td { min-width: 46px; padding: 6px 8px; text-align: center; font-weight: 400; }
th { color: var(--faint); }
td { border-radius: 6px; background: color-mix(in srgb, var(--tone) var(--share), var(--card)); }
footer { margin-top: 48px; color: var(--faint); font-size: 13px; }
@media (max-width: 600px) { main { padding: 24px 14px; } h1 { font-size: 46px; } }
</style>
</head>
<body>
<main>
<header>
<h1>{{headline}}</h1>
<p>{{summary}}</p>
</header>
<dl class="tiles">
{{facts}}</dl>

<h2>Training</h2>
<p>Pale: single steps. Strong: their moving average. Dots: single measurements.</p>
<div class="charts">
{{charts}}</div>
{{sections}}
<h2>Settings</h2>
<dl class="pairs">
{{settings}}</dl>

<h2>Machine</h2>
<dl class="pairs">
{{machine}}</dl>
<footer>Made by Rushlight's program {{program}}.</footer>
</main>
</body>
</html>
)html";

}  // namespace examples
