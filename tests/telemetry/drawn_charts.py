"""The charts on a page, whether they are SVG in it or images."""

import base64
from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
PREFIX = "data:image/svg+xml;base64,"


def charts_in(page):
    """The SVG elements of a page of well-formed HTML."""
    root = ET.fromstring(page)
    sources = [image.get("src") for image in root.iter("img")]
    assert all(source.startswith(PREFIX) for source in sources)
    images = [ET.fromstring(base64.b64decode(source.removeprefix(PREFIX))) for source in sources]
    return [*root.iter(f"{SVG}svg"), *images]


def curves_in(page):
    """The points of each curve, by the name of its chart."""
    return {
        chart.findtext(f"{SVG}text"): [
            [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
            for line in chart.findall(f"{SVG}polyline")
        ]
        for chart in charts_in(page)
    }
