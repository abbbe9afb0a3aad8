"""Tests arrays instead of files: the same results, without copies unless a conversion is needed."""

import gc
import pathlib
import resource
import subprocess
import sys
import warnings
import weakref

import numpy
import pytest
import scipy.sparse

import redblue


def operands(*names, n=48, m=56, d=8, heads=None, kv_heads=None, seed=1):
    """Returns float32 arrays for the named operands of attention."""
    random = numpy.random.default_rng(seed)
    shapes = {"Q": (heads, n, d), "dO": (heads, n, d), "K": (kv_heads or heads, m, d), "V": (kv_heads or heads, m, d)}
    return {name: random.standard_normal([extent for extent in shapes[name] if extent], numpy.float32)
            for name in names}


def in_double(Q, K, V, dO, causal=False):
    """Returns O, dQ, dK and dV of one head, in double precision."""
    Q, K, V, dO = (array.astype(float) for array in (Q, K, V, dO))
    c = 1 / numpy.sqrt(Q.shape[1])
    s = c * Q @ K.T
    if causal:
        n, m = s.shape
        s[numpy.arange(m) > numpy.arange(n)[:, None] + m - n] = -numpy.inf
    f = numpy.exp(s - s.max(axis=1, keepdims=True))
    f /= f.sum(axis=1, keepdims=True)
    O = f @ V
    p = f * (dO @ V.T - (dO * O).sum(axis=1, keepdims=True))
    return {"O": O, "dQ": c * p @ K, "dK": c * p.T @ Q, "dV": f.T @ dO}


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", ["gradients/auto", "gradients/flash", "gradients/rows-keys"])
def test_gradients_against_numpy(kernel, causal):
    """dQ, dK and dV equal NumPy's in double precision, up to the precision of float32."""
    given = operands("Q", "K", "V", "dO")
    ran = redblue.run(kernel, **given, M="2K", mask="causal" if causal else None)
    assert ran.operands.to_dict() == dict.fromkeys(given, "array")
    for name, exact in in_double(**given, causal=causal).items():
        if name != "O":
            assert numpy.abs(ran[name] - exact).max() < 1e-5 * max(1, numpy.abs(exact).max())
            assert ran[name].dtype == numpy.float32


def test_same_bits_as_files(command):
    """Arrays give the same bits as the command gives for their .npy files, also for heads that share keys."""
    given = operands("Q", "K", "V", "dO", heads=4, kv_heads=2)
    for name, array in given.items():
        numpy.save(f"{name}.npy", array)
    files = "--in Q=Q.npy --in K=K.npy --in V=V.npy --in dO=dO.npy --out dQ=dQ.npy --out dK=dK.npy --out dV=dV.npy"
    ended = command.run(f"run gradients/auto --M 2K --mask causal --objective time {files}")
    assert ended.returncode == 0, ended.stderr
    ran = redblue.run("gradients/auto", M="2K", mask="causal", **given)
    assert list(ran.arrays) == ["dK", "dQ", "dV"]
    for name, array in ran.arrays.items():
        numpy.testing.assert_array_equal(array, numpy.load(f"{name}.npy"))
    named = redblue.run("gradients/auto", M="2K", mask="causal", objective="time", **{name: f"{name}.npy" for name in given})
    assert set(named.operands.values()) == {"file"}
    for name, array in named.arrays.items():
        numpy.testing.assert_array_equal(array, ran[name])


@pytest.mark.parametrize("kernel", sorted({kernel.kernel for kernel in redblue.kernels() if not kernel.sparse}))
def test_every_kernel_takes_arrays(kernel, command):
    """Every operand of a dense kernel may be an array, and every result is returned with the bits of a run on files."""
    n, d, M = 24, 6, 4000
    listed = next(each for each in redblue.kernels() if each.name == kernel)
    random = numpy.random.default_rng(2)
    shapes = {"X": (d, d), "Y": (d, d), "L": (n,), "B": (d, n)}
    given = {name: random.standard_normal(shapes.get(name, (n, d)), numpy.float32)
             for name in listed.given if name not in ("O", "L")}
    for name, array in given.items():
        numpy.save(f"{name}.npy", array)
    ran = redblue.run(kernel, **given, M=M)
    assert sorted(ran.arrays) == sorted(listed.returns)
    line = " ".join([*(f"--in {name}={name}.npy" for name in given),
                     *(f"--out {name}=out_{name}.npy" for name in ran.arrays)])
    ended = command.run(f"run {kernel} --M {M} {line}")
    assert ended.returncode == 0, ended.stderr
    for name, array in ran.arrays.items():
        numpy.testing.assert_array_equal(array, numpy.load(f"out_{name}.npy"))


def test_operands_stay_where_they_are(monkeypatch):
    """The kernel gets the addresses of the arrays, and does not write them."""
    given = operands("Q", "K", "V")
    before = {name: (address(array), array.copy()) for name, array in given.items()}
    seen = {}
    call = redblue._redblue.call

    def watched(words, arrays, *others):
        seen.update({name: address(array) for name, array in arrays.items()})
        return call(words, arrays, *others)

    monkeypatch.setattr(redblue._redblue, "call", watched)
    for array in given.values():
        array.flags.writeable = False  # operands are only read
    redblue.run("attention/auto", **given, M="2K")
    for name, (where, words) in before.items():
        assert seen[name] == where
        numpy.testing.assert_array_equal(given[name], words)


def test_large_operands_take_no_memory():
    """A run from 64 MiB to 64 MiB needs less than 16 MiB more, so it copies neither array."""
    n, d = 1 << 19, 32
    Q, O = numpy.ones((2, n, d), numpy.float32)
    K = V = numpy.ones((4, d), numpy.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = redblue.run("attention/rows", Q=Q, K=K, V=V, M="8K", out={"O": O})
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < Q.nbytes / 4
    assert address(ran.O) == address(O)


def test_results_are_written_where_out_says():
    """out= takes arrays: they become the results, at the same address. Other results are new arrays."""
    given = operands("Q", "K", "V", "dO")
    dQ = numpy.full((48, 8), numpy.nan, numpy.float32)
    ran = redblue.run("gradients/auto", **given, M="2K", out={"dQ": dQ})
    assert address(ran.dQ) == address(dQ)
    assert set(ran.arrays) == {"dQ", "dK", "dV"}
    numpy.testing.assert_array_equal(dQ, redblue.run("gradients/auto", **given, M="2K").dQ)


def test_files_and_arrays_together(command):
    """Some operands from files, some from arrays, some from a seed; results to both."""
    given = operands("Q", "K", "V")
    numpy.save("V.npy", given["V"])
    all_given = redblue.run("attention/auto", **given, M="2K", out={"O": "O.npy"})
    ran = redblue.run("attention/auto", Q=given["Q"], K=given["K"], V="V.npy", M="2K")
    numpy.testing.assert_array_equal(ran.O, numpy.load("O.npy"))
    numpy.testing.assert_array_equal(ran.O, all_given.O)
    seeded = redblue.run("attention/auto", Q=given["Q"], K=given["K"], M="2K", seed=3)
    assert seeded.operands.to_dict() == {"K": "array", "Q": "array", "V": "seed"}


def test_wanted_leaves_results_out():
    """Results that are not wanted are not made."""
    ran = redblue.run("gradients/flash", n=32, d=8, M="2K", wanted="dV")
    assert list(ran.arrays) == ["dV"]
    with pytest.raises(AttributeError, match="^Result has no 'dK': it has schema, .*, dV$"):
        ran.dK


def test_ranks_and_stores(command):
    """Arrays go to ranks and to a store on disk, with the bits of files. Results of a store stay there, unless out=
    asks for them."""
    given = operands("Q", "K", "V", n=64, m=64)
    for name, array in given.items():
        numpy.save(f"{name}.npy", array)
    files = {name: f"{name}.npy" for name in given}
    numpy.testing.assert_array_equal(redblue.run("attention/rows", **given, M="2K", grid="2x1").O,
                                     redblue.run("attention/rows", **files, M="2K", grid="2x1").O)
    whole = redblue.run("attention/rows", **given, M="2K")
    stored = redblue.run("attention/rows", **given, M="2K", store="file:s")
    assert stored.arrays == {}
    with pytest.raises(AttributeError, match="no 'O': .*results stay in the store, for redblue.store.export"):
        stored.O
    redblue.store.export("s", {"O": "exported.npy"})
    numpy.testing.assert_array_equal(numpy.load("exported.npy"), whole.O)
    assert redblue.run("attention/rows", **given, M="2K", store=pathlib.Path("p")).store.directory.endswith("p")
    O = numpy.zeros_like(whole.O)
    redblue.run("attention/rows", **given, M="2K", store="file:t", out={"O": O})
    numpy.testing.assert_array_equal(O, whole.O)


def test_results_outlive_all_else():
    """The memory of a result is freed together with the array."""
    array = redblue.run("forward/flash", n=64, d=8, M=512).O
    assert type(array.base).__name__ == "PyCapsule"  # it owns the kernel's buffer
    gc.collect()
    again = redblue.run("forward/flash", n=64, d=8, M=512).O
    numpy.testing.assert_array_equal(array, again)
    watched = weakref.ref(again)
    del again
    gc.collect()
    assert watched() is None


class OverDLPack:
    """An array that NumPy takes for another library's."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


CONVERTED = {
    "float64": lambda Q: Q.astype(float),
    "float16": lambda Q: Q.astype(numpy.float16),
    "big-endian": lambda Q: Q.astype(">f4"),
    "Fortran order": numpy.asfortranarray,
    "strided": lambda Q: numpy.repeat(Q, 2, axis=1)[:, ::2],
    "reversed": lambda Q: Q[::-1].copy()[::-1],
    "nested lists": lambda Q: Q.tolist(),
    "float64 by DLPack": lambda Q: OverDLPack(Q.astype(float)),
    "strided by DLPack": lambda Q: OverDLPack(numpy.asfortranarray(Q)),
}


@pytest.mark.parametrize("how", CONVERTED)
def test_conversions(how):
    """An array that is not float32 in C order is converted, with the same results. The warning is off by default."""
    given = operands("Q", "K", "V")
    given["Q"] = given["Q"].astype(numpy.float16).astype(numpy.float32)  # exact in float16
    same = redblue.run("attention/auto", **given, M="2K").O
    given["Q"] = CONVERTED[how](given["Q"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        numpy.testing.assert_array_equal(redblue.run("attention/auto", **given, M="2K").O, same)
    assert [warning.category for warning in caught] == [redblue.ConversionWarning]
    assert "Q is copied" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_dlpack_without_a_copy():
    """Another library's float32 array in C order is used without a copy and without a warning."""
    given = operands("Q", "K", "V")
    lent = {name: OverDLPack(array) for name, array in given.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numpy.testing.assert_array_equal(redblue.run("attention/auto", **lent, M="2K").O,
                                         redblue.run("attention/auto", **given, M="2K").O)
    assert address(redblue._float32("Q", lent["Q"])) == address(given["Q"])


def test_mapped_files_without_a_copy(tmp_path):
    """A mapped .npy file is used without a copy."""
    numpy.save(tmp_path / "Q.npy", operands("Q")["Q"])
    mapped = numpy.load(tmp_path / "Q.npy", mmap_mode="r")
    assert address(redblue._float32("Q", mapped)) == address(mapped)


def test_warning_is_off_by_default():
    """A fresh interpreter reports no conversion. With -W error it does."""
    code = ("import redblue, numpy; a = numpy.ones((4, 4)); "
            "redblue.run('matmul/blocked', A=a, B=a, M=99)")
    quiet = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (quiet.returncode, quiet.stderr) == (0, "")
    loud = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert "ConversionWarning" in loud.stderr


# Arrays that contradict each other or hold NaN or infinity. The command has the same message for the same files.
BAD = {
    "another d": {"K": numpy.ones((6, 3), numpy.float32)},
    "another m": {"V": numpy.ones((5, 4), numpy.float32)},
    "heads of some": {"Q": numpy.ones((2, 8, 4), numpy.float32)},
    "heads that do not divide": {"Q": numpy.ones((3, 8, 4), numpy.float32), "K": numpy.ones((2, 6, 4), numpy.float32),
                                 "V": numpy.ones((2, 6, 4), numpy.float32)},
    "one dimension": {"Q": numpy.ones(8, numpy.float32)},
    "nothing": {"Q": numpy.ones((0, 4), numpy.float32)},
    "NaN": {"Q": numpy.full((8, 4), numpy.nan, numpy.float32)},
    "infinity": {"K": numpy.where(numpy.arange(24).reshape(6, 4) == 13, numpy.inf, 1).astype(numpy.float32)},
    "too large": {"V": numpy.full((6, 4), 1e300)},
    "NaN of a head": {"Q": numpy.where(numpy.arange(64).reshape(2, 8, 4) == 45, numpy.nan, 1).astype(numpy.float32),
                      "K": numpy.ones((2, 6, 4), numpy.float32), "V": numpy.ones((2, 6, 4), numpy.float32)},
}


@pytest.mark.parametrize("what", BAD)
def test_bad_arrays_have_the_words_of_files(what, command):
    """The InputError is the command's message, with "an array" instead of the file's name."""
    good = {"Q": numpy.ones((8, 4), numpy.float32), "K": numpy.ones((6, 4), numpy.float32),
            "V": numpy.ones((6, 4), numpy.float32)}
    given = {**good, **BAD[what]}
    for name, array in given.items():
        numpy.save(f"{name}.npy", array)
    ended = command.run("run attention/auto --M 999 --in Q=Q.npy --in K=K.npy --in V=V.npy")
    with pytest.raises(redblue.InputError) as raised:
        redblue.run("attention/auto", M=999, **given)
    words = ended.stderr.removeprefix("redblue: ").rstrip("\n")
    for name in given:  # messages name the file, or "an array" of the operand
        words = words.replace(f"{name} of {name}.npy", f"{name} of an array").replace(
            f"{name}.npy", f"{name} of an array")
    said = str(raised.value)
    if what == "too large":  # infinite in float32
        words = words.replace("1e+300", "inf")
    assert (said, ended.returncode) == (words, 1)


def test_other_refusals():
    """Refuses operands and results of other kernels, complex numbers, and wrong arrays in out=."""
    given = operands("Q", "K", "V")
    with pytest.raises(redblue.UsageError, match="^A1 is an array: attention/auto is given Q, K, V$"):
        redblue.run("attention/auto", **given, A1=given["Q"], M="2K")
    with pytest.raises(redblue.UsageError, match="^an array gives Q, K, but nothing gives V"):
        redblue.run("attention/auto", Q=given["Q"], K=given["K"], M="2K")
    with pytest.raises(redblue.InputError, match="^Q of an array: elements of dtype complex128"):
        redblue.run("attention/auto", **{**given, "Q": given["Q"].astype(complex)}, M="2K")
    with pytest.raises(redblue.InputError, match=r"^out O is an array of shape \(48, 7\); expected \(48, 8\)"):
        redblue.run("attention/auto", **given, M="2K", out={"O": numpy.zeros((48, 7), numpy.float32)})
    with pytest.raises(redblue.InputError, match="^out O cannot be written to: it is float64, not float32$"):
        redblue.run("attention/auto", **given, M="2K", out={"O": numpy.zeros((48, 8))})
    with pytest.raises(redblue.UsageError, match="^out dQ is an array: attention/auto returns O, L"):
        redblue.run("attention/auto", **given, M="2K", out={"dQ": numpy.zeros((48, 8), numpy.float32)})
    both = numpy.zeros((48, 8), numpy.float32)
    with pytest.raises(redblue.InputError, match="^out O is an array that overlaps Q in memory"):
        redblue.run("attention/auto", Q=both, K=given["K"], V=given["V"], M="2K", out={"O": both})
    with pytest.raises(redblue.UsageError, match="^Q: count takes no arrays; give n, m and d, or the name of a file$"):
        redblue.count("attention/auto", Q=given["Q"], M="2K")
    with pytest.raises(redblue.UsageError, match="O without L"):
        redblue.run("gradients/flash", **operands("Q", "K", "V", "dO"), O=both, M="2K")


class Namespace:
    """An object that is not an array."""


# Values that out= does not take, and their messages.
NO_TARGETS = {
    "an array": (lambda O: O, r"^out is an object of type ndarray of float32; expected names of results"),
    "a name that is none": (lambda O: {3: O}, "^out is an object of type dict; expected names"),
    "a number": (lambda O: 5, "^out is 5; expected names"),
    "a list": (lambda O: {"O": [[0.0]]}, "^out O is an object of type list; expected an array of float32, or the"),
    "an object": (lambda O: {"O": Namespace()}, "^out O is an object of type Namespace; expected an array"),
    "float64": (lambda O: {"O": O.astype(float)}, "^out O cannot be written to: it is float64, not float32$"),
    "all wrong": (lambda O: {"O": read_only(numpy.asfortranarray(O.astype(float)))},
                  "it is float64, not float32, not in C order, read-only$"),
    "read-only": (lambda O: {"O": read_only(O)}, "^out O cannot be written to: it is read-only$"),
    "read-only by DLPack": (lambda O: {"O": OverDLPack(read_only(O))}, "^out O cannot be "),
    "Fortran order by DLPack": (lambda O: {"O": OverDLPack(numpy.asfortranarray(O))}, "it is not in C order$"),
    "standard output": (lambda O: {"O": "-"}, "^out '-': a call has no standard output"),
    "standard output in words": (lambda O: "O=-", "^out '-': a call has no standard output"),
}


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("what", NO_TARGETS)
def test_out_takes_files_and_arrays_alone(what, command):
    """Any other value is refused, and no file is made."""
    target, said = NO_TARGETS[what]
    with pytest.raises((redblue.InputError, redblue.UsageError), match=said):
        redblue.run("attention/auto", n=48, d=8, M="2K", out=target(numpy.zeros((48, 8), numpy.float32)))
    assert list(command.directory.iterdir()) == []


def test_out_by_dlpack():
    """Another library's array is written without a copy and returned itself. None asks for no result."""
    given = operands("Q", "K", "V")
    O = numpy.zeros((48, 8), numpy.float32)
    lent = OverDLPack(O)
    ran = redblue.run("attention/auto", **given, M="2K", out={"O": lent, "L": None})
    assert ran.O is lent
    numpy.testing.assert_array_equal(O, redblue.run("attention/auto", **given, M="2K").O)


def test_buffers_are_arrays():
    """An object with Python's buffer protocol is an array, with the same bits of results."""
    given = operands("Q", "K", "V")
    numpy.testing.assert_array_equal(
        redblue.run("attention/auto", **{name: memoryview(array) for name, array in given.items()}, M="2K").O,
        redblue.run("attention/auto", **given, M="2K").O)


def test_conversions_say_what_differs():
    """A warning says whether dtype, order or alignment caused the copy."""
    given = operands("Q", "K", "V")
    crooked = numpy.frombuffer(b" " + given["V"].tobytes(), numpy.uint8)[1:].view(numpy.float32).reshape(56, 8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        redblue.run("attention/auto", Q=given["Q"].astype(float), K=numpy.asfortranarray(given["K"]), V=crooked,
                    M="2K")
    assert [str(warning.message) for warning in caught] == ["Q is copied: it is float64, not float32",
                                                            "K is copied: it is not in C order",
                                                            "V is copied: it is not aligned"]


def sparse(array):
    return scipy.sparse.csr_matrix(array)


# Arrays in wrong places, and values that are not arrays: the call, its error class and its message.
MISPLACED = {
    "of count": (lambda Q: redblue.count("attention/auto", Q=Q, M="2K"), redblue.UsageError,
                 "^Q: count takes no arrays; give n, m and d, or the name of a file$"),
    "in_": (lambda Q: redblue.run("attention/auto", in_={"Q": Q}, M="2K"), redblue.UsageError,
            "^in_ Q takes a value, not an object of type ndarray of float32; give Q=array to run$"),
    "mask": (lambda Q: redblue.trace("attention/rows", n=8, d=4, M="2K", mask=Q > 0), redblue.UsageError,
             "^mask takes a value, not an object of type ndarray of bool; .*'blocks:FILE.npy'$"),
    "a size": (lambda Q: redblue.count("attention/auto", n=Q, d=4, M="2K"), redblue.UsageError,
               "^n takes a value, not an object of type ndarray of float32$"),
    "an argument": (lambda Q: redblue.count(Q, n=8, d=4, M="2K"), redblue.UsageError, "^an array is given without a name"),
    "sparse": (lambda Q: redblue.run("matmul/sparse-rows", A=sparse(Q), M="2K"), redblue.InputError,
               "^A is sparse: save it by scipy.sparse.save_npz and give the file's name$"),
    "a scalar": (lambda Q: redblue.run("attention/auto", Q=3.5, M="2K"), redblue.InputError,
                 "^Q is 3.5; expected an array, or the name of a file$"),
    "bytes": (lambda Q: redblue.run("attention/auto", Q=b"Q.npy", M="2K"), redblue.InputError,
              "^Q is an object of type bytes; expected an array, or the name of a file$"),
    "ragged": (lambda Q: redblue.run("attention/auto", Q=[[1.0, 2.0], [3.0]], M="2K"), redblue.InputError,
               "^Q cannot be read as an array: "),
    "masked": (lambda Q: redblue.run("attention/auto", Q=numpy.ma.masked_array(Q, Q > 0), M="2K"), redblue.InputError,
               "^Q of an array: some elements are masked"),
}


@pytest.mark.parametrize("what", MISPLACED)
def test_misplaced_arrays(what):
    """They are refused by name and type, without their elements."""
    call, error, said = MISPLACED[what]
    with pytest.raises(error, match=said) as raised:
        call(operands("Q")["Q"])
    assert len(str(raised.value)) < 200


def test_nothing_is_masked():
    """A masked array without masked elements is an array."""
    given = operands("Q", "K", "V")
    masked = numpy.ma.masked_array(given["Q"])
    numpy.testing.assert_array_equal(redblue.run("attention/auto", **{**given, "Q": masked}, M="2K").O,
                                     redblue.run("attention/auto", **given, M="2K").O)


def test_mask_by_a_matrix(command):
    """A bool matrix becomes a mask through a file, as the message says."""
    live = numpy.random.default_rng(4).random((48, 56)) < 0.5
    numpy.save("live.npy", live)
    numpy.testing.assert_array_equal(redblue.Mask("blocks:live.npy").pairs(48, 56), live)


def test_masks():
    """The pairs of a mask equal NumPy's."""
    i, j = numpy.arange(6)[:, None], numpy.arange(9)
    causal, window = j <= i + 3, (j >= i + 3 - 2) & (j <= i + 3)
    numpy.testing.assert_array_equal(redblue.Mask("causal").pairs(6, 9), causal)
    joined = redblue.Mask("window:2,0") | redblue.Mask("prefix:1") & redblue.Mask("causal")
    numpy.testing.assert_array_equal(joined.pairs(6, 9), window | (j < 1) & causal)
    assert redblue.Mask().pairs(2, 3).all()
    with pytest.raises(redblue.UsageError, match="^mask 'caus'"):
        redblue.Mask("caus")
    assert redblue.Mask().pairs("1K", numpy.int64(2)).shape == (1024, 2)
    for n in (0, -1, "1.5", 2.5, None, True, "x"):
        with pytest.raises(redblue.UsageError, match=r"^n\b"):
            redblue.Mask().pairs(n, 3)
    assert str("prefix:2" | redblue.Mask("causal")) == "(prefix:2)|(causal)"
    assert str("prefix:2" & redblue.Mask("causal") & "full") == "((prefix:2)&(causal))&(full)"
    for none in (None, 5, causal):
        with pytest.raises(TypeError, match="^a mask is a text"):
            redblue.Mask(none)
