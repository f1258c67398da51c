"""A browser that opens pages of reports: Debian's Chromium, driven by Selenium."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from needs import need
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # as root, in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
)
_PATIENCE = 60


class Browser:
    """One window, and what a test asks of it."""

    def __init__(self, driver: webdriver.Chrome, folder: Path) -> None:
        self.driver = driver
        self._folder = folder
        self._pages = 0

    def open(self, html: str, place: str = "", *, width: int = 1280, dark: bool = False) -> None:
        """Open a page, and wait until its figures and charts are drawn."""
        self._pages += 1
        file = self._folder / f"report-{self._pages}.html"
        file.write_text(html, encoding="utf-8")
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        colours = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [colours]})
        self.messages()
        self.requests()
        self.driver.get(f"{file.as_uri()}#{place}")
        self.wait("return document.documentElement.dataset.ready === 'true'")
        self.wait_for_charts()

    def wait_for_charts(self) -> None:
        self.wait("return [...document.querySelectorAll('.plot')].every(p => p.childElementCount)")

    def go(self, place: str) -> None:
        """Follow a link inside the page."""
        self.run("location.hash = arguments[0]", f"#{place}")
        self.wait("return document.getElementById('main').childElementCount > 0")
        time.sleep(0.05)  # the event of the new address
        self.wait_for_charts()

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str) -> None:
        until = time.monotonic() + _PATIENCE
        while not self.run(script):
            assert time.monotonic() < until, (script, self.messages())
            time.sleep(0.02)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def table(self, caption: str) -> WebElement:
        """The box of a table: its filter, its rows, its buttons."""
        return self.run(
            "return [...document.querySelectorAll('.table')].find("
            "box => box.querySelector('caption').textContent === arguments[0])",
            caption,
        )

    def column(self, caption: str, place: int) -> list[str]:
        """The texts of a table's column."""
        return self.run(
            "return [...arguments[0].querySelectorAll('tbody tr')].map("
            "row => row.cells[arguments[1]].textContent)",
            self.table(caption),
            place,
        )

    def messages(self) -> list[str]:
        """Lines on the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses of requests since the last call."""
        events = [json.loads(entry["message"]) for entry in self.driver.get_log("performance")]
        return [
            event["message"]["params"]["request"]["url"]
            for event in events
            if event["message"]["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser that ends with the block."""
    need("chromium")
    need("chromedriver")
    options = Options()
    options.binary_location = _path("chromium")
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(_path("chromedriver")))
    try:
        yield Browser(driver, folder)
    finally:
        driver.quit()


def _path(program: str) -> str:
    found = shutil.which(program)
    assert found is not None
    return found
