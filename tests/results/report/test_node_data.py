"""Model Explorer gets a figure for each node, by the name of what it gives."""

from __future__ import annotations

import pytest

from anyshape.errors import DeclarationError
from anyshape.results.report.document import ReportDocument
from anyshape.results.report.node_data import node_data
from tests.results.report.samples import REFUSED, document_of_file


def test_figures_are_those_at_the_sizes_where_the_sliders_start(tmp_path):
    document = document_of_file(tmp_path)
    sizes = {dim["name"]: dim["start"] for dim in document.costs["dims"]}
    given = sizes["batch"] * (sizes["height"] - 2) * (sizes["width"] - 2)
    assert node_data(document, "memory")["results"] == {"y": {"value": 4 * given}}
    assert node_data(document, "flops")["results"] == {"y": {"value": 18 * given}}
    assert [one["stop"] for one in node_data(document, "moved")["gradient"]] == [0, 1]


def test_a_refusal_has_no_nodes():
    told = "there is no file whose nodes could have figures: name a report in .html or in .json"
    with pytest.raises(DeclarationError, match=told):
        node_data(ReportDocument(REFUSED), "memory")
