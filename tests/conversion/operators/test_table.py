"""One table of all families: nothing stands in it twice, and the order of repairs is kept."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter

from anyshape.conversion import operators
from anyshape.conversion.operators.repair import Repair
from anyshape.conversion.operators.table import REPAIRS, TRANSLATIONS

FAMILIES = [
    importlib.import_module(f"{operators.__name__}.{found.name}")
    for found in pkgutil.iter_modules(operators.__path__)
    if found.name not in ("table", "repair")
]


def test_every_translation_of_a_family_is_in_the_table_and_in_no_other_family() -> None:
    entries = Counter(name for family in FAMILIES for name in getattr(family, "TRANSLATIONS", {}))
    assert [name for name, count in entries.items() if count > 1] == []
    assert entries.keys() <= TRANSLATIONS.keys()


def test_every_repair_of_a_family_is_in_the_table_once() -> None:
    repairs = [value for family in FAMILIES for value in vars(family).values() if isinstance(value, Repair)]
    assert {id(repair) for repair in repairs} <= {id(repair) for repair in REPAIRS}
    assert len({repair.name for repair in REPAIRS}) == len(REPAIRS)


def test_who_answers_one_call_stands_in_this_order() -> None:
    """Both write to places; both slice, and one of them follows numbers through every call, so it sees them first."""
    names = [repair.name for repair in REPAIRS]
    assert names.index("written places") < names.index("indexing by sizes")
    assert names.index("maxima along one axis") < names.index("pooling")
    assert names[-1] == "whole numbers in tensors"
