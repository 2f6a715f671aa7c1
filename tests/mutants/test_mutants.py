"""The list of mutants fits the code: the text of each occurs once, and the tests that must find it exist."""

import pytest
from apply import ROOT, Mutant, read_mutants

MUTANTS = read_mutants()


def test_the_list_has_enough_mutants():
    assert len(MUTANTS) >= 20


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_of_a_mutant_occurs_once(mutant: Mutant):
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.old != mutant.new


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_python_can_be_compiled(mutant: Mutant):
    """Otherwise any test would find it: the package could not be imported."""
    if mutant.file.endswith(".py"):
        compile((ROOT / mutant.file).read_text().replace(mutant.old, mutant.new), mutant.file, "exec")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_tests_that_must_find_a_mutant_exist(mutant: Mutant):
    assert [test for test in mutant.tests if not (ROOT / test.partition("::")[0]).exists()] == []
