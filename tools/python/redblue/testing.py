"""A pytest plugin that holds kernels on redblue.Machine to the words that they moved before.

In conftest.py: `pytest_plugins = ["redblue.testing"]`. A test then takes the fixture `redblue_baseline`.
"""

import json
import operator
import os
import pathlib
import tempfile

import pytest

import redblue


def pytest_addoption(parser):
    parser.addoption("--redblue-record", action="store_true",
                     help="record the words of tests with redblue_baseline, in place of checking them")


@pytest.fixture
def redblue_baseline(request):
    """A function of a machine, the name of its kernel, and the sizes: redblue_baseline(machine, "mine", n=64).

    It compares words and peak of each phase with redblue_baseline.json, a baseline beside the test, and fails with the
    table of `redblue diff`. `pytest --redblue-record` records them.
    """
    record = request.config.getoption("--redblue-record")
    return Baseline(pathlib.Path(request.path).with_name("redblue_baseline.json"), record)


class Baseline:
    """A recording of machines, as `redblue record` writes it."""

    def __init__(self, file, record=False):
        self._file, self._record = pathlib.Path(file), record

    def __call__(self, machine, kernel, **sizes):
        if not isinstance(machine, redblue.Machine):
            raise redblue.UsageError(f"redblue_baseline takes a redblue.Machine, and not {type(machine).__name__}")
        *phases, total = machine._own.counts()
        now = {"kernel": kernel, "arguments": {**{name: _plain(name, size) for name, size in sizes.items()}, "M": machine.M},
               "total": _numbers(total), "phases": [{"path": phase[0], **_numbers(phase)} for phase in phases]}
        points = json.loads(self._file.read_text())["points"] if self._file.exists() else []
        before = next((point for point in points if _key(point) == _key(now)), None)
        if self._record:
            _write(self._file, sorted([point for point in points if point is not before] + [now], key=_key))
        elif before is None:
            pytest.fail(f"{self._file} has no point {_key(now)}: run pytest --redblue-record, and commit the file", False)
        else:
            self._compare(before, now)

    @staticmethod
    def _compare(before, now):
        with tempfile.TemporaryDirectory() as directory:
            files = [os.path.join(directory, name) for name in ("baseline", "now")]
            for file, point in zip(files, (before, now)):
                _write(pathlib.Path(file), [point])
            # diff ends with a code that a call with format does not return, so ask for the JSON as well.
            if redblue.diff(*files).exit_code:
                table = redblue.diff(*files, format="table")
                pytest.fail(table.replace(directory + os.sep, "").rstrip()
                            + "\n\nto accept: pytest --redblue-record, and commit redblue_baseline.json", False)


def _plain(name, size):
    if isinstance(size, str):
        return size
    try:
        return int(operator.index(size))  # of True: 1
    except TypeError:
        raise redblue.UsageError(f"redblue_baseline: {name} is {redblue._kind(size)}; expected a whole number or a "
                                 "text") from None


def _numbers(counts):
    _, reads, writes, peak, index_reads, index_writes = counts
    indices = {"index_reads": index_reads, "index_writes": index_writes} if index_reads or index_writes else {}
    return {"reads": reads, "writes": writes, **indices, "peak": peak}


def _key(point):
    arguments = sorted(point["arguments"].items(), key=lambda item: (item[0] == "M", item[0]))
    return " ".join([point["kernel"], *(f"{name}={value}" for name, value in arguments)])


def _write(file, points):
    """One line for each phase, so that a diff of the file shows the phase that changed."""
    def text(value):
        return json.dumps(value, separators=(",", ":"))

    lines = []
    for point in points:
        head = text({name: value for name, value in point.items() if name != "phases"})[:-1]
        lines.append(head + ',"phases":[\n  ' + ",\n  ".join(map(text, point["phases"])) + "]}")
    file.write_text('{\n"schema": 1,\n"redblue": "recording",\n"how": "run",\n"points": [\n' + ",\n".join(lines) + "\n]}\n")
