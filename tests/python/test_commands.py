"""Tests each subcommand as a function: the JSON of the command, and its message for a fault."""

import copy
import json
import logging
import os
import pathlib
import pickle
import subprocess

import numpy
import pytest

import redblue

SUITE = {"points": [{"kernel": "backward/small", "n": 64, "d": 8, "M": [64, 128]}]}


def counted(document):
    """Returns the document without facts that differ between runs: times, and numbers that depend on them."""
    if isinstance(document, dict):
        return {name: counted(value) for name, value in document.items()
                if not any(part in name for part in ("seconds", "gflops", "percent", "memory_available", "program",
                                                     "date", "resident"))}
    return [counted(item) for item in document] if isinstance(document, list) else document


CALLS = {
    "count backward/small --n 1000 --d 48 --M 1024":
        lambda: redblue.count("backward/small", n=1000, d=48, M=1024),
    "count gradients/auto --n 4K --d 64 --M 64K --mask causal&window:128,0 --heads 8 --kv-heads 2":
        lambda: redblue.count("gradients/auto", n="4K", d=64, M="64K", mask="causal&window:128,0", heads=8,
                              kv_heads=2),
    "count gradients/flash --n 256 --d 16 --M 2K --wanted dQ,dK --blocks core.Br=2,core.Bc=16":
        lambda: redblue.count("gradients/flash", n=256, d=16, M="2K", wanted=["dQ", "dK"],
                              blocks={"core.Br": 2, "core.Bc": 16}),
    "count forward/sparse-rows --n 64 --d 32 --M 4K --make A1=random:4 --make A2=random:4 --seed 3":
        lambda: redblue.count("forward/sparse-rows", n=64, d=32, M="4K",
                              make={"A1": "random:4", "A2": "random:4"}, seed=3),
    "count backward/flash --symbolic --regime large":
        lambda: redblue.count("backward/flash", symbolic=True, regime="large"),
    "count --as flash-attention-2 --n 4096 --d 64 --M 64K":
        lambda: redblue.count(as_="flash-attention-2", n=4096, d=64, M="64K"),
    "count backward/rows --n 512 --d 32 --M 8K --grid 2x2":
        lambda: redblue.count("backward/rows", n=512, d=32, M="8K", grid="2x2"),
    "count forward/rows --n 512 --d 32 --M 1K,8K":
        lambda: redblue.count("forward/rows", n=512, d=32, M=["1K", 8192]),
    "count forward/flash --n 512 --d 32 --M 8K --word 2":
        lambda: redblue.count("forward/flash", n=512, d=32, M="8K", word=2),
    "plan --problem backward --n 4096 --d 64 --M 64K":
        lambda: redblue.plan(problem="backward", n=4096, d=64, M="64K"),
    "plan backward/rows --n 512 --d 32 --M 8K --ranks 4":
        lambda: redblue.plan("backward/rows", n=512, d=32, M="8K", ranks=4),
    "plan --loops backward/flash --n 512 --d 32 --M 8K":
        lambda: redblue.plan(loops="backward/flash", n=512, d=32, M="8K"),
    "plan --cache 192KiB,a100 --d 64,128": lambda: redblue.plan(cache=["192KiB", "a100"], d=[64, 128]),
    "bounds --problem backward --n 4096 --d 64 --M 64K":
        lambda: redblue.bounds(problem="backward", n=4096, d=64, M="64K"),
    "bounds --problem product --n 64 --d 64 --M 300 --partition":
        lambda: redblue.bounds(problem="product", n=64, d=64, M=300, partition=True),
    "curve --problem backward --n 512 --d 64": lambda: redblue.curve(problem="backward", n=512, d=64),
    "curve --problem attention --n 512 --M 16K --over d --from 16 --to 64":
        lambda: redblue.curve(problem="attention", n=512, M="16K", over="d", from_=16, to=64),
    "run backward/small --n 100 --d 8 --M 256 --verify --seed 5":
        lambda: redblue.run("backward/small", n=100, d=8, M=256, verify=True, seed=5),
    "run gradients/auto --n 100 --d 8 --M 2K --mask causal --heads 2 --threads 2":
        lambda: redblue.run("gradients/auto", n=100, d=8, M="2K", mask=redblue.Mask("causal"), heads=2, threads=2),
    "run backward/rows --n 64 --d 8 --M 2K --grid 2x1":
        lambda: redblue.run("backward/rows", n=64, d=8, M="2K", grid="2x1"),
    "table1": lambda: redblue.table1(),
    "info": lambda: redblue.info(),
    "info --simd SSE4": lambda: redblue.info(simd="SSE4"),
    "list": lambda: redblue.list_(),
    "list --n 100 --d 8": lambda: redblue.list_(n=100, d=8),
    "list --devices": lambda: redblue.list_(devices=True),
    "replay forward/flash --n 64 --d 8 --M 256 --per-phase":
        lambda: redblue.replay("forward/flash", n=64, d=8, M=256, per_phase=True),
    "pebble solve product --n 2 --m 2 --d 2 --M 4..6":
        lambda: redblue.pebble.solve("product", n=2, m=2, d=2, M="4..6"),
    "pebble run forward/small --n 4 --d 2 --M 24":
        lambda: redblue.pebble.run("forward/small", n=4, d=2, M=24),
}


@pytest.mark.parametrize("line", CALLS)
def test_json_is_that_of_the_command(command, line):
    """to_dict() equals the output of --format json, except for times. The representation is the table."""
    result = CALLS[line]()
    assert counted(result.to_dict()) == counted(command.json(line))
    assert result.exit_code == 0
    assert repr(result)


def test_representation_is_the_table(command):
    """repr() equals the output of the command, letter for letter."""
    line = "count backward/small --n 1000 --d 48 --M 1024"
    assert repr(CALLS[line]()) + "\n" == command.run(line).stdout


def test_other_formats_are_text(command):
    """With another format than JSON, the call returns the text that the command prints."""
    line = "count backward/small --n 100 --d 8 --M 256 --format csv"
    assert redblue.count("backward/small", n=100, d=8, M=256, format="csv") == command.run(line).stdout
    assert redblue.count("backward/flash", symbolic=True, regime="large", format="latex") == command.run(
        "count backward/flash --symbolic --regime large --format latex").stdout


def test_text_of_json(command):
    """format="json" returns text, and the default a Result. A gate that finds a difference also returns its text."""
    line = "count backward/small --n 100 --d 8 --M 256 --format json"
    assert redblue.count("backward/small", n=100, d=8, M=256, format="json") == command.run(line).stdout
    assert redblue.count("backward/small", n=100, d=8, M=256, format=None).total.io > 0
    pathlib.Path("suite.json").write_text(json.dumps(SUITE))
    baseline = redblue.record("suite.json").to_dict()
    pathlib.Path("a.json").write_text(json.dumps(baseline))
    baseline["points"][0]["total"]["reads"] += 1
    pathlib.Path("b.json").write_text(json.dumps(baseline))
    assert redblue.diff("a.json", "b.json", format="markdown") == command.run(
        "diff a.json b.json --format markdown").stdout


def test_graphs_come_back(command, capfd):
    """The text of a graph or of moves is returned, and standard output stays empty."""
    assert redblue.pebble.dag("product", n=2, m=2, d=2) == command.run("pebble dag product --n 2 --m 2 --d 2").stdout
    assert redblue.pebble.solve("product", n=2, m=2, d=2, M=6, moves="-") == command.run(
        "pebble solve product --n 2 --m 2 --d 2 --M 6 --moves -").stdout
    assert "2 inputs" not in redblue.pebble.dag("product", n=2, m=2, d=2, out="graph.dot")
    assert pathlib.Path("graph.dot").read_text().startswith("digraph")
    assert redblue.replay("forward/flash", n=8, d=4, M=64, cachesim="-") == command.run(
        "replay forward/flash --n 8 --d 4 --M 64 --cachesim -").stdout
    assert capfd.readouterr().out == ""


STANDARD_OUTPUT = {
    "a graph": lambda: redblue.pebble.dag("product", n=2, m=2, d=2, out="-"),
    "a recording": lambda: redblue.record("suite.json", out="-"),
    "a comparison": lambda: redblue.diff("a.json", "b.json", also={"junit": "-"}),
    "a picture": lambda: redblue.plot.figure1("swept", out="-"),
    "a trace": lambda: redblue.trace("forward/flash", n=8, d=4, M=64, din="-"),
    "a matrix": lambda: redblue.store.export("on_disk", "A1=-"),
}


@pytest.mark.parametrize("what", STANDARD_OUTPUT)
def test_no_standard_output(what, capfd):
    """Output to the standard output of the process is refused."""
    with pytest.raises(redblue.UsageError, match="^[a-z]+ '-': a call has no standard output; expected the name"):
        STANDARD_OUTPUT[what]()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))])
def test_copies(again):
    """Results, records, lists of kernels and errors can be copied and pickled with all their content."""
    result = redblue.run("matmul/blocked", n=32, m=32, d=32, M=300)
    copied = again(result)
    assert (repr(copied), copied.to_dict(), copied.exit_code) == (repr(result), result.to_dict(), 0)
    numpy.testing.assert_array_equal(copied.C, result.C)
    assert again(result.total) == result.total
    assert repr(again(redblue.kernels())) == repr(redblue.kernels())
    with pytest.raises(redblue.FastMemoryTooSmall) as raised:
        redblue.count("backward/small", n=8, d=8, M=2)
    assert again(raised.value).least_M == raised.value.least_M > 2


# Keywords and values that no option takes, and their messages.
MISTAKEN = {
    "mmask='causal'": "no option and no operand is called 'mmask': did you mean mask?",
    "dd=48": "no option and no operand is called 'dd': did you mean d?",
    "mmask=None": "no option and no operand is called 'mmask': did you mean mask?",
    "zebra='x'": "no option and no operand is called 'zebra': help(redblue.count) lists the options",
    "N=8": "no option and no operand is called 'N': did you mean n?",
    "n=''": "n takes a value, not ''",
    "M=[]": "M takes a value, not []",
    "M={4, None}": "M takes a value, not None",
    "n=True": "n takes a value, not True",
    "n=False": "n takes a value, not False",
    "n=numpy.True_": "n takes a value, not True",
    "M=[True, 4]": "M takes a value, not True",
    "n=print": "n takes a value, not an object of type builtin_function_or_method",
    "blocks={'core.Br': [1]}": "blocks core.Br takes a value, not an object of type list",
    "symbolic='yes'": "symbolic is True or False, not 'yes'",
    "symbolic=2": "symbolic is True or False, not 2",
}


@pytest.mark.parametrize("given", MISTAKEN)
def test_mistaken_keywords(given):
    """They are refused by name, with the nearest known name."""
    with pytest.raises(redblue.UsageError) as raised:
        eval(f"redblue.count('backward/small', {given})")
    assert str(raised.value) == MISTAKEN[given]


def test_values_of_other_types():
    """Switches, lists and arguments have the same effect in all their forms."""
    for true in (True, 1, numpy.True_):
        assert redblue.count("backward/flash", symbolic=true, regime="large").to_dict() == redblue.count(
            "backward/flash", symbolic=True, regime="large").to_dict()
    for false in (False, 0, numpy.False_, None):
        assert redblue.count("backward/small", n=8, d=8, M=64, symbolic=false).M == 64
    plain = counted(redblue.plan(cache=["192KiB"], d=[64, 128]).to_dict())
    for widths in ({128, 64}, {64: 0, 128: 0}.keys(), numpy.array([64, 128]), range(64, 129, 64)):
        assert counted(redblue.plan(cache="192KiB", d=widths).to_dict()) == plain
    assert redblue.count(kernel="backward/small", n=numpy.int64(8), d=numpy.array(8), M=64).to_dict() == redblue.count(
        "backward/small", n=8, d=8, M=64).to_dict()
    with pytest.raises(redblue.UsageError, match="^graph is missing$"):
        redblue.pebble.check(moves="moves.txt", M=4)
    with pytest.raises(redblue.UsageError, match="called 'kernel'"):
        redblue.count("backward/small", kernel="backward/flash")


def test_least_M_of_a_level():
    """least_M is the number in the message, and it is enough, also with several levels."""
    with pytest.raises(redblue.FastMemoryTooSmall, match=" of level 1: .* at least (\\d+)$") as raised:
        redblue.count("forward/rows", n=64, d=8, M=[2, 4096])
    assert str(raised.value).endswith(f" {raised.value.least_M}")
    assert redblue.count("forward/rows", n=64, d=8, M=[raised.value.least_M, 4096]).total.io > 0


def test_subcommands_of_files(command):
    """record, check, diff, sweep, merge, history (refused), store and trace write and return the command's output."""
    pathlib.Path("suite.json").write_text(json.dumps(SUITE))
    recorded = redblue.record("suite.json")
    assert counted(recorded.to_dict()) == counted(json.loads(command.run("record suite.json").stdout))
    assert redblue.record("suite.json", out="baseline.json") is None
    checked = redblue.check("baseline.json")
    assert (checked.exit_code, checked.to_dict()) == (0, command.json("check baseline.json"))

    changed = json.loads(pathlib.Path("baseline.json").read_text())
    changed["points"][0]["total"]["reads"] += 1
    pathlib.Path("changed.json").write_text(json.dumps(changed))
    differs = redblue.diff("changed.json", "baseline.json")
    assert (differs.exit_code, differs.to_dict()) == (3, command.json("diff changed.json baseline.json"))

    redblue.sweep("suite.json", out="swept")
    assert command.run("sweep suite.json -o typed").returncode == 0
    swept, typed = (json.loads(next(pathlib.Path(name).glob("*.json")).read_text()) for name in ("swept", "typed"))
    assert counted(swept) == counted(typed)

    assert "8 x 4" in redblue.store.generate("on_disk", "A1", n=8, d=4)
    assert redblue.store.info("on_disk").to_dict() == command.json("store info on_disk")
    redblue.trace("forward/flash", n=8, d=4, M=64, din="python.din")
    command.run("trace forward/flash --n 8 --d 4 --M 64 --din typed.din")
    assert pathlib.Path("python.din").read_text() == pathlib.Path("typed.din").read_text()


def test_parts_of_a_sweep(command):
    """merge of two parts has the points of the whole."""
    pathlib.Path("suite.json").write_text(json.dumps(SUITE))
    redblue.sweep("suite.json", out="whole")
    for part in ("1/2", "2/2"):
        redblue.sweep("suite.json", part=part, out=f"part{part[0]}")
    redblue.merge("part1", "part2", out="merged")
    whole, merged = (json.loads(next(pathlib.Path(name).glob("*.json")).read_text()) for name in ("whole", "merged"))
    assert counted(merged["points"]) == counted(whole["points"])


def test_history(command):
    """Reads the history of a baseline in git."""
    pathlib.Path("suite.json").write_text(json.dumps(SUITE))
    redblue.record("suite.json", out="baseline.json")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "baseline.json"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    result = redblue.history("baseline.json")
    assert result.to_dict() == command.json("history baseline.json")
    assert result.commits[0].subject == "first"


def test_measure(command, monkeypatch):
    """callgrind simulates the command that PATH finds. The words equal the command's, for the kernel and its phases."""
    line = "measure forward/flash --n 32 --d 8 --M 256 --via callgrind"
    monkeypatch.setenv("HWLOC_SYNTHETIC", "core:2 l2:1(size=262144) l1:1(size=32768) pu:1")
    ended = command.run(line + " --format json")
    call = lambda: redblue.measure("forward/flash", n=32, d=8, M=256, via="callgrind")  # noqa: E731
    monkeypatch.setenv("PATH", os.path.dirname(os.environ["REDBLUE_COMMAND"]) + os.pathsep + os.environ["PATH"])
    if ended.returncode != 0:  # built without a required part
        with pytest.raises(redblue.Error) as raised:
            call()
        assert ended.stderr == f"redblue: {raised.value}\n"
        return
    typed, called = json.loads(ended.stdout), call().to_dict()
    assert typed.keys() == called.keys()
    assert [phase["reads"] for phase in called["phases"]] == [phase["reads"] for phase in typed["phases"]]


# Lines that the command refuses, and the same calls.
REFUSED = {
    "count": lambda: redblue.count(),
    "count backward/smal --n 8 --d 8 --M 64": lambda: redblue.count("backward/smal", n=8, d=8, M=64),
    "count backward/small --n 0 --d 8 --M 64": lambda: redblue.count("backward/small", n=0, d=8, M=64),
    "count backward/small --n=-4 --d 8 --M 64": lambda: redblue.count("backward/small", n=-4, d=8, M=64),
    "count backward/small --n 1.5K --d 8 --M 64": lambda: redblue.count("backward/small", n="1.5K", d=8, M=64),
    "count backward/small --n 8 --d 8": lambda: redblue.count("backward/small", n=8, d=8),
    "count backward/small --n 8 --M 64": lambda: redblue.count("backward/small", n=8, M=64),
    "count backward/small --n 8 --d 8 --M 64KB": lambda: redblue.count("backward/small", n=8, d=8, M="64KB"),
    "count backward/small --n 8 --d 8 --M 3": lambda: redblue.count("backward/small", n=8, d=8, M=3),
    "count backward/auto --n 8 --d 8 --M 3": lambda: redblue.count("backward/auto", n=8, d=8, M=3),
    "count backward/rows --n 64 --d 8 --M 8 --grid 2x2":
        lambda: redblue.count("backward/rows", n=64, d=8, M=8, grid="2x2"),
    "count backward/small --n 8 --d 8 --M 64 --mask caus":
        lambda: redblue.count("backward/small", n=8, d=8, M=64, mask="caus"),
    "count backward/small --n 8 --d 8 --M 64 --mask blocks:none.npy":
        lambda: redblue.count("backward/small", n=8, d=8, M=64, mask="blocks:none.npy"),
    "count backward/small --n 8 --d 8 --M 64 --dv 4":
        lambda: redblue.count("backward/small", n=8, d=8, M=64, dv=4),
    "count backward/small --n 9223372036854775807 --d 8 --M 64":
        lambda: redblue.count("backward/small", n=2**63 - 1, d=8, M=64),
    "count gradients/auto --n 8 --d 8 --M 640 --heads 3 --kv-heads 2":
        lambda: redblue.count("gradients/auto", n=8, d=8, M=640, heads=3, kv_heads=2),
    "plan --problem back --n 8 --d 8 --M 640": lambda: redblue.plan(problem="back", n=8, d=8, M=640),
    "plan --problem backward --n 64 --d 8 --M 2": lambda: redblue.plan(problem="backward", n=64, d=8, M=2),
    "bounds --n 8": lambda: redblue.bounds(n=8),
    "curve --problem backward --n 8 --d 8 --words 1": lambda: redblue.curve(problem="backward", n=8, d=8, words=1),
    "run backward/small --n 8 --d 8 --M 64 --threads 2":
        lambda: redblue.run("backward/small", n=8, d=8, M=64, threads=2),
    "run backward/small --n 4M --d 64 --M 4K": lambda: redblue.run("backward/small", n="4M", d=64, M="4K"),
    "run backward/small --n 8 --d 8 --M 64 --simd AVX9":
        lambda: redblue.run("backward/small", n=8, d=8, M=64, simd="AVX9"),
    "run backward/small --M 64 --in A1=none.npy": lambda: redblue.run("backward/small", M=64, A1="none.npy"),
    "run backward/small --M 64 --in Q=none.npy": lambda: redblue.run("backward/small", M=64, Q="none.npy"),
    "run backward/small --n 8 --d 8 --M 64 --out O=o.npy":
        lambda: redblue.run("backward/small", n=8, d=8, M=64, out={"O": "o.npy"}),
    "run backward/small --n 8 --d 8 --M 64 --out g=no/g.npy":
        lambda: redblue.run("backward/small", n=8, d=8, M=64, out={"g": "no/g.npy"}),
    "run forward/small --n 8 --d 8 --M 64 --scale 1e39":
        lambda: redblue.run("forward/small", n=8, d=8, M=64, scale=1e39),
    "calibrate --n 0": lambda: redblue.calibrate(n=0),
    "calibrate --out no/c.json": lambda: redblue.calibrate(out="no/c.json"),
    "check none.json": lambda: redblue.check("none.json"),
    "check broken.json": lambda: redblue.check("broken.json"),
    "sweep broken.json": lambda: redblue.sweep("broken.json"),
    "sweep broken.json -o swept": lambda: redblue.sweep("broken.json", out="swept"),
    "history broken.json": lambda: redblue.history("broken.json"),
    "replay forward/flash --n 8 --d 4 --M 64 --at 0":
        lambda: redblue.replay("forward/flash", n=8, d=4, M=64, at=0),
    "pebble solve product --n 2 --d 2 --M 2": lambda: redblue.pebble.solve("product", n=2, d=2, M=2),
    "pebble solve nothing --M 2": lambda: redblue.pebble.solve("nothing", M=2),
    "store info none": lambda: redblue.store.info("none"),
    "store generate s A9 --n 8 --d 8": lambda: redblue.store.generate("s", "A9", n=8, d=8),
}


@pytest.mark.parametrize("line", REFUSED)
def test_refusals_have_the_words_of_the_command(command, line):
    """The exception has the command's message after "redblue: " as its text, with options as keywords. The exit code
    decides its class."""
    pathlib.Path("broken.json").write_text("{")
    ended = command.run(line)
    with pytest.raises(redblue.Error) as raised:
        REFUSED[line]()
    assert redblue._in_python(ended.stderr) == f"redblue: {raised.value}\n"
    assert "--" not in str(raised.value)
    assert isinstance(raised.value, redblue.UsageError) == (ended.returncode == 2)
    assert isinstance(raised.value, redblue.FastMemoryTooSmall) == (" fit" in ended.stderr and "M =" in ended.stderr
                                                                    or "no M is enough" in ended.stderr)
    if type(raised.value) is redblue.FastMemoryTooSmall and "at least " in ended.stderr:
        assert ended.stderr.endswith(f"at least {raised.value.least_M}\n")


def test_least_M_is_enough(command):
    """With least_M the call works, and with one word less it does not."""
    for kernel in ("backward/small", "backward/flash", "gradients/auto", "attention/rows"):
        with pytest.raises(redblue.FastMemoryTooSmall) as raised:
            redblue.count(kernel, n=64, d=8, M=2)
        least = raised.value.least_M
        assert redblue.count(kernel, n=64, d=8, M=least).M == least
        with pytest.raises(redblue.FastMemoryTooSmall):
            redblue.count(kernel, n=64, d=8, M=least - 1)


def test_words_beside_a_result(command, caplog):
    """Lines of standard error go to the logger, and stay in the result."""
    caplog.set_level(logging.INFO)
    numpy.save("O.npy", numpy.zeros((8, 4), numpy.float32))
    numpy.save("L.npy", numpy.zeros(8, numpy.float32))
    result = redblue.run("backward/flash", n=8, d=4, M=64, seed=1, O="O.npy", L="L.npy", verify=True)
    ended = command.run("run backward/flash --n 8 --d 4 --M 64 --seed 1 --in O=O.npy --in L=L.npy --verify")
    assert "O and L are taken as given" in result.said[0]
    assert result.exit_code == ended.returncode
    assert [f"redblue: {line}" for line in result.said] == ended.stderr.splitlines()
    assert [record.getMessage() for record in caplog.records] == result.said
    assert {record.levelname for record in caplog.records} == {"WARNING" if result.exit_code else "INFO"}
    caplog.clear()
    redblue.run("gradients/auto", n=8, d=4, M=640, seed=1, O="O.npy", L="L.npy")
    assert {record.levelname for record in caplog.records} <= {"INFO"}


def test_instructions_of_one_call_are_not_those_of_the_next():
    """simd= applies to one call. Then the process has its own instruction set again."""
    before = redblue.info().simd.in_use
    assert redblue.run("forward/flash", n=8, d=4, M=64, simd="SSE4").context.simd == "SSE4"
    assert redblue.info().simd.in_use == before


def test_frames():
    """to_pandas() has the rows of the CSV, or the rows of a named part. A result without rows has one row."""
    words = redblue.count("backward/small", n=100, d=8, M=256)
    rows = words.to_pandas()
    assert list(rows["phase"]) == [*(phase.path for phase in words.phases), "total"]
    assert rows["reads"][:-1].sum() == words.total.reads
    assert list(words.to_pandas("phases")["formula.reads"]) == [phase.formula.reads for phase in words.phases]
    plan = redblue.plan(problem="backward", n=100, d=8, M=512)
    assert list(plan.to_pandas()["kernel"]) == [plan.plan.kernel, *(other.kernel for other in plan.runners_up)]
    assert list(redblue.list_().to_pandas("kernels")["name"])[0] == redblue.kernels()[0].name
    assert len(redblue.info().to_pandas()) == 1
