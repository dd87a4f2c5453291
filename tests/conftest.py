"""What all tests share: the table of gradient checks at the end (pytest -rA or -v)."""


def pytest_terminal_summary(terminalreporter, config):
    rows = []
    for report in terminalreporter.stats.get("passed", []):
        for key, value in report.user_properties:
            if key == "gradients":
                rows.append((report.nodeid.split("::")[-1], *value))
    if not rows or not (config.option.verbose > 0 or "A" in config.option.reportchars):
        return
    terminalreporter.section("gradient checks")
    line = "{:40} {:>6} {:>6} {:>12} {:>12}".format
    terminalreporter.write_line(line("operation", "cases", "order", "derivatives", "worst error"))
    for name, cases, order, compared, worst in sorted(rows):
        name = name.removeprefix("test_gradient[").removesuffix("]")
        terminalreporter.write_line(line(name, cases, order, compared, f"{worst:.1e}"))
