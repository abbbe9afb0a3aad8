"""Fixtures of the Python tests: the built command, and a separate directory for each test."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

COMMAND = os.environ["REDBLUE_COMMAND"]
for name in {name for name in os.environ if name.startswith("REDBLUE_")} - {"REDBLUE_COMMAND", "REDBLUE_WHEELS"}:
    del os.environ[name]  # set by the user


def copy_of_sources(target):
    """Copies the repository for setup.py, which writes beside itself while other tests read the sources. Left out is the
    corpus of fuzzing, which is most of the files."""
    return shutil.copytree(pathlib.Path(__file__).resolve().parents[2], target, symlinks=True,
                           ignore=shutil.ignore_patterns("build", ".git", "__pycache__", "corpus"))


class Command:
    """Runs the built command in a directory."""

    def __init__(self, directory):
        self.directory = directory

    def run(self, line):
        return subprocess.run([COMMAND, *line.split()], cwd=self.directory, capture_output=True, text=True)

    def json(self, line):
        ended = self.run(line + " --format json")
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path)
