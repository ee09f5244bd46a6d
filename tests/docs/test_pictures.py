"""The picture of the README has the lines that a terminal shows today, but for ids and layout."""

import html
import re

import pytest

from docgen.pictures import PICTURE, apply_at_a_terminal, picture


def drawn(svg: str) -> list[str]:
    """The lines of text of a picture, without leading and trailing spaces."""
    lines: dict[float, str] = {}
    for height, text in re.findall(r'<text class="apply-r\d+" x="[\d.]+" y="([\d.]+)"[^>]*>(.*?)</text>', svg):
        lines[float(height)] = lines.get(float(height), "") + html.unescape(text).replace("\xa0", " ")
    return [re.sub(r"\b[0-9a-f]{16}\b", "ID", lines[height]).strip() for height in sorted(lines)]


@pytest.mark.slow
def test_the_picture_is_of_an_apply_as_it_is_today() -> None:
    """Run `make pictures` when the output of an apply changes."""
    shown = drawn(picture(apply_at_a_terminal()))
    assert shown[0] == "$ pkger apply -f labels.json -f fleet.yml --stack fleet"
    assert any(line.startswith("Done: ") for line in shown)
    assert drawn(PICTURE.read_text()) == shown
