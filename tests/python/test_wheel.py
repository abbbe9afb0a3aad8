"""Tests the wheels: pip makes them in a virtual environment, their metadata is right, and they work once installed. A
portable one needs no library that not every Linux has.

The package is the one that CMake built, because a build takes minutes. tools/nightly builds wheels from the sources, and
names their folder in REDBLUE_WHEELS: these are tested then.
"""

import email
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest

import redblue
from conftest import copy_of_sources

ROOT = pathlib.Path(__file__).resolve().parents[2]
FROM_SOURCES = os.environ.get("REDBLUE_WHEELS")
# By PEP 600, each Linux of a tag has these, with the symbols of the compiler of its time: g++ 12 for glibc 2.36.
ON_EVERY_LINUX = {"ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6"}
NEWEST = {"GLIBC": (2, 36, 0), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}


def environment(folder):
    """A virtual environment that sees the NumPy, the pip and the setuptools of the system."""
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def output_of(*command, **options):
    ended = subprocess.run(command, capture_output=True, text=True, **options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def wheel(folder, portable):
    if FROM_SOURCES:
        return next(each for each in pathlib.Path(FROM_SOURCES).glob("*.whl") if ("manylinux" in each.name) == portable)
    tree = copy_of_sources(folder / "tree")
    package = shutil.copytree(pathlib.Path(redblue.__file__).parent, folder / "package")
    output_of("strip", *package.glob("*.so"))  # to pack symbols takes long
    output_of(environment(folder / "maker"), "-m", "pip", "wheel", "--no-build-isolation", "--no-index", "--no-deps", "-w", folder,
              tree / "tools" / "python",
              env={**os.environ, "REDBLUE_PACKAGE": str(package), "PYTHONPATH": "",
                   "CMAKE_ARGS": "-DREDBLUE_PORTABLE=ON" if portable else ""})
    return next(folder.glob("*.whl"))


def installed(made, folder):
    python = environment(folder / "user")
    output_of(python, "-m", "pip", "install", "--no-index", "--no-deps", made)
    return python


def in_it(python, code, folder):
    """What the code prints, without the tree of the tests."""
    return output_of(python, "-c", code, cwd=folder, env={**os.environ, "PYTHONPATH": ""}).strip()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return wheel(tmp_path_factory.mktemp("plain"), portable=False)


@pytest.fixture(scope="module")
def portable(tmp_path_factory):
    return wheel(tmp_path_factory.mktemp("portable"), portable=True)


def test_metadata(plain):
    version, tag = redblue.__version__, sys.implementation.cache_tag.replace("cpython-", "cp")
    assert plain.name == f"redblue-{version}-{tag}-{tag}-{sysconfig.get_platform().replace('-', '_')}.whl"
    with zipfile.ZipFile(plain) as archive:
        names = set(archive.namelist())
        metadata = email.message_from_bytes(archive.read(f"redblue-{version}.dist-info/METADATA"))
    package = {path.name for path in (ROOT / "tools" / "python" / "redblue").iterdir() if path.suffix in (".py", ".typed")}
    own = {name for name in names if name.startswith("redblue/")}
    assert own == {f"redblue/{name}" for name in package | {"__init__.pyi", f"_redblue{sysconfig.get_config_var('EXT_SUFFIX')}"}}
    assert f"redblue-{version}.dist-info/LICENSE" in names and all(name.startswith("redblue") for name in names)
    assert (metadata["Name"], metadata["Version"], metadata["License"]) == ("redblue", version, "MIT")
    assert {"numpy (<2)", "numpy<2"} & set(metadata.get_all("Requires-Dist")) and metadata["Requires-Python"] == ">=3.9"
    assert metadata["Description-Content-Type"] == "text/markdown" and "arxiv.org" in metadata["Project-URL"]
    assert metadata.get_payload(decode=True).decode().strip() == (ROOT / "README.md").read_text().strip()


def test_installed(plain, tmp_path):
    """The package and its command work in another virtual environment."""
    python = installed(plain, tmp_path)
    where, words = in_it(python, "import redblue; print(redblue.__file__, redblue.count('backward/small', n=1000, d=48, M=1024).total.io)",
                         tmp_path).rsplit(" ", 1)
    assert pathlib.Path(where).is_relative_to(tmp_path) and words == "28132608"
    assert redblue.__version__ in output_of(python, "-m", "redblue", "--version", cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})


def needs(file):
    """The libraries that a file names, and the versions of symbols that it needs, such as ("GLIBC", (2, 34, 0))."""
    libraries = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", file)))
    symbols = re.findall(r"\*UND\*.*\((GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)\)", output_of("objdump", "-T", file))
    return libraries, {(name, tuple(map(int, (version + ".0.0").split(".")[:3]))) for name, version in symbols}


def test_libraries_of_a_portable_wheel(portable, tmp_path):
    """Each library that a file of the wheel needs is in the wheel, or on every Linux by the manylinux policy. The tag names
    the glibc that the newest symbol needs."""
    with zipfile.ZipFile(portable) as archive:
        archive.extractall(tmp_path)
    files = list((tmp_path / "redblue").glob("*.so*"))
    libraries, versions = map(set().union, *map(needs, files))
    assert libraries <= ON_EVERY_LINUX | {file.name for file in files}
    glibc = max(version for name, version in versions if name == "GLIBC")
    assert portable.name.endswith(f"-manylinux_{glibc[0]}_{glibc[1]}_x86_64.whl")
    assert all(version <= NEWEST[name] for name, version in versions)
    if FROM_SOURCES:  # the loader takes those of the wheel
        module = next(file for file in files if file.name.startswith("_redblue"))
        found = dict(re.findall(r"(\S+) => (\S+)", output_of("ldd", module)))
        assert all(pathlib.Path(found[file.name]).parent == module.parent for file in files if file != module)


def test_a_portable_wheel_works(portable, tmp_path):
    """It counts, has formulas, computes on arrays, and has machines."""
    code = """
import numpy, redblue
assert redblue.count("backward/small", n=1000, d=48, M=1024).total.io == 28132608
assert redblue.cost("attention", n=1, m=4096, d=128, heads=32, kv_heads=8, word=2).operand_bytes == 16793664
Q, K, V = numpy.random.default_rng(1).standard_normal((3, 2, 50, 8), numpy.float32)
ran = redblue.run("attention/auto", Q=Q, K=K, V=V, M="2K", mask="causal", verify=True)
O, L = redblue.attention(Q, K, V, mask="causal", threads=2)
assert ran.error.ok and abs(ran.O - O).max() < 1e-5
machine = redblue.Machine(64)
tile = machine.read(machine.matrix("Q", Q[0])[0:4])
print(machine.report().total.reads)
"""
    assert in_it(installed(portable, tmp_path), code, tmp_path) == "32"
