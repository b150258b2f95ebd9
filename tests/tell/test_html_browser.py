"""The page in a real browser: Chromium, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scopedown.tell import html
from tell import pages
from tell.reports import HOSTILE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH (Debian: apt-get install chromium)")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@dataclass
class Seen:
    """A page and everything that it complained of or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda m: self.complaints.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("dialog", lambda d: (self.complaints.append(d.message), d.dismiss()))
        self.page.on("request", lambda r: self.requests.append(r.url))

    def open(self, path: Path, mark: str = "") -> Seen:
        self.page.goto(f"{path.as_uri()}{mark}")
        self.page.wait_for_selector("html[data-ready=yes]")
        return self

    def drawn(self) -> str:
        """What the canvas shows."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return str(self.page.evaluate("document.getElementById('canvas').toDataURL()"))

    def click_lane(self, what: str, ns: int) -> None:
        spot = self.page.evaluate("([w, t]) => document.getElementById('canvas').spot(w, t)", [what, ns])
        self.page.locator("#canvas").click(position=spot)

    @property
    def panel(self) -> str:
        return str(self.page.inner_text("#panel"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        started = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def look(browser: Any) -> Iterator[Any]:
    """Opens a page; afterwards nothing may have been complained of, and nothing asked for but the file."""
    made: list[Seen] = []

    def opened(width: int = 1440, height: int = 900, **more: Any) -> Seen:
        context = browser.new_context(viewport={"width": width, "height": height}, **more)
        made.append(Seen(context.new_page()))
        return made[-1]

    yield opened
    for seen in made:
        assert seen.complaints == []
        assert {u for u in seen.requests if not u.startswith("data:,")} <= {seen.page.url.partition("#")[0]}
        seen.page.context.close()


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worked")
    target = folder / "report.html"
    target.write_bytes(pages.of_situation("worked_example", folder / "case"))
    return target


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("large") / "report.html"
    target.write_bytes(html.render(*pages.large()))
    return target


def test_the_answer_is_on_the_page(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    assert "TTFT 120" in seen.page.inner_text("h1")
    assert "measure at the framework scope" in seen.page.inner_text("#next")
    assert "kernel" in seen.page.inner_text("#scopes")
    assert "sum to" in seen.page.inner_text("#ledger")
    for section in ("#repeats", "#statements", "#unknown", "#warnings", "#devices", "#behind"):
        assert seen.page.is_visible(section), section


def test_a_ledger_bar_lights_up_its_occurrences(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    before = seen.drawn()
    bar = seen.page.locator("#ledger button.line").first
    bar.click()
    assert bar.get_attribute("aria-pressed") == "true"
    assert "LEDGER LINE L1" in seen.panel.upper()
    assert seen.drawn() != before
    bar.click()
    assert bar.get_attribute("aria-pressed") == "false"
    assert seen.drawn() == before


def test_a_gap_leads_to_its_cause(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    before = seen.drawn()
    gap = seen.page.evaluate("""() => {
        const g = JSON.parse(document.getElementById('data').textContent).drawing.links[0];
        const longest = g.d.indexOf(Math.max(...g.d.filter((_, i) => g.thing[i] >= 0 && g.s[i] > 20e6)));
        return g.s[longest] + g.d[longest] / 2; }""")
    seen.click_lane("idle", gap)
    for words in ("IDLE GAPS G", "HOST LATE", "MEDIAN", "REFUTED BY", "ASKED FOR", "OF THE SAME CAUSE"):
        assert words in seen.panel.upper(), words
    assert seen.drawn() != before
    seen.page.locator("#panel .links button").first.click()
    assert "LEDGER LINE" in seen.panel.upper()


def test_a_piece_of_the_path_is_its_pattern(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    member = seen.page.evaluate("""() => {
        const p = JSON.parse(document.getElementById('data').textContent).things.find((t) => t.id === 'p1');
        return p.members.s[0] + p.members.d[0] / 2; }""")
    seen.click_lane("path", member)
    assert "PATTERN P1" in seen.panel.upper()


def test_an_event_beside_the_path_tells_what_it_is(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    seen.click_lane("thread", 60_000_000)
    assert "BEGINS" in seen.panel.upper()
    seen.page.locator("#panel button", has_text="clear").click()
    assert "SELECTION" in seen.panel.upper()


def test_the_keyboard_reaches_everything(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    keys = seen.page.keyboard
    keys.press("Tab")
    assert seen.page.evaluate("document.activeElement.className") == "skip"
    order = []
    for _ in range(80):
        keys.press("Tab")
        if seen.page.evaluate("document.activeElement === document.body"):
            break
        here = seen.page.evaluate("document.activeElement.closest('section, header, aside')?.id || 'header'")
        order += [here] if here not in order else []
        outline = seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", here
    assert [x for x in order if x in ("next", "ledger", "time", "repeats")] == ["next", "ledger", "time", "repeats"]


def test_the_axis_moves_under_the_keys(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    seen.page.focus("#canvas")
    whole = seen.drawn()
    shown = [whole]
    for key in ("ArrowUp", "ArrowUp", "ArrowRight", "ArrowLeft", "n", "n", "p", "Enter", "n", "Escape"):
        seen.page.keyboard.press(key)
        shown.append(seen.drawn())
    assert len(set(shown[:4])) == 4
    assert shown[4] == shown[2]
    assert shown[8] != shown[7]
    seen.page.keyboard.press("Home")
    assert seen.drawn() == whole
    assert "SELECTION" in seen.panel.upper()


def test_enter_chooses_and_escape_clears(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    seen.page.locator("#ledger button.line").nth(1).focus()
    seen.page.keyboard.press("Enter")
    assert "LEDGER LINE L2" in seen.panel.upper()
    seen.page.keyboard.press("Escape")
    assert "SELECTION" in seen.panel.upper()


def test_a_link_may_name_what_to_show(look: Any, worked: Path) -> None:
    assert "PATTERN P1" in look().open(worked, "#p1").panel.upper()


def test_next_and_previous_go_from_one_occurrence_to_the_next(look: Any, worked: Path) -> None:
    seen = look().open(worked, "#p1")
    one = seen.drawn()
    seen.page.locator("#panel button", has_text="next").click()
    two = seen.drawn()
    seen.page.locator("#panel button", has_text="next").click()
    assert len({one, two, seen.drawn()}) == 3


def test_dragging_and_the_wheel_move_the_axis(look: Any, worked: Path) -> None:
    seen = look().open(worked)
    whole = seen.drawn()
    box = seen.page.locator("#canvas").bounding_box()
    seen.page.locator("#canvas").scroll_into_view_if_needed()
    box = seen.page.locator("#canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    seen.page.mouse.move(x, y)
    seen.page.keyboard.down("Control")
    seen.page.mouse.wheel(0, -300)
    seen.page.keyboard.up("Control")
    near = seen.drawn()
    assert near != whole
    seen.page.mouse.down()
    seen.page.mouse.move(x - 150, y, steps=4)
    seen.page.mouse.up()
    assert seen.drawn() != near
    assert "SELECTION" in seen.panel.upper()


def test_copy_takes_the_whole_command(look: Any, worked: Path) -> None:
    seen = look(permissions=["clipboard-read", "clipboard-write"]).open(worked)
    button = seen.page.locator("button.copy").first
    button.click()
    playwright.expect(button).to_have_text("copied")
    copied = seen.page.evaluate("navigator.clipboard.readText()")
    assert copied == seen.page.locator("#next pre").first.inner_text()
    assert copied.startswith("vllm serve")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes_are_readable_and_can_be_chosen(look: Any, worked: Path, scheme: str) -> None:
    seen = look(color_scheme=scheme).open(worked)
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = sum(map(int, seen.page.evaluate(ground)[4:-1].split(","))) < 150
    assert dark == (scheme == "dark")
    shown = {seen.page.evaluate(ground)}
    for _ in range(2):
        seen.page.click("#theme")
        shown.add(seen.page.evaluate(ground))
        assert contrast(seen, "#next .why", ".card") >= 4.5
        assert contrast(seen, "h1", "body") >= 7
    assert len(shown) == 2


def contrast(seen: Seen, text: str, ground: str) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(selector: str, what: str) -> float:
        rgb = seen.page.evaluate("([s, w]) => getComputedStyle(document.querySelector(s))[w]", [selector, what])
        parts = [int(x) / 255 for x in rgb[4:-1].split(",")[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    a, b = sorted((luminance(text, "color"), luminance(ground, "backgroundColor")))
    return (b + 0.05) / (a + 0.05)


@pytest.mark.parametrize("width", [320, 360, 760, 1160, 1600, 2400])
def test_no_width_needs_to_be_scrolled_sideways(look: Any, worked: Path, width: int) -> None:
    seen = look(width=width).open(worked)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    seen.page.locator("#ledger button.line").first.click()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.page.locator("#panel").is_visible()


def test_it_prints_whole_and_light(look: Any, worked: Path, tmp_path: Path) -> None:
    seen = look(color_scheme="dark").open(worked)
    seen.page.evaluate("""() => addEventListener('beforeprint', () => (window.printed = {
        theme: document.documentElement.dataset.theme,
        closed: document.querySelectorAll('details:not([open])').length,
        hidden: [...document.querySelectorAll('#ledger .line')].filter((x) => x.hidden).length }))""")
    seen.page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert seen.page.evaluate("window.printed") == {"theme": "light", "closed": 0, "hidden": 0}
    assert (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") > 2
    # Afterwards the page is as it was.
    assert seen.page.evaluate("document.documentElement.dataset.theme") == "auto"
    assert seen.page.evaluate("document.querySelectorAll('details[open]').length") == 0


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_read_and_never_run(look: Any, tmp_path: Path, text: str) -> None:
    target = tmp_path / "page.html"
    target.write_bytes(pages.hostile_page(text))
    for width in (360, 1440):
        seen = look(width=width).open(target)
        assert seen.page.evaluate("document.querySelectorAll('img, script:not(#data)').length") == 1
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        for i in range(3):
            seen.page.locator("#ledger .line").nth(i).click()
        seen.page.focus("#canvas")
        seen.page.keyboard.press("n")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert "\u202e" not in seen.page.inner_text("body")


@pytest.mark.parametrize("name", ["near_saturation", "two_devices", "hand_over", "opaque_graph", "nothing_wrong"])
def test_other_situations_have_a_page(look: Any, tmp_path: Path, name: str) -> None:
    target = tmp_path / "page.html"
    target.write_bytes(pages.of_situation(name, tmp_path / "case"))
    seen = look().open(target)
    seen.page.locator("#ledger .line").first.click()
    assert seen.page.locator("#ledger .line").count() > 0


def test_a_million_events_are_painted_within_a_second(look: Any, large: Path) -> None:
    """The best of three: other work of the machine is not the page's."""
    times = []
    for _ in range(3):
        seen = look().open(large)
        paint = "performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)"
        while not (found := seen.page.evaluate(paint)):
            seen.page.wait_for_timeout(20)
        times += found
    assert min(times) < 1_000, times
    assert "drawn together" in seen.page.inner_text("#time")


def test_a_million_events_answer_to_the_keys_at_once(look: Any, large: Path) -> None:
    seen = look().open(large)
    took = seen.page.evaluate("""async () => {
        const canvas = document.getElementById('canvas'), frame = () => new Promise(requestAnimationFrame);
        const times = [];
        for (const key of ['ArrowUp', 'ArrowRight', 'ArrowDown', 'Home', 'ArrowUp', 'ArrowUp']) {
            await frame();
            const begin = performance.now();
            canvas.dispatchEvent(new KeyboardEvent('keydown', { key }));
            await frame(); await frame();
            times.push(performance.now() - begin);
        }
        return Math.min(...times); }""")
    assert took < 200
