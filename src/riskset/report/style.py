"""The style sheet: system fonts, one column; light, dark and printed. No colour stands alone.

Contrasts are at least 4.5 to 1 for text and 3 to 1 for lines that matter, in both themes.
"""

__all__ = ["style"]

LIGHT = """
--ink:#1a1c1f;--soft:#4d545c;--line:#c9ced4;--faint:#e6e9ec;--page:#fff;--card:#f5f7f9;
--target:#1b4f9c;--comparator:#b0500b;--grey:#6b7280;--link:#0b57a4;--focus:#0b57a4;
--good:#1c6b34;--bad:#a3161a;--shade:#8a939d;
"""

DARK = """
--ink:#e8eaed;--soft:#b3bac3;--line:#4a525c;--faint:#2b3138;--page:#14171b;--card:#1d2228;
--target:#8fb8ff;--comparator:#f2a45c;--grey:#9aa3ad;--link:#8fc1ff;--focus:#8fc1ff;
--good:#7fd69a;--bad:#ff9c97;--shade:#6f7984;
"""

PAGE = """
*{box-sizing:border-box}
html{font:100%/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;
color:var(--ink);background:var(--page);-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:72rem;padding:1rem;overflow-wrap:break-word}
p,ul,dd,figcaption{max-width:46rem}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.35rem;line-height:1.25;margin:2.5rem 0 .75rem;padding-top:.75rem;
border-top:2px solid var(--line)}
h3{font-size:1.1rem;margin:1.75rem 0 .5rem}
h4,h5{font-size:1rem;margin:1.25rem 0 .5rem}
p,ul,ol,dl{margin:.6rem 0}
a{color:var(--link)}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible,button:focus-visible{
outline:3px solid var(--focus);outline-offset:2px}
.skip{position:absolute;left:-99rem}
.skip:focus{position:static}
.byline,.note,figcaption{color:var(--soft);font-size:.9rem}
.lead{font-size:1.1rem}
.warning{border:2px solid var(--bad);border-left-width:.5rem;padding:.5rem .75rem;
border-radius:.25rem}
nav ol{columns:2 15rem;padding-left:1.4rem;margin:.5rem 0}
nav{background:var(--card);padding:.5rem 1rem;border-radius:.25rem;margin:1.5rem 0}
nav h2{border:0;margin:.25rem 0;padding:0}
nav li{padding:.15rem 0;break-inside:avoid}
nav.own{background:none;padding:0;margin:.5rem 0}
nav.own ul{max-width:none;padding:0;margin:0;list-style:none;display:flex;flex-wrap:wrap;gap:0 1rem}
dl.card{background:var(--card);padding:.75rem 1rem;border-radius:.25rem;display:grid;
grid-template-columns:fit-content(13rem) minmax(0,1fr);gap:.35rem 1rem}
dl.card dt{font-weight:600}
dl.card dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:.75rem 0;max-width:100%;background:
linear-gradient(to right,var(--page) 35%,transparent) 0 0/2.5rem 100% no-repeat local,
linear-gradient(to left,var(--page) 35%,transparent) 100% 0/2.5rem 100% no-repeat local,
linear-gradient(to right,var(--shade),transparent) 0 0/1rem 100% no-repeat scroll,
linear-gradient(to left,var(--shade),transparent) 100% 0/1rem 100% no-repeat scroll}
.cue{margin:.75rem 0 0;color:var(--soft);font-size:.9rem}
.cue+.scroll,figure .cue{margin-top:0}
table{border-collapse:collapse;font-size:.9rem;min-width:100%}
caption span{display:inline-block;position:sticky;left:0;max-width:calc(100vw - 2rem)}
caption{text-align:left;font-weight:600;padding:.25rem 0}
th,td{padding:.3rem .5rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{border-bottom:2px solid var(--soft);vertical-align:bottom}
tbody th{font-weight:400;min-width:9rem}
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}
td.n span{white-space:nowrap}
thead th.n[scope=col]{max-width:8rem}
tr.group th{font-weight:600;background:var(--card)}
tr.main th,tr.main td{font-weight:600}
th button{font:inherit;font-weight:600;color:inherit;background:none;border:0;padding:0;
cursor:pointer;text-align:inherit;min-height:1.5rem}
th button::after{content:"\\a0\\2195"}
th[aria-sort=ascending] button::after{content:"\\a0\\2191"}
th[aria-sort=descending] button::after{content:"\\a0\\2193"}
.pass{color:var(--good)}.fail{color:var(--bad);font-weight:600}
figure{margin:1.25rem 0}
figure .scroll{margin:0}
figure svg{display:block;width:100%;min-width:34rem;max-width:54rem;height:auto}
details{margin:.5rem 0}
summary{cursor:pointer;min-height:1.5rem;color:var(--link)}
code{font-size:.9em;overflow-wrap:anywhere}
pre{overflow-x:auto;background:var(--card);padding:.75rem;font-size:.8rem;white-space:pre-wrap;
overflow-wrap:anywhere}
.refs li{margin:.3rem 0;overflow-wrap:anywhere}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.5rem}
"""

FIGURES = """
svg text{font-size:13px;fill:var(--ink)}
svg .tick{fill:var(--soft);font-size:12.5px}
svg .label{font-size:13.5px}
svg .strong{font-weight:600}
svg .small{font-size:12px;fill:var(--soft)}
svg .axis{stroke:var(--soft);stroke-width:1}
svg .grid{stroke:var(--faint);stroke-width:1}
svg .rule{stroke:var(--ink);stroke-width:1.5;fill:none}
svg .dash{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:6 4;fill:none}
svg .t{stroke:var(--target);stroke-width:2;fill:none}
svg .c{stroke:var(--comparator);stroke-width:2;stroke-dasharray:8 4;fill:none}
svg .t.thin{stroke-width:1.2;stroke-dasharray:2 3}
svg .c.thin{stroke-width:1.2;stroke-dasharray:10 3 2 3}
svg .tband{fill:var(--target);opacity:.16}
svg .cband{fill:var(--comparator);opacity:.16}
svg .tbar{fill:var(--target)}
svg .cbar{fill:var(--page);stroke:var(--comparator);stroke-width:1.5}
svg .tmark{fill:var(--target);stroke:var(--page);stroke-width:1}
svg .cmark{fill:var(--page);stroke:var(--comparator);stroke-width:2}
svg .plain{fill:none;stroke:var(--ink);stroke-width:1.5}
svg .dot{fill:var(--grey);fill-opacity:.55}
svg .hex{fill:var(--grey);fill-opacity:.45}
svg .solid{fill:var(--ink)}
svg .hollow{fill:var(--page);stroke:var(--ink);stroke-width:1.5}
svg .shade{fill:var(--faint)}
svg .region{fill:var(--grey);fill-opacity:.22}
svg .card{fill:var(--card);stroke:var(--line)}
svg .tcard{fill:var(--card);stroke:var(--target);stroke-width:2}
svg .ccard{fill:var(--card);stroke:var(--comparator);stroke-width:2;stroke-dasharray:8 4}
svg .thatch{stroke:var(--target);stroke-width:1.2}
svg .chatch{stroke:var(--comparator);stroke-width:1.2}
svg .plate{fill:var(--page)}
svg .hatch{stroke:var(--grey);stroke-width:2}
"""

SMALL = """
@media(max-width:30rem){body{padding:.6rem}h1{font-size:1.4rem}h2{font-size:1.2rem}
dl.card{grid-template-columns:1fr;gap:.1rem}dl.card dd{margin-bottom:.5rem}
table{font-size:.82rem}th,td{padding:.3rem .35rem}tbody th{min-width:7.5rem}}
"""

PRINT = """
@media print{@page{size:A4;margin:16mm}
html{font-size:9.5pt}body{max-width:none;padding:0}
nav,.skip,.cue{display:none}
.scroll{overflow:visible;background:none}
table{font-size:8pt}th,td{padding:.2rem .35rem}tbody th{min-width:6rem}
figure,tr,dl.card,.warning{break-inside:avoid}
h2,h3,h4,caption{break-after:avoid}
figure svg{min-width:0;max-width:150mm}
p,ul,dd,figcaption{max-width:none}
th button::after{content:""}
.refs a::after{content:" (" attr(href) ")"}
tr.group{break-after:avoid}
details:not([open]){display:none}}
"""


def style(theme: str) -> str:
    """The style sheet; "light" turns dark for readers whose system asks for it, "dark" always is.

    Paper is white in every theme.
    """
    if theme == "dark":
        colours = f":root{{{DARK}color-scheme:dark}}"
    else:
        colours = (
            f":root{{{LIGHT}color-scheme:light dark}}"
            f"@media screen and (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
        )
    paper = f"@media print{{:root{{{LIGHT}color-scheme:light}}}}"
    text = "".join((colours, paper, PAGE, FIGURES, SMALL, PRINT))
    return text.replace("\n", "")
