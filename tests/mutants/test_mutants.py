"""The list of mutants fits the product: what each would break is there, once, and so are the tests to see it."""

import pytest
from apply import ROOT, Mutant, read_mutants

MUTANTS = read_mutants()


def test_there_are_enough_of_them():
    assert len(MUTANTS) >= 20


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_breaks_what_is_there(mutant: Mutant):
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.old != mutant.new


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_tests_that_should_notice_exist(mutant: Mutant):
    assert [test for test in mutant.tests if not (ROOT / test.partition("::")[0]).exists()] == []
