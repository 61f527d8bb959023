"""Makes the pictures of docs/tutorial.md, and docs/report.png: `make pictures`.

Does the tutorial and the example study, and takes the pictures from their reports in a headless
Chromium (CHROMIUM names one).
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import playwright.sync_api as playwright
from PIL import Image

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

import riskset as rs  # noqa: E402
from tutorial import Reader  # noqa: E402

NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDTH = 1000

# A picture shows all from the first to the last of these elements of a report.
FIRST_PLAN = {
    "tutorial-withheld": ("p.lead", "#checks ~ div, #checks ~ table"),
    "tutorial-overlap": ("section[aria-labelledby=overlap] figure",),
    "tutorial-balance": ("section[aria-labelledby=balance] figure",),
}
FIRST_STUDY = {"tutorial-hazard-ratios": ("section[aria-labelledby=result] figure",)}
SECOND_STUDY = {"tutorial-controls": ("section[aria-labelledby=controls] figure",)}
MARGIN = 12

# The head of a report and its first figure, and three more figures beside them.
TWO_COLUMNS = """() => {
    const figure = id => document.querySelector(`section[aria-labelledby=${id}] figure`);
    const main = document.querySelector("main");
    const [left, right] = [1, 2].map(() => document.createElement("div"));
    const first = [...main.children].findIndex(child => child.tagName === "SECTION");
    left.append(...[...main.children].slice(0, first), figure("result"));
    right.append(...["curves", "overlap", "balance"].map(figure));
    main.replaceChildren(left, right);
    main.querySelectorAll("details").forEach(details => details.remove());
    main.style.cssText = "display: grid; grid-template-columns: 1fr 1fr; gap: 3.5rem";
    main.style.padding = "12px";
    document.body.style.maxWidth = "none";
}"""


def main() -> None:
    """Write the pictures beside the text."""
    with playwright.sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        with contextlib.chdir(folder):
            seen = set()
            for _ in Reader().steps():
                for name, pictures in (("rhc", FIRST_PLAN), ("cdm", SECOND_STUDY)):
                    report = Path(name, "report.html")
                    if report.exists() and name not in seen:
                        seen.add(name)
                        take(browser, report, pictures)
            take(browser, Path("rhc/report.html"), FIRST_STUDY)
            rs.study.run(rs.study.Study.parse(rs.study.example()), "example")
            rs.report.write("example", "example.html")
            take_report(browser, Path("example.html"))
        browser.close()


def take(browser: playwright.Browser, report: Path, pictures: dict[str, tuple[str, ...]]) -> None:
    """Pictures of parts of a report."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 900})
    page.goto(report.resolve().as_uri())
    for name, shown in pictures.items():
        boxes = [page.locator(selector).first.bounding_box() for selector in shown]
        top = min(box["y"] for box in boxes) - MARGIN
        left = min(box["x"] for box in boxes) - MARGIN
        right = max(box["x"] + box["width"] for box in boxes) + MARGIN
        bottom = max(box["y"] + box["height"] for box in boxes) + MARGIN
        clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        path = DOCS / f"{name}.png"
        page.screenshot(path=path, full_page=True, clip=clip)
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    page.close()


def take_report(browser: playwright.Browser, report: Path) -> None:
    """A picture of a whole report, in short."""
    page = browser.new_page(viewport={"width": 3 * WIDTH // 2, "height": 900})
    page.goto(report.resolve().as_uri())
    page.evaluate(TWO_COLUMNS)
    path = DOCS / "report.png"
    page.locator("main").screenshot(path=path)
    Image.open(path).quantize().save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes")
    page.close()


if __name__ == "__main__":
    main()
