"""Test explorers in a real browser: the page computes the same results as Python, without a kernel."""

from __future__ import annotations

import json
import random
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from nbconvert import HTMLExporter
from playwright.sync_api import Page, expect

from helpers.explorers.explore import NAMES, explore
from helpers.explorers.form import javascript_of, text_of

MOST = {"cost": 150, "algorithms": 800, "samples": 500, "collective": 300}
"""The maximum number of settings that are compared, because Python takes a second for some of them."""

COMPUTE = """([source, page, settings]) => {
    const run = new Function("page", `${source}
        const host = document.body.appendChild(make("div")), pen = penOn(host, page.colors);
        return (set, i) => {
            const now = plan(set, page.given), { lines } = words(page, set, now);
            if (i % 7 === 0) pen.redraw(() => draw(pen, now, set));
            return { now, text: lines.join("\\\\n"), drawn: !/NaN|undefined|Infinity/.test(host.innerHTML) };
        };`)(page);
    return settings.map(run);
}"""


def settings_of(name: str) -> list[dict[str, Any]]:
    """Return all settings of an explorer, or as many as there is time for, always the same."""
    controls = import_module(f"helpers.explorers.{name}").CONTROLS
    values = [list(control.options.values()) for control in controls]
    names = [control.name for control in controls]
    if name not in MOST:
        return [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]
    draw = random.Random(name)
    return [
        {n: draw.choice(v) for n, v in zip(names, values, strict=True)} for _ in range(MOST[name])
    ]


def same(page: Any, python: Any) -> bool:
    """Return whether two values of JSON are equal, with numbers up to rounding."""
    if isinstance(python, dict):
        return set(page) == set(python) and all(same(page[key], python[key]) for key in python)
    if isinstance(python, list):
        return len(page) == len(python) and all(map(same, page, python))
    if isinstance(python, float | int):
        return bool(page == pytest.approx(python, rel=1e-12, abs=1e-15))
    return bool(page == python)


@pytest.mark.extended
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", NAMES)
def test_page_computes_same_results_as_python(name: str, page: Page) -> None:
    module, settings = import_module(f"helpers.explorers.{name}"), settings_of(name)
    to_json = explore(name).to_json()
    found = page.evaluate(COMPUTE, [javascript_of(module), to_json, settings])
    for setting, got in zip(settings, found, strict=True):
        assert got["text"] == text_of(module, setting), setting
        assert same(got["now"], json.loads(json.dumps(module.plan(**setting)))), setting
        assert got["drawn"], setting


def show(page: Page, *explorers: Any) -> None:
    page.set_content("".join(one._repr_mimebundle_()["text/html"] for one in explorers))
    expect(page.locator(".rr-explorer svg")).to_have_count(len(explorers))


def test_slider_updates_numbers_and_picture(page: Page) -> None:
    show(page, explore("pipeline", kind="GPipe"))
    says, picture = page.locator(".rr-says"), page.locator(".rr-explorer svg")
    slider = page.get_by_role("slider", name="microbatches")
    before = picture.inner_html()
    slider.fill("15")  # from 8 microbatches to 16
    expect(says).to_have_text(
        "GPipe, 4 stages, 16 microbatches: the bubble is 16% of the time; the first stage holds "
        "16 microbatches at most."
    )
    assert picture.inner_html() != before
    expect(slider).to_have_attribute("aria-valuetext", "16")
    expect(picture).to_have_attribute("aria-label", f"Pipeline schedules: {says.inner_text()}")
    page.get_by_role("button", name="Reset").click()
    expect(says).to_contain_text("8 microbatches")
    assert picture.inner_html() == before


@pytest.mark.extended
def test_keys_move_controls_without_moving_notebook(page: Page) -> None:
    show(page, explore("pipeline"))
    page.evaluate(
        "document.addEventListener('keydown', () => document.body.classList.add('moved'))"
    )
    page.get_by_role("slider", name="stages").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("radio", name="1F1B").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".rr-says")).to_contain_text("zero bubble, 5 stages")
    expect(page.locator("body")).not_to_have_class("moved")


@pytest.mark.extended
def test_pages_of_same_explorer_stay_independent(page: Page) -> None:
    show(page, explore("memory"), explore("memory"))
    page.get_by_role("radio", name="24").last.check()
    expect(page.locator(".rr-says").first).to_contain_text("with 80 GB")
    expect(page.locator(".rr-says").last).to_contain_text("with 24 GB")


@pytest.mark.extended
def test_gpu_and_model_choices_set_controls(page: Page) -> None:
    show(page, explore("cost", gpus=64))
    layers = page.get_by_role("slider", name="your own: layers")
    expect(layers).to_be_disabled()
    page.get_by_role("radio", name="A100").check()
    for name, value in (("in a host [GB/s]", "300"), ("network [GB/s]", "25")):
        expect(page.get_by_role("slider", name=name)).to_have_attribute("aria-valuetext", value)
    page.get_by_role("radio", name="your own").check()
    expect(layers).to_be_enabled()


@pytest.mark.extended
def test_collective_page_notes_real_ranks(page: Page) -> None:
    show(page, explore("collective", op="reduce", ranks=3, root=2))
    expect(page.locator(".rr-note")).to_contain_text("On real ranks: when this cell ran")
    page.get_by_role("slider", name="ranks").fill("0")  # two ranks have no root 2
    expect(page.locator(".rr-says")).to_contain_text("reduce root 1 SUM on 2 ranks")
    page.get_by_role("radio", name="all_to_all").check()
    expect(page.get_by_role("slider", name="root")).to_be_disabled()
    expect(page.get_by_role("radio", name="SUM")).to_be_disabled()


@pytest.mark.extended
def test_exported_controls_work_without_server(page: Page, tmp_path: Path) -> None:
    output = nbformat.v4.new_output("execute_result", explore("buckets")._repr_mimebundle_())  # type: ignore[no-untyped-call]
    cell = nbformat.v4.new_code_cell('explore("buckets")', outputs=[output])  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=[cell])  # type: ignore[no-untyped-call]
    html, _ = HTMLExporter().from_notebook_node(notebook)
    exported = tmp_path / "exported.html"
    exported.write_text(html)
    page.route(
        "**/*",
        lambda route: (
            route.continue_() if route.request.url.startswith("file:") else route.fulfill()
        ),
    )
    page.goto(exported.as_uri())
    page.get_by_role("slider", name="layers in a bucket").fill("7")
    expect(page.locator(".rr-says")).to_contain_text("1 bucket: the step takes 20.1 ms")


@pytest.mark.extended
@pytest.mark.parametrize("name", NAMES)
def test_explorer_is_readable_and_accessible(name: str, page: Page) -> None:
    show(page, explore(name))
    page.get_by_text("In words").click()
    found = Axe().run(page, context={"include": [[".rr-explorer"]]}).response
    assert not found["violations"], [
        (v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found["violations"]
    ]
    for width in (640, 1000, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.locator(".rr-explorer svg")).to_be_visible()
        fits = "box => box.scrollWidth <= box.clientWidth"
        assert page.locator(".rr-picture").evaluate(fits)
    sizes = "nodes => nodes.map(node => parseFloat(getComputedStyle(node).fontSize))"
    assert min(page.locator(".rr-explorer :is(text, p, span, output)").evaluate_all(sizes)) >= 13


@pytest.mark.extended
def test_reduced_motion_disables_transitions(page: Page) -> None:
    show(page, explore("memory"))
    glide = "node => getComputedStyle(node).transitionDuration"
    bar = page.locator(".rr-explorer svg > rect").first
    assert "0.18s" in bar.evaluate(glide)
    page.emulate_media(reduced_motion="reduce")
    assert bar.evaluate(glide) == "0s"


@pytest.mark.extended
def test_page_shows_text_without_scripts(page: Page) -> None:
    shown = explore("checkpoints")
    still = page.context.browser.new_page(java_script_enabled=False)  # type: ignore[union-attr]
    still.set_content(shown._repr_mimebundle_()["text/html"])
    assert still.locator("pre").inner_text() == repr(shown)
