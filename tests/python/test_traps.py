"""Tests what users of the package stumbled over: options that were ignored, masks and arrays of other libraries, results
that cannot be compared, long calls without a sign of life."""

import copy
import json
import os
import pathlib
import re
import time
import types

import numpy
import pytest
import scipy.sparse
import torch

import redblue

Q, K, V, dO = numpy.random.default_rng(3).standard_normal((4, 2, 20, 8)).astype(numpy.float32)
GIVEN = dict(Q=Q, K=K, V=V)
LIVE = numpy.random.default_rng(4).random((20, 20)) < 0.4


@pytest.mark.parametrize("given, words", [
    (dict(scale=0.5), "scale=0.5: an array gives Q, K, V, and it is the standard deviation of the scores of operands from a "
     "seed: leave it out, or give softmax_scale= for the factor of the scores"),
    (dict(scale=1.0), "scale=1: an array gives"),
    (dict(seed=3), "seed=3: an array gives Q, K, V, and no operand comes from a seed: leave it out"),
])
def test_options_of_seeded_operands(given, words):
    """scale is PyTorch's name for what is softmax_scale here. Beside given operands it had no effect."""
    with pytest.raises(redblue.UsageError) as refused:
        redblue.run("attention/auto", **GIVEN, M="2K", **given)
    assert str(refused.value).startswith(words)


def test_options_of_seeded_operands_elsewhere():
    """Operands from a seed take both, also beside arrays. Beside files they say nothing."""
    partly = redblue.run("attention/auto", Q=Q, K=K, M="2K", seed=3, scale=2)
    assert partly.operands.V == "seed"
    numpy.testing.assert_array_equal(
        redblue.run("attention/rows", **GIVEN, M="2K", softmax_scale=0.5).O,
        redblue.attention(Q, K, V, M=2048, scale=0.5, kernel="attention/rows")[0])


def test_options_beside_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, array in GIVEN.items():
        numpy.save(f"{name}.npy", array)
    of_files = redblue.run("attention/auto", **{name: f"{name}.npy" for name in GIVEN}, M="2K", seed=3)
    assert of_files.operands.V == "file"


MASKS = {
    "bool": (LIVE, LIVE),
    "a tensor": (torch.from_numpy(LIVE), LIVE),
    "sparse": (scipy.sparse.csr_matrix(LIVE), LIVE),
    "lists": (LIVE.tolist(), LIVE),
    "one for all heads": (LIVE[None], LIVE),
    "the same for each head": (numpy.array([LIVE, LIVE]), LIVE),
    "documents": (numpy.array([0, 8, 20]), numpy.equal.outer(numpy.arange(20) >= 8, numpy.arange(20) >= 8)),
}


@pytest.mark.parametrize("what", MASKS)
def test_masks_that_are_arrays(what):
    """run takes them, with the result of a mask from a file; count and plan count their pairs."""
    mask, live = MASKS[what]
    ran = redblue.run("attention/rows", **GIVEN, M="2K", mask=mask)
    s = numpy.where(live, Q.astype(float) @ K.swapaxes(1, 2) / numpy.sqrt(8), -numpy.inf)
    with numpy.errstate(all="ignore"):
        f = numpy.nan_to_num(numpy.exp(s - s.max(-1, keepdims=True)))
    f /= numpy.maximum(f.sum(-1, keepdims=True), 1e-30)
    assert abs(ran.O - f @ V).max() < 1e-5
    assert ran.mask.pairs == live.sum()
    counted = redblue.count("attention/rows", n=20, d=8, heads=2, M="2K", mask=mask, objective="time")
    assert counted.total.io == ran.total.io
    assert redblue.plan(problem="attention", n=20, d=8, M="2K", mask=mask).mask.pairs == live.sum()


def test_pairs_of_a_mask_that_is_an_array(tmp_path):
    """The pairs are those of the array, for rows of any length and bytes of any value that NumPy takes as True."""
    random = numpy.random.default_rng(3)
    for n, m, share in ((3, 1, 0.5), (5, 7, 0.5), (9, 8, 0.3), (9, 9, 1), (6, 15, 0.9), (7, 64, 0.02), (20, 65, 0.5), (4, 200, 0.97)):
        mask = random.random((n, m)) < share
        mask[0, 0] = True
        numpy.save(tmp_path / "mask.npy", mask)
        options = dict(n=n, m=m, d=8, M="2K")
        known = redblue.count("attention/rows", mask=f"blocks:{tmp_path / 'mask.npy'}", **options).mask
        for array in (mask, (mask * random.integers(1, 256, mask.shape)).astype(numpy.uint8).view(bool)):
            counted = redblue.count("attention/rows", mask=array, **options).mask
            assert (counted.pairs, counted.fingerprint) == (mask.sum(), known.fingerprint)


def test_a_large_mask_costs_little():
    """n = 4096 with few ranges in a row: a quarter of a second on a busy machine at worst, when it was a second."""
    n = 4096
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        redblue.count("attention/rows", n=n, d=16, M="8K", mask=numpy.tri(n, dtype=bool))
        seconds.append(time.perf_counter() - start)
        if seconds[-1] < 0.25:
            break
    assert min(seconds) < 0.25


def test_verified_under_a_mask_of_an_array():
    ran = redblue.run("gradients/auto", **GIVEN, dO=dO, M="4K", mask=LIVE, verify=True, threads=2)
    assert ran.error.ok


def test_arrays_of_four_dimensions():
    """Batches and heads are heads of the kernel; results have the sizes of the operands, also in out=."""
    random = numpy.random.default_rng(5)
    q, do = random.standard_normal((2, 2, 4, 10, 8)).astype(numpy.float32)
    k, v = random.standard_normal((2, 2, 2, 10, 8)).astype(numpy.float32)
    ran = redblue.run("gradients/auto", Q=q, K=k, V=v, dO=do, M="4K", mask="causal")
    assert (ran.heads, ran.kv_heads) == (8, 4)
    for made, exact in zip((ran.dQ, ran.dK, ran.dV), redblue.gradients(q, k, v, do, M=4096, mask="causal")):
        assert made.shape == exact.shape
        numpy.testing.assert_allclose(made, exact, atol=1e-5)
    O = numpy.zeros_like(q)
    forward = redblue.run("attention/auto", Q=q, K=k, V=v, M="4K", mask="causal", out={"O": O})
    assert forward.O is O and forward.L.shape == q.shape[:3]
    numpy.testing.assert_allclose(O, redblue.attention(q, k, v, mask="causal")[0], atol=1e-5)
    given = redblue.run("gradients/flash", Q=q, K=k, V=v, dO=do, O=O, L=forward.L, M="4K", mask="causal")
    numpy.testing.assert_allclose(given.dQ, ran.dQ, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_tensors(dtype):
    """Tensors of all types, with gradients or not. bfloat16 is converted without loss, with a warning."""
    tensors = {name: torch.from_numpy(array).to(dtype).requires_grad_() for name, array in GIVEN.items()}
    exact = {name: tensor.detach().float().numpy() for name, tensor in tensors.items()}
    made = redblue.run("attention/auto", **tensors, M="2K").O
    numpy.testing.assert_array_equal(made, redblue.run("attention/auto", **exact, M="2K").O)
    numpy.testing.assert_array_equal(redblue.attention(*tensors.values(), M=2048)[0],
                                     redblue.attention(*exact.values(), M=2048)[0])
    if dtype == torch.bfloat16:
        with pytest.warns(redblue.ConversionWarning, match="Q is copied: it is bfloat16, not float32"):
            redblue.run("attention/auto", **tensors, M="2K")


def test_results_in_tensors():
    O = torch.zeros(2, 20, 8)
    ran = redblue.run("attention/auto", **GIVEN, M="2K", out={"O": O})
    assert ran.O is O
    numpy.testing.assert_array_equal(O.numpy(), redblue.run("attention/auto", **GIVEN, M="2K").O)
    with pytest.raises(redblue.InputError, match="^out O cannot be written to: it is bfloat16, not float32$"):
        redblue.run("attention/auto", **GIVEN, M="2K", out={"O": O.bfloat16()})


def test_a_wrong_mask_is_refused_when_made():
    for text in ("cusal", "window:3", "causal&", "prefix:", "global:5-2", "(causal", ""):
        with pytest.raises(redblue.UsageError, match="^mask '"):
            redblue.Mask(text)
    with pytest.raises(redblue.UsageError, match="cusal"):
        redblue.Mask("causal") & "cusal"
    for text in ("blocks:later.npy", "documents:a.npy:b.npy|causal", "global:5000-6000", "window:inf,0"):
        assert redblue.Mask(text).spec == text  # files are read when the mask is used


@pytest.mark.parametrize("problem, kv_heads, shape", [("attention", 4, (2, 4)), ("attention", 2, (2, 4)), ("attention", 2, (4,)),
                                                      ("gradients", 4, (2, 4)), ("gradients", 2, (2, 1))])
def test_masks_of_heads(problem, kv_heads, shape):
    """A run under a mask for each head has the results of redblue.attention or redblue.gradients, and the sums of the words
    of the runs; its peak is the largest."""
    Q, K, V, dO = numpy.random.default_rng(5).standard_normal((4, 2, 4, 30, 8), numpy.float32)
    mask = numpy.random.default_rng(6).random((*shape, 30, 30)) < 0.5
    given = dict(Q=Q, K=K[:, :kv_heads], V=V[:, :kv_heads]) | (dict(dO=dO) if problem == "gradients" else {})
    ran = redblue.run(f"{problem}/auto", **given, M="2K", mask=mask, verify=True)
    names = ("O", "L") if problem == "attention" else ("dQ", "dK", "dV")
    for name, exact in zip(names, getattr(redblue, problem)(**given, M="2K", mask=mask)):
        assert ran[name].shape == exact.shape
        numpy.testing.assert_allclose(ran[name], exact, atol=1e-5)
    assert len(ran.by_mask) == (2 if shape == (2, 1) else 8) and ran.error.ok and ran.heads == 8
    for name, together in (("io", sum), ("reads", sum), ("index_reads", sum), ("flops", sum), ("peak", max)):
        assert ran.total[name] == together(each.total[name] for each in ran.by_mask)
    assert sum(phase.reads for phase in ran.phases) == ran.total.reads
    assert "lower_bound" not in ran and "total" in repr(ran)
    assert ran == redblue.run(kernel=f"{problem}/auto", **given, M="2K", mask=torch.from_numpy(mask), verify=True)


def test_equal_results():
    """Two runs with the same counts and bits are equal, whatever time they took."""
    one, two = (redblue.run("attention/rows", **GIVEN, M="2K") for _ in range(2))
    assert one.total.seconds != two.total.seconds and one == two
    assert one != redblue.run("attention/rows", **{**GIVEN, "V": V + 1}, M="2K")
    assert one != redblue.run("attention/rows", **GIVEN, M="1K")
    assert redblue.count("attention/rows", n=20, d=8, M="2K") != one
    assert one != 3


def test_compare():
    one, two = (redblue.count("attention/rows", n=64, d=8, M="1K", objective="words", wanted=None, heads=heads)
                for heads in (1, 2))
    compared = redblue.compare(one, two)
    assert not compared.same and redblue.compare(one, one).same and repr(redblue.compare(one, one)) == "no count differs"
    rows = {name: (a, b, ratio) for name, a, b, ratio in compared.rows}
    assert rows["total.io"] == (one.total.io, 2 * one.total.io, 2.0)
    assert "core.peak" not in rows  # one head at a time
    assert "total.io" in repr(compared) and list(compared.to_pandas()["count"]) == list(rows)
    other = redblue.compare(one, redblue.count("attention/tiles", n=64, d=8, M="1K", objective="words"))
    assert any(row[1] is None for row in other.rows)  # a phase that the first has not
    with pytest.raises(TypeError, match="compare takes two results"):
        redblue.compare(one, redblue.plan(problem="attention", n=64, d=8, M="1K"))


def test_progress():
    """A long run calls the function with lines of text; what the function raises ends the run."""
    lines = []
    for n in (24000, 48000, 96000):  # at least 2 s on any machine
        redblue.run("attention/rows", n=n, d=64, M="16K", progress=lines.append)
        if lines:
            break
    assert lines and all(re.fullmatch(r"attention/rows: \d+% of words, \w+, \d+ s", line) for line in lines)

    def stop(line):
        raise RuntimeError("enough")

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="^enough$"):
        redblue.run("attention/rows", n=80000, d=64, M="16K", progress=stop)
    assert time.monotonic() - start < 10
    short = []
    redblue.run("attention/rows", n=20, d=8, M="2K", progress=short.append)
    assert short == []


LINES = ["attention/rows: 7% of words, core, 3 s", "attention/rows: <longer> 93% of words, O, 14 s", "attention/rows: checks"]


def test_bar_on_standard_error(capsys):
    """progress=True shows one line at a time, and removes it."""
    bar = redblue.html.Bar()
    for line in LINES:
        bar(line)
    bar.close()
    shown = capsys.readouterr().err
    screen, column = "", 0
    for character in shown:
        column = 0 if character == "\r" else column + 1
        screen = screen if character == "\r" else screen[:column - 1] + character + screen[column:]
    assert screen.strip() == "" and all(line in shown for line in LINES)
    ran = redblue.run("attention/rows", n=20, d=8, M="2K", progress=True)  # short: shows nothing
    assert ran.total.io > 0 and capsys.readouterr().err == ""


def test_bar_in_a_notebook(monkeypatch):
    """There the line is under a bar of its share, which changes in its place."""
    IPython = pytest.importorskip("IPython")
    shown = []

    class Handle:
        def update(self, value):
            shown.append(value.data)

    def display(value, display_id):
        assert display_id and not shown
        shown.append(value.data)
        return Handle()

    monkeypatch.setattr(IPython, "get_ipython", lambda: types.SimpleNamespace(kernel=None))
    monkeypatch.setattr(IPython.display, "display", display)
    bar = redblue.html.Bar()
    for line in LINES:
        bar(line)
    bar.close()
    assert shown == ['<progress value="7" max="100"></progress> attention/rows: 7% of words, core, 3 s',
                     '<progress value="93" max="100"></progress> attention/rows: &lt;longer&gt; 93% of words, O, 14 s',
                     "attention/rows: checks", ""]


def test_caches_are_read_once(monkeypatch):
    """A share of a cache costs little after the first call, and follows hwloc's variables."""
    def count():
        start = time.perf_counter()
        counted = redblue.count("attention/rows", n=64, d=8, M="L2*0.5")
        return time.perf_counter() - start, counted.M

    for size in (262144, 524288, 262144):
        monkeypatch.setenv("HWLOC_SYNTHETIC", f"core:2 l2:1(size={size}) l1:1(size=32768) pu:1")
        assert count()[1] == size // 8
    monkeypatch.delenv("HWLOC_SYNTHETIC")
    first, M = count()
    extra = []  # seconds; a busy machine makes some large, but to read the caches makes all large
    for _ in range(100):
        start = time.perf_counter()
        redblue.count("attention/rows", n=64, d=8, M=M)
        plain = time.perf_counter() - start
        later, same = count()
        assert same == M
        extra.append(later - plain)
        if extra[-1] < 1e-3:
            break
    assert min(extra) < 1e-3


def test_caches_are_read_once_for_attention(monkeypatch):
    """redblue.attention, too, reads them once, and M follows hwloc's variables; so does redblue.cost."""
    Q = numpy.ones((16, 8), numpy.float32)
    with monkeypatch.context() as context:
        for words in (2, 3, 2):
            context.setenv("HWLOC_SYNTHETIC", f"core:2 l2:1(size={4 * words}) l1:1(size=4) pu:1")
            for call in (lambda: redblue.attention(Q, Q, Q, M="L2"), lambda: redblue.cost("attention", n=16, d=8, M="L2")):
                with pytest.raises(redblue.FastMemoryTooSmall, match=f"M = {words} words"):
                    call()
    seconds = []
    redblue.attention(Q, Q, Q, M="L2*0.5")
    for _ in range(100):  # a busy machine makes some long, but to read the caches makes all long
        start = time.perf_counter()
        redblue.attention(Q, Q, Q, M="L2*0.5")
        seconds.append(time.perf_counter() - start)
        if seconds[-1] < 1e-3:
            break
    assert min(seconds) < 1e-3


@pytest.mark.parametrize("message, words", [
    ("--M 64KB: expected words", "M='64KB': expected words"),
    ("--kv-heads 3 does not divide --heads 8", "kv_heads=3 does not divide heads=8"),
    ("--M is missing: for example --M 8192, or --device a100", "M= is missing: for example M=8192, or device='a100'"),
    ("--mask 'caus': caus is no mask", "mask='caus': caus is no mask"),
    ("give --in V=FILE, or --seed S for the rest", "give V=FILE, or seed=S for the rest"),
    ("Q of q.npy, --in Q=q.npy", "Q of q.npy, Q='q.npy'"),
    ("give --problem attention or --problem gradients", "give problem='attention' or problem='gradients'"),
    ("--out O is an array", "out O is an array"),
    ("--softmax-scale C", "softmax_scale=C"),
    ("run `redblue calibrate` first", "run redblue.calibrate() first"),
    ("see `redblue list --devices`", "see redblue.list_(devices=True)"),
    ("a file my--file.npy", "a file my--file.npy"),
])
def test_messages_in_python(message, words):
    assert redblue._in_python(message) == words


def test_pages_say_which_python():
    """`pip` may be another Python's."""
    root = pathlib.Path(__file__).resolve().parents[2]
    for page in (root / "README.md", root / "docs" / "python.md"):
        for line in page.read_text().splitlines():
            assert not re.search(r"(?<![/\w-])pip3? (install|wheel)", line.replace("-m pip", "")), line


SUITE = {"points": [{"kernel": "backward/small", "n": [16, 20], "d": 4, "M": numpy.int64(99)}]}


def test_suites_and_recordings_as_values(tmp_path, monkeypatch):
    """A suite or a recording goes in as a value where the name of a file goes, with the same result; no file remains."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.json").write_text(json.dumps(SUITE, default=int))
    recorded = redblue.record(SUITE)
    assert recorded == redblue.record("suite.json") and len(recorded.points) == 2
    (tmp_path / "baseline.json").write_text(json.dumps(recorded.to_dict()))
    assert repr(redblue.check(recorded)) == repr(redblue.check("baseline.json")).replace("baseline.json", "baseline")
    assert redblue.check(recorded.to_dict()).exit_code == 0
    changed = copy.deepcopy(recorded.to_dict())
    changed["points"][1]["phases"][0]["reads"] += 1
    changed["points"][1]["total"]["reads"] += 1
    assert redblue.diff(recorded, recorded).exit_code == 0
    differs = redblue.diff(before=recorded, now=changed)
    assert differs.exit_code == 3 and "against before: DIFFERENT, 1 of 2 points" in repr(differs)
    with pytest.raises(redblue.InputError, match="^before is no recording") as raised:
        redblue.diff({"schema": 1}, recorded)
    assert "/" not in str(raised.value)
    with pytest.raises(redblue.UsageError, match="accept writes the baseline: give the name of its file"):
        redblue.check(recorded, accept="*", reason="none")
    with pytest.raises(redblue.InputError, match="suite cannot be written as JSON"):
        redblue.record({"points": [{"kernel": object()}]})
    redblue.sweep(SUITE, out="DIR")
    assert sorted(os.listdir(tmp_path)) == ["DIR", "baseline.json", "suite.json"]
