"""Runs the tests of Django's suite that use a database, and writes each one's outcome to the file RESULTS: outcome, tab, test."""

import os
import unittest

from django.db import connection
from django.test import TransactionTestCase
from django.test.runner import DiscoverRunner
from django.test.utils import iter_test_cases


class Result(unittest.TextTestResult):
    """Also writes outcomes to a file, each line at once: a run that is stopped keeps what it saw."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.results = open(os.environ["RESULTS"], "a", buffering=1)
        self.bad_subtests = set()

    def write(self, outcome, test):
        self.results.write(f"{outcome}\t{test.id()}\n")

    def addSuccess(self, test):
        super().addSuccess(test)
        if test.id() not in self.bad_subtests:
            self.write("passed", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write("failed", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.write("error", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write("skipped", test)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.write("expected failure", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.write("unexpected success", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.bad_subtests.add(test.id())
            self.write("failed", subtest)


class Runner(DiscoverRunner):
    def load_tests_for_label(self, label, discover_kwargs):
        """Those whose class may use a database (what others say does not depend on the engine), and what could not be loaded."""
        tests = iter_test_cases(super().load_tests_for_label(label, discover_kwargs))
        kinds = (TransactionTestCase, unittest.loader._FailedTest)
        return self.test_suite(test for test in tests if isinstance(test, kinds))

    def get_resultclass(self):
        return Result

    def run_suite(self, suite, **kwargs):
        wanted = os.environ["ENGINE"]
        found = connection.features._mysql_storage_engine
        if found != wanted:
            raise SystemExit(f"django: the server's default engine is {found}, not {wanted}")
        return super().run_suite(suite, **kwargs)
