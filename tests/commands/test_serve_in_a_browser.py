"""The page of `harp serve` as a reader sees it, in Chromium without a window."""

import shutil

import pytest
from adapted import make_adapted, served
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import url_contains
from selenium.webdriver.support.wait import WebDriverWait

from harp_plugin.ranking.search import FolderSearch

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("chromedriver"), reason="Chromium's driver is missing"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory, tiny_bert):
    folder = make_adapted(tmp_path_factory.mktemp("serve"), tiny_bert)
    with served(FolderSearch(folder, "https://docs.example.org/")) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-background-networking"):
        options.add_argument(f"--{flag}")
    with webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver"))) as driver:
        yield driver


def look(browser, *, width, color_scheme="light"):
    """Set the width of the view, and whether the reader prefers light or dark."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": color_scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def texts(browser, selector):
    return [element.text for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def color(element, name):
    """The red, green and blue of a color, each of 0 to 1."""
    given = element.value_of_css_property(name).partition("(")[2].rstrip(")")
    return [float(part) / 255 for part in given.split(",")[:3]]


def contrast(element, ground):
    """The contrast of a text with the ground of an element (WCAG 2.2, 1.4.3)."""
    lights = []
    for rgb in (color(element, "color"), color(ground, "background-color")):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(lights) / min(lights)


def test_a_reader_types_a_query_and_reads_results(address, browser):
    look(browser, width=1200)
    browser.get(address)
    assert browser.switch_to.active_element.get_attribute("name") == "q"  # it can be typed at once
    assert texts(browser, "li") == []
    browser.switch_to.active_element.send_keys("installing the network", Keys.ENTER)
    assert "Install" in texts(browser, "h2")
    assert {"Installing", "network"} <= {*texts(browser, "mark")}
    box = browser.find_element(By.NAME, "q")
    assert box.get_attribute("value") == "installing the network"
    box.clear()
    box.send_keys("Zurich")
    browser.find_element(By.TAG_NAME, "button").click()
    WebDriverWait(browser, 30).until(url_contains("q=Zurich"))
    link = browser.find_element(By.LINK_TEXT, "Café")
    assert link.get_attribute("href") == "https://docs.example.org/caf%C3%A9.md"
    assert browser.get_log("browser") == []  # nothing was refused, nothing failed


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_it_can_be_read(width, color_scheme, address, browser):
    look(browser, width=width, color_scheme=color_scheme)
    browser.get(f"{address}/?q=installing")
    page = browser.find_element(By.TAG_NAME, "html")
    assert int(page.get_property("scrollWidth")) <= width
    body = browser.find_element(By.TAG_NAME, "body")
    assert (max(color(body, "background-color")) < 0.3) == (color_scheme == "dark")
    card = browser.find_element(By.TAG_NAME, "li")
    written = card.find_elements(By.CSS_SELECTOR, "h2 a, p")
    marks = card.find_elements(By.TAG_NAME, "mark")
    assert len(written) == 4 and marks
    assert all(contrast(text, card) >= 4.5 for text in written)
    assert all(contrast(mark, mark) >= 4.5 for mark in marks)
