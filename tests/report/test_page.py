from __future__ import annotations

import base64
import copy
import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import Browser, browsing
from report_documents import NOW, all_null, document, empty_folder, one_topic
from selenium.webdriver.common.keys import Keys

from kafkajit.report.page import page

DOCUMENTS = {
    "one": one_topic,
    "thirty": document,
    "empty": empty_folder,
    "null": all_null,
}
HOSTILE = "</script><img src=x onerror=\"document.title='hit'\">\u202egnp.\x00\n'&amp;\ud800"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("pages")) as opened:
        yield opened


@pytest.fixture(scope="module")
def thirty() -> dict[str, Any]:
    return document()


def embedded(html: str, name: str) -> str:
    """The text of a part of the page, as the browser inflates it."""
    found = re.search(rf'<script type="text/plain" id="{name}">([\w+/=]*)</script>', html)
    assert found is not None
    return gzip.decompress(base64.b64decode(found[1])).decode()


def rows_again(value: Any) -> Any:
    """Rows of what the page keeps as columns."""
    if isinstance(value, list):
        return [rows_again(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "$rows" not in value:
        return {key: rows_again(part) for key, part in value.items()}
    columns = {key: rows_again(column) for key, column in value["columns"].items()}
    return [{key: columns[key][row] for key in columns} for row in range(value["$rows"])]


# The file


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_file_holds_the_whole_document(name: str) -> None:
    whole = DOCUMENTS[name]()
    assert rows_again(json.loads(embedded(page(whole), "document"))) == whole


def test_a_thousand_topics_take_less_than_three_megabytes() -> None:
    assert len(page(document(1_000, 20)).encode()) < 3_000_000


def test_the_same_document_gives_the_same_page() -> None:
    assert page(one_topic()) == page(one_topic())


def test_nothing_of_the_document_is_in_the_file_as_it_is() -> None:
    hostile = json.loads(json.dumps(one_topic()).replace("orders", "<b>{{vega}}</script>"))
    html = page(hostile)
    assert "<b>" not in html.replace(embedded(html, "vega"), "")
    assert html.count("</script>") == 3


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


def contrast(first: str, second: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((light(first), light(second)))
    return (lighter + 0.05) / (darker + 0.05)


def test_texts_and_marks_have_the_contrast_that_wcag_asks_for() -> None:
    html = page(empty_folder())
    style = html[html.index("<style>") : html.index("</style>")]
    blocks = [colours(block) for block in style.split("color-scheme:")]
    themes = [block for block in blocks if "ground" in block]
    assert len(themes) == 4  # light, dark by the system, dark by choice, printed
    assert themes[1] == themes[2]
    for theme in themes:
        theme = themes[0] | theme
        for ground in ("ground", "surface", "sunk"):
            for text in ("text", "muted", "link", "damage", "warning", "note"):
                assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground, theme)
        for mark in [*(name for name in theme if name.startswith(("codec-", "series"))), "bar"]:
            assert contrast(theme[mark], theme["surface"]) >= 3, (mark, theme)


# The page in a browser


@pytest.mark.parametrize("place", ["", "topic=orders"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_page_makes_no_request_and_writes_nothing_on_the_console(
    browser: Browser, name: str, place: str
) -> None:
    browser.open(page(DOCUMENTS[name]()), place)
    assert browser.all("h1")
    assert [url for url in browser.requests() if not url.startswith("file:///")] == []
    assert browser.messages() == []


def test_the_browser_refuses_requests_and_scripts_that_get_into_the_page(browser: Browser) -> None:
    browser.open(page(empty_folder()))
    refused = browser.driver.execute_async_script(
        "const [done] = arguments; const found = [];"
        "document.addEventListener('securitypolicyviolation', e => {"
        "  found.push(e.effectiveDirective); if (found.length === 3) done(found.sort()); });"
        "fetch('http://127.0.0.1:9/').catch(() => {});"
        "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}));"
        "const script = document.createElement('script');"
        "script.textContent = 'document.title = 1'; document.body.append(script);"
    )
    assert refused == ["connect-src", "img-src", "script-src-elem"]


@pytest.mark.parametrize("place", ["", "topic=orders", "trouble", "topic=nowhere"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_nothing_is_wider_than_a_telephone(browser: Browser, name: str, place: str) -> None:
    browser.open(page(DOCUMENTS[name]()), place, width=400)
    assert browser.run("return document.scrollingElement.scrollWidth <= innerWidth")


def test_a_heading_sorts_by_mouse(browser: Browser, thirty: dict[str, Any]) -> None:
    browser.open(page(thirty))
    by_bytes = sorted(thirty["topics"], key=lambda topic: -topic["bytes"])
    assert browser.column("Topics by size", 0) == [topic["topic"] for topic in by_bytes[:25]]
    headings = browser.table("Topics by size").find_elements("css selector", "thead th")
    assert headings[1].get_attribute("aria-sort") == "descending"
    headings[1].find_element("css selector", "button").click()
    assert headings[1].get_attribute("aria-sort") == "ascending"
    assert browser.column("Topics by size", 0) == [topic["topic"] for topic in by_bytes[:-26:-1]]


def test_a_heading_sorts_by_keyboard(browser: Browser, thirty: dict[str, Any]) -> None:
    browser.open(page(thirty))
    headings = browser.table("Topics by size").find_elements("css selector", "thead th")
    headings[1].find_element("css selector", "button").send_keys(Keys.TAB)
    focused = browser.driver.switch_to.active_element
    assert focused.text == "Records"
    assert browser.run("return getComputedStyle(arguments[0]).outlineStyle", focused) == "solid"
    focused.send_keys(Keys.ENTER)
    by_records = sorted(thirty["topics"], key=lambda topic: -topic["records"])
    assert browser.column("Topics by size", 0) == [topic["topic"] for topic in by_records[:25]]
    assert [heading.get_attribute("aria-sort") for heading in headings[:3]] == [
        "none",
        "none",
        "descending",
    ]


def test_a_table_filters_by_what_is_typed(browser: Browser, thirty: dict[str, Any]) -> None:
    browser.open(page(thirty))
    field = browser.table("Topics by size").find_element("css selector", "input[type=search]")
    field.send_keys("RETRY")
    wanted = {topic["topic"] for topic in thirty["topics"] if "retry" in topic["topic"]}
    assert {*browser.column("Topics by size", 0)} == wanted
    counted = browser.table("Topics by size").find_element("css selector", "[role=status]")
    assert counted.text == f"{len(wanted)} of 30 shown, {len(wanted)} match"
    field.send_keys(Keys.CONTROL, "a", Keys.DELETE)
    assert len(browser.column("Topics by size", 0)) == 25


def test_a_button_shows_all_rows(browser: Browser, thirty: dict[str, Any]) -> None:
    browser.open(page(thirty))
    box = browser.table("Topics by size")
    (more,) = [b for b in box.find_elements("css selector", "button") if b.text == "Show all 30"]
    more.send_keys(Keys.ENTER)
    assert len(browser.column("Topics by size", 0)) == 30
    assert browser.driver.switch_to.active_element.tag_name == "a"  # the first row that came


def labels(browser: Browser, title: str) -> list[str]:
    """The texts of a chart's marks, as a screen reader has them."""
    return browser.run(
        "return [...document.querySelectorAll('.figure')].find("
        "box => box.querySelector('h3')?.textContent === arguments[0])"
        ".querySelectorAll('.plot svg [aria-label]').values()"
        ".map(mark => mark.getAttribute('aria-label')).toArray()",
        title,
    )


@pytest.mark.parametrize("key", ["bytes", "records"])
def test_the_charts_of_a_topic_show_its_life(browser: Browser, key: str) -> None:
    whole = one_topic()
    browser.open(page(whole), "topic=orders")
    life = whole["topics"][0]["life"]
    shown = [text for text in labels(browser, f"{key.title()} by time") if text.endswith(key)]
    numbers = [int(text.split(": ")[1].split(" ")[0]) for text in shown]
    assert numbers == life[key]
    assert shown[0].startswith("2026-")


def test_the_chart_of_encodings_shows_each(browser: Browser) -> None:
    whole = one_topic()
    browser.open(page(whole), "topic=orders")
    shown = labels(browser, "Codec, level and batch size")
    savings = whole["topics"][0]["savings"]
    for row in savings["encodings"]:
        assert any(f": {row['bytes']} bytes, {row['encodeSeconds']:.10g} sec" in t for t in shown)
    assert f"now: {savings['now']['bytes']} bytes" in shown


def test_an_axis_of_durations_has_several_labels_if_they_are_about_equal(browser: Browser) -> None:
    whole = one_topic()
    for number, row in enumerate(whole["topics"][0]["savings"]["encodings"]):
        row["encodeSeconds"] = 0.0011 + number / 1e5
    whole["topics"][0]["savings"]["encodings"][0]["encodeSeconds"] = 0.0024
    browser.open(page(whole), "topic=orders")
    texts = [text.text for text in browser.all(".plot svg text")]
    assert {"1.5 ms", "2 ms"} <= {*texts}


def test_the_chart_of_retention_shows_each(browser: Browser) -> None:
    whole = one_topic()
    browser.open(page(whole), "topic=orders")
    retention = whole["topics"][0]["savings"]["retention"]
    shown = labels(browser, "Retention")
    for row in retention:
        assert f"{row['days']} day{'s' * (row['days'] > 1)}: {row['bytes']}" in shown


def planned() -> dict[str, Any]:
    """A document of one topic with dry runs."""
    whole = one_topic()
    topic = whole["topics"][0]
    topic["savings"]["dryRuns"] = {
        "partitions": 5,
        "retention": {
            "partitions": 4,
            "limits": [{"days": 3, "bytes": 4_321, "segments": 7}],
        },
        "compaction": {
            "partitions": 5,
            "isCompacted": False,
            "records": 777,
            "ofRecords": 888,
            "bytes": 1_234,
            "ofBytes": 5_678,
            "recordsWithoutKey": 55,
        },
        "leftAlone": [{"command": "retain", "partitions": 1, "reason": "an internal topic"}],
    }
    return whole


@pytest.mark.parametrize("place", ["", "topic=orders"])
def test_dry_runs_stand_in_for_estimates(browser: Browser, place: str) -> None:
    browser.open(page(planned()), place)
    assert "3 days: 4321" in labels(browser, "Retention")
    shown = browser.run("return document.body.textContent")
    assert "dry run of kafkajit retain over 5 partitions, 1 of which it leaves alone" in shown
    assert "dry run of kafkajit compact over 5 partitions" in shown
    cells = browser.run(
        "return [...document.querySelectorAll('data')].map(one => one.getAttribute('value'))"
    )
    assert {"1234", "777", "55"} <= set(cells)


def test_the_map_has_an_area_for_each_topic(browser: Browser, thirty: dict[str, Any]) -> None:
    browser.open(page(thirty))
    cells = browser.run(
        "return [...document.querySelectorAll('.cell')].map(cell => {"
        "  const box = cell.getBoundingClientRect();"
        "  return [decodeURIComponent(cell.hash.slice(7)), +cell.dataset.size,"
        "          box.width * box.height]; })"
    )
    assert {name: size for name, size, _ in cells} == {
        topic["topic"]: topic["bytes"] for topic in thirty["topics"]
    }
    (_, first, area), (_, second, other) = cells[:2]
    assert area / other == pytest.approx(first / second, rel=0.05)


def test_topics_without_a_place_on_the_map_are_added_up_below_it(
    browser: Browser, thirty: dict[str, Any]
) -> None:
    many = [{**thirty["topics"][0], "topic": f"t{n}", "bytes": 1_000} for n in range(62)]
    browser.open(page({**thirty, "topics": many}))
    assert len(browser.all(".cell")) == 60
    (line,) = browser.all(".others")
    assert line.text == "2 smaller topics with 2 kB are not on the map."
    browser.open(page(thirty))
    assert not browser.all(".others")[0].is_displayed()


def test_a_narrow_map_has_fewer_areas_each_with_room_for_a_name(
    browser: Browser, thirty: dict[str, Any]
) -> None:
    browser.open(page(thirty), width=400)
    assert len(browser.all(".cell")) == 20
    (line,) = browser.all(".others")
    assert line.text.startswith("10 smaller topics with ")


def test_the_legend_of_the_map_has_the_codecs_that_are_on_it(
    browser: Browser, thirty: dict[str, Any]
) -> None:
    codec = {"batches": 1, "records": 1, "bytes": 1}
    large, small = {**thirty["topics"][0], "bytes": 1_000}, {**thirty["topics"][0], "bytes": 1}
    many = [{**large, "topic": f"t{n}", "codecs": {"lz4": codec}} for n in range(60)]
    browser.open(page({**thirty, "topics": [*many, {**small, "codecs": {"gzip": codec}}]}))
    assert [each.text for each in browser.all(".legend li")] == ["lz4"]


def test_a_bar_of_an_hour_is_visible_on_a_telephone(browser: Browser) -> None:
    whole = one_topic()
    life = whole["topics"][0]["life"]
    life["bytes"] = [0] * 700
    life["bytes"][3] = life["bytes"][500] = 5
    life["records"] = life["bytes"]
    browser.open(page(whole), "topic=orders", width=400)
    lines = browser.run(
        "return [...document.querySelectorAll('.plot svg .mark-rect path')].filter("
        "bar => bar.getAttribute('aria-label')?.endsWith(' bytes')).map("
        "bar => [bar.getAttribute('aria-label').split(': ')[1], getComputedStyle(bar).strokeWidth])"
    )
    assert {width for text, width in lines if text == "5 bytes"} == {"1px"}
    assert {width for text, width in lines if text == "0 bytes"} == {"0px"}


def test_a_life_of_one_step_is_a_sentence(browser: Browser) -> None:
    whole = one_topic()
    life = {**whole["topics"][0]["life"], "bytes": [5], "records": [1]}
    whole["topics"][0]["life"] = {**life, "from": 1762300800000, "step": 3_600_000}
    browser.open(page(whole), "topic=orders")
    texts = [line.text for line in browser.all("p.empty")]
    assert texts.count("All are from 2025-11-05 00:00Z to 2025-11-05 01:00Z.") == 2


def test_the_numbers_of_a_chart_are_in_a_table(browser: Browser) -> None:
    whole = one_topic()
    browser.open(page(whole), "topic=orders")
    browser.all("details.numbers summary")[0].send_keys(Keys.ENTER)
    browser.wait("return document.querySelector('details.numbers table') !== null")
    exact = browser.run(
        "return [...document.querySelectorAll('details.numbers tbody data')].map(d => +d.value)"
    )
    assert exact == whole["topics"][0]["life"]["bytes"][:50]


def test_the_address_opens_a_topic_and_the_back_button_leaves_it(
    browser: Browser, thirty: dict[str, Any]
) -> None:
    browser.open(page(thirty), "topic=prices.v2")
    assert browser.all("h1")[0].text == "prices.v2"
    browser.go("topics")
    assert browser.all("h1")[0].text == "Kafka logs"
    browser.driver.back()
    browser.wait("return document.querySelector('h1').textContent === 'prices.v2'")


def test_a_thousand_topics_open_one_after_the_other(browser: Browser) -> None:
    whole = document(1_000, 20)
    browser.open(page(whole))
    assert len(browser.column("Topics by size", 0)) == 25
    for topic in whole["topics"][::300]:
        browser.go(f"topic={topic['topic']}")
        assert browser.all("h1")[0].text == topic["topic"]
        assert len(browser.column("Partitions", 0)) == 20
    assert browser.messages() == []


def test_much_trouble_is_added_up_by_kind(browser: Browser) -> None:
    whole = document(6, depth="sample")
    row = {**whole["trouble"][0], "severity": "note", "kind": "openTransaction"}
    whole["trouble"] = [{**row, "topic": f"t{n % 3}"} for n in range(1_000)]
    whole["trouble"] += [{**row, "severity": "damage", "kind": "corruption"}]
    browser.open(page(whole))
    assert browser.column("Kinds of trouble", 0) == ["✖damage", "●note"]
    assert browser.column("Kinds of trouble", 1) == ["corruption", "openTransaction"]
    assert browser.column("Kinds of trouble", 2) == ["1", "1,000"]
    assert browser.column("Kinds of trouble", 3) == ["1", "3"]
    browser.open(page({**whole, "trouble": whole["trouble"][:25]}))
    assert browser.table("Kinds of trouble") is None


@pytest.mark.parametrize("view", ["", "topic"])
def test_hostile_names_are_text(browser: Browser, view: str) -> None:
    whole = json.loads(json.dumps(document(6, depth="sample")))
    name = whole["topics"][0]["topic"]
    whole = json.loads(json.dumps(whole).replace(json.dumps(name)[1:-1], json.dumps(HOSTILE)[1:-1]))
    for row in whole["topics"][0]["sample"]["hottestKeys"]:
        row["key"] = HOSTILE + "x" * 10_000
    for row in whole["trouble"]:
        row.update(problem=HOSTILE, advice=HOSTILE, kind=HOSTILE)
    whole["paths"] = [HOSTILE]
    html = page(whole, {**whole, "topics": whole["topics"][:1]})
    browser.open(html)
    if view:
        browser.all("#topics a.name")[0]
        browser.run("[...document.querySelectorAll('a')].find(a => a.hash.includes('img')).click()")
        browser.wait("return document.querySelector('h1').textContent.includes('<img')")
        browser.wait_for_charts()
    assert browser.all("img") == []
    assert browser.driver.title != "hit"
    text = browser.run("return document.body.textContent")
    assert "<img src=x onerror" in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert browser.messages() == []


@pytest.mark.parametrize("place", ["", "topic=orders"])
def test_figures_that_are_absent_are_left_out(browser: Browser, place: str) -> None:
    whole = document(2, 2)
    kept = ("topic", "partitions", "bytes", "records", "batches")
    whole["topics"][0] = {name: whole["topics"][0][name] for name in kept}
    whole["topics"][1].update(bytes=0, records=0, batches=0, eachPartition=[])
    for name in ("seconds", "takenFrom", "groups", "sql", "folders", "trouble"):
        del whole[name]
    browser.open(page(whole), place)
    text = browser.run("return document.body.innerText")
    assert not [word for word in ("NaN", "undefined", "null", "Infinity") if word in text]
    assert browser.messages() == []


def test_timestamps_that_are_not_times_are_shown_as_numbers(browser: Browser) -> None:
    whole = one_topic()
    (topic,) = whole["topics"]
    topic["lastTimestamp"] = 2**63 - 1
    topic["firstTimestamp"] = -1
    whole["totals"]["lastTimestamp"] = 253_402_300_800_000  # the year 10000
    browser.open(page(whole), "topic=orders")
    browser.go("overview")
    assert browser.messages() == []
    assert "+010000-01-01 00:00Z" in browser.run("return document.body.textContent")


def test_each_figure_names_what_it_was_taken_from(browser: Browser) -> None:
    whole = one_topic()
    browser.open(page(whole), "topic=orders")
    sources = {element.text for element in browser.all(".from")}
    assert any(text.startswith("From the headers of all") for text in sources)
    assert any(text.startswith("From all ") for text in sources)
    sampled = document(1, 3)
    browser.open(page(sampled), "topic=orders")
    sources = {element.text for element in browser.all(".from")}
    assert any(text.startswith("From a sample of 20,000 of ") for text in sources)


@pytest.mark.parametrize("name", ["orders.v1-a_b", "it's"])
def test_a_query_is_shown_for_its_topic(browser: Browser, name: str) -> None:
    whole = one_topic()
    whole["topics"][0]["topic"] = name
    statement = "SELECT topic, partition\nFROM batches"
    whole["sql"]["partitions"] = statement
    browser.open(page(whole), f"topic={name}")
    (button,) = browser.all("button[aria-label='SQL of Partitions']")
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-expanded") == "true"
    code = browser.run(
        "return document.getElementById(arguments[0].getAttribute('aria-controls'))", button
    )
    assert code.is_displayed()
    # Kafka has no topic of the other name, which could end the string in the statement.
    own = f"SELECT * FROM (\n{statement}\n) WHERE topic = '{name}'"
    assert code.text.startswith(own if name == "orders.v1-a_b" else statement)


def test_colours_follow_the_system_and_the_switch(browser: Browser) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    html = page(empty_folder())
    browser.open(html)
    light = browser.run(ground)
    browser.open(html, dark=True)
    dark = browser.run(ground)
    assert light != dark
    buttons = {button.text: button for button in browser.all("#theme button")}
    buttons["Light"].click()
    assert browser.run(ground) == light
    assert buttons["Light"].get_attribute("aria-pressed") == "true"
    buttons["Auto"].click()
    assert browser.run(ground) == dark


def test_the_printer_gets_all_rows(browser: Browser, thirty: dict[str, Any]) -> None:
    browser.open(page(thirty))
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert len(browser.column("Topics by size", 0)) == 30
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert len(browser.column("Topics by size", 0)) == 25


@pytest.mark.parametrize("place", ["", "topic=orders"])
def test_tables_and_charts_have_names_for_a_screen_reader(browser: Browser, place: str) -> None:
    browser.open(page(document()), place)
    unnamed = browser.run(
        "return [...document.querySelectorAll('button, input, select, a, .plot, .scroll')]"
        ".filter(e => !(e.textContent.trim() || e.ariaLabel || e.labels?.length)"
        "  || (e.matches('.plot, .scroll, input') && !e.ariaLabel)).map(e => e.outerHTML)"
    )
    assert unnamed == []
    assert browser.run(
        "return [...document.querySelectorAll('table')].every(table => table.caption.textContent"
        "  && [...table.querySelectorAll('th')].every(th => ['col', 'row'].includes(th.scope))"
        "  && [...table.tBodies[0].rows].every(row => row.cells[0].tagName === 'TH'))"
    )
    roles = browser.run("return [...document.querySelectorAll('.plot svg g[role]')].length")
    assert roles > 0


def test_changes_since_an_earlier_document_are_shown(browser: Browser) -> None:
    earlier = document(3, depth="all")
    earlier["madeAt"] = NOW - 86_400_000
    later = copy.deepcopy(earlier) | {"madeAt": NOW}
    later["topics"][0]["bytes"] += 5_000_000
    later["totals"]["bytes"] += 5_000_000
    later["topics"][1]["topic"] = "new"
    later["trouble"].pop(0)
    browser.open(page(later, earlier))
    changes = browser.all("#changes")[0].text
    assert "1 day earlier" in changes
    assert "+ 5 MB" in changes
    assert browser.column("New topics", 0) == ["new"]
    assert browser.column("Topics gone", 0) == [earlier["topics"][1]["topic"]]
    assert browser.column("Topics by change", 0) == [later["topics"][0]["topic"]]
    assert "Trouble gone: 1" in changes


def test_the_page_has_the_licences_of_the_libraries_in_it() -> None:
    html = page(one_topic())
    begin, _, rest = html.partition("<!--\n")
    notices, _, rest = rest.partition("-->\n")
    assert begin == "<!DOCTYPE html>\n"
    assert rest.startswith('<html lang="en">')
    assert "--" not in notices
    library = embedded(html, "vega")
    # Words that the libraries have in them, minified too.
    for name, word in {
        "Vega,": "vega",
        "Vega-Lite": "vega-lite",
        "vega-tooltip": "vg-tooltip",
        "topojson": "topojson",
        "delaunator": "delaun",
        "semver": "SEMVER_SPEC_VERSION",
        "fast-json-patch": "JsonPatchError",
    }.items():
        assert word in library
        assert name in notices
    for licence in ("Redistribution and use", "Permission to use", "Permission is hereby granted"):
        assert licence in notices
