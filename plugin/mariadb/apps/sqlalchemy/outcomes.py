"""A plugin for pytest: each test's outcome goes to the file RESULTS, a line each: outcome, tab, test."""

import os

results = open(os.environ["RESULTS"], "a", buffering=1)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        outcome = report.outcome if report.when == "call" or report.skipped else "error"
        if hasattr(report, "wasxfail"):
            outcome = f"expected failure, {outcome}"
        results.write(f"{outcome}\t{report.nodeid}\n")
