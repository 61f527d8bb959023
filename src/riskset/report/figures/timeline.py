"""The design on a line: washout, index date, time at risk."""

from riskset.report.markup import join
from riskset.report.svg import DrawnFigure, box, line, mark, polyline, text, wrap

__all__ = ["timeline_figure"]

INDEX, LEFT, RIGHT = 300.0, 10.0, 706.0


def timeline_figure(
    washout: tuple[str, str] | None, index: str, risk: tuple[str, str]
) -> DrawnFigure:
    """A name in each window and words below it; not to scale. There may be no washout."""
    y = 54.0
    windows = [(INDEX + 24, RIGHT - 26, "tcard", risk)]
    if washout is not None:
        windows.insert(0, (LEFT + 20, INDEX, "ccard", washout))
    parts = [
        line(LEFT, y, RIGHT, y, "rule"),
        polyline([(RIGHT - 8, y - 5), (RIGHT, y), (RIGHT - 8, y + 5)], "rule"),
        *(box(left, y - 15, right - left, 30, kind) for left, right, kind, _ in windows),
        line(INDEX, y - 24, INDEX, y + 24, "rule"),
        mark("diamond", INDEX, y, 7, "solid"),
    ]
    parts.append(text(INDEX, 20, index, "strong", "middle"))
    deepest = 1
    for left, right, _, (name, words) in windows:
        middle = (left + right) / 2
        parts.append(text(middle, y + 5, name, "strong", "middle"))
        lines = wrap(words, right - left, 12.0, 4)
        deepest = max(deepest, len(lines))
        parts += [
            text(middle, y + 36 + 15 * j, one, "small", "middle") for j, one in enumerate(lines)
        ]
    return DrawnFigure(y + 36 + 15 * deepest, join(*parts))
