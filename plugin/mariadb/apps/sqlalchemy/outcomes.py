"""A plugin for pytest: each test's outcome goes to the file RESULTS, a line each: outcome, tab, test.

A class that the suite makes for one server has that server's version in its name; here, it is the one it is made of, by
which pytest finds it again."""

import os
import re

results = open(os.environ["RESULTS"], "a", buffering=1)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        outcome = report.outcome if report.when == "call" or report.skipped else "error"
        if hasattr(report, "wasxfail"):
            outcome = f"expected failure, {outcome}"
        test = re.sub(r"_mariadb\+mysqldb_[0-9_]+(?=::)", "", report.nodeid)
        results.write(f"{outcome}\t{test}\n")
