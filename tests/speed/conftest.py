"""The rates of the benchmarks, which pytest-benchmark's table has no column for."""


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    for each in getattr(session, "benchmarks", ()):
        told = ", ".join(f"{key} {value}" for key, value in each.extra_info.items())
        if told:
            terminalreporter.write_line(f"{each.name}: {told}")
