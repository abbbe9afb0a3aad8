"""Times redblue beside other libraries, for tools/bench. Each side is a process that computes one problem on request,
so that sides take turns. They share nothing but the cores and the files of the inputs.

A side's program prints its name and version. Then it answers each line that it reads with one line:

    use VARIANT   gets a variant ready                   ok, or failed: REASON
    run           computes the problem once              milliseconds
    save          writes the results of the last run     ok
    peak          redblue only: the share of the peak of multiply-adds that the last run reached

Inputs and results are files of float32 words, named after the operand."""

import argparse
import collections
import contextlib
import importlib.util
import itertools
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

HERE = pathlib.Path(__file__).resolve().parent
OPERANDS = {"forward": ("Q K V", "O"), "g": ("A1 A2 A3 X Y dO", "g"), "gradients": ("Q K V dO", "dQ dK dV"),
            "backward": ("A1 A2 A3 X Y dO", "g")}
ALONE = ["backward"]  # g from O and L, which a kernel alone has: no peer is timed
# Kernels and fast memories, each the fastest on some processor. The fastest one here is timed.
# Above L2, sizes are words: a virtual machine may report an L3 that it does not have to itself.
KERNELS = {
    "forward": ["attention/rows@L2*0.25", "attention/rows@L2*0.5", "attention/rows@L2*0.75"],
    "g": ["backward/score-rows@L2*0.75", "backward/score-rows@768K", "backward/score-rows@1536K",
          "backward/score-rows@2M", "backward/rows-onepass@L2*0.5", "backward/rows-onepass@L2"],
    "gradients": ["gradients/score-rows@768K", "gradients/score-rows@1536K", "gradients/score-rows@4M",
                  "gradients/rows-keys@L2*0.5"],
    "backward": ["backward/rows@L2*0.5", "backward/rows@L2*0.75", "backward/rows@1M"],
}
PEERS = ["OpenBLAS", "PyTorch", "ONNX Runtime"]
BLOCK = 256  # queries in a block, for a peer that keeps the scores of one block
LARGE = 8192  # from this n, a run is so long that it need not find its own words in the caches
REST = 0.05  # seconds in which threads that sleep use no processor time
SAME = 1e-4  # the most that results may differ, divided by the largest value
SAME_AS_EXACT = 1e-5  # the same, from double precision at n = 37

Case = collections.namedtuple("Case", "problem mask n d threads")


class LeftOut(Exception):
    """The reason why a side or a variant cannot be timed."""


class Differs(Exception):
    """Two sides do not agree."""


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def make_inputs(case, directory):
    """Makes random operands. Scores have the standard deviation 1."""
    random = numpy.random.default_rng(1)
    scales = {"X": 1 / case.d, "Y": case.d**-0.5}
    made = {}
    for name in OPERANDS[case.problem][0].split():
        words = random.standard_normal((case.d if name in "XY" else case.n, case.d), numpy.float32)
        made[name] = words * numpy.float32(scales.get(name, 1))
        made[name].tofile(directory / name)
    return made


def exact(case, given):
    """The results by their definitions, in double precision."""
    def softmax(s):
        s = numpy.where(numpy.tri(case.n, dtype=bool), s, -numpy.inf) if case.mask == "causal" else s
        e = numpy.exp(s - s.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def derivative(f, q):
        return f * (q - (f * q).sum(1, keepdims=True))

    of = {name: words.astype(float) for name, words in given.items()}
    if "A1" in of:
        f = softmax(of["A1"] @ of["X"] @ of["A2"].T)
        return {"g": of["A1"].T @ derivative(f, of["dO"] @ (of["A3"] @ of["Y"]).T) @ of["A2"]}
    Q, K, V = of["Q"] * case.d**-0.5, of["K"], of["V"]
    f = softmax(Q @ K.T)
    if case.problem == "forward":
        return {"O": f @ V}
    p = derivative(f, of["dO"] @ V.T)
    return {"dQ": p @ K * case.d**-0.5, "dK": p.T @ Q, "dV": f.T @ of["dO"]}


def difference(made, expected):
    """The largest difference divided by the largest value; infinite if a value is not a number."""
    def of(one, other):
        off = abs(one.ravel() - other.ravel()).max() / abs(other).max()
        return off if off == off else numpy.inf
    return max(of(made[name], expected[name]) for name in expected)


class Side:
    """A process that computes one case."""

    def __init__(self, name, threads, words, variants, results, models=None):
        self.name, self.variants, self.results, self.models = name, variants, results, models
        self.threads = threads
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.variant = None
        self.version = self.answer()

    def answer(self):
        line = self.process.stdout.readline().rstrip("\n")
        if not line:
            raise LeftOut(f"the process of {self.name} ended with exit code {self.process.wait()}")
        if line.startswith("failed: "):
            raise LeftOut(line[8:])
        return line

    def ask(self, request):
        with contextlib.suppress(BrokenPipeError):  # a side that has ended does not answer
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        return self.answer()

    def use(self, variant):
        self.ask(f"use {self.models / variant if self.models else variant}")

    def made(self, names):
        self.ask("run")
        self.ask("save")
        return {name: numpy.fromfile(self.results / name, numpy.float32) for name in names}

    def least(self):
        """The time of the fastest of some runs: three, or more if they are short. Refuses a side with too many
        threads."""
        times, used, began = [], self.processor_time(), time.monotonic()
        while len(times) < 3 or (sum(times) < 200 and len(times) < 20):
            times.append(float(self.ask("run")))
        used = (self.processor_time() - used) / os.sysconf("SC_CLK_TCK")
        if used > (self.threads + 0.25) * (time.monotonic() - began) + 0.02:
            raise LeftOut(f"it runs on more than {self.threads} threads")
        return min(times)

    def choose(self, names, expected, check):
        """Keeps the fastest variant. Returns results by which to judge other sides. Throws: Differs."""
        same, times = SAME_AS_EXACT if check else SAME, {}
        for variant in self.variants:
            try:
                self.use(variant)
                made = self.made(names)
                expected = expected or made
                if not (off := difference(made, expected)) < same:
                    raise Differs(f"{self.name}, {variant}: results differ by {off:.1e} of the largest value")
                times[variant] = 0 if check else self.least()
            except LeftOut as reason:
                say(f"{self.name}, {variant}: {reason}")
                if check or self.process.poll() is not None:
                    raise
        if not times:
            raise LeftOut("no variant works")
        self.variant = min(times, key=times.get)
        self.use(self.variant)
        self.ask("run")  # allocates its memory
        return expected

    def processor_time(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def milliseconds(self, case):
        if case.n < LARGE:  # the caches hold the words of the side before
            self.ask("run")
        return float(self.ask("run"))

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def start(name, case, options, directory):
    """Starts a side of a case, with the inputs in `directory`."""
    inputs, results, models = directory / "inputs", directory / name, directory / "models"
    results.mkdir()
    sizes = [case.problem, str(case.n), str(case.d), case.mask, str(case.threads)]
    rows = [f"rows:{size}" for size in sorted({min(BLOCK, case.n), case.n, *([16] if options.check else [])})]
    if name == "redblue":
        return Side(name, case.threads, [options.program, name, inputs, results, *sizes], KERNELS[case.problem], results)
    if name == "OpenBLAS":
        return Side(name, case.threads, [options.program, name, inputs, results, *sizes], rows, results)
    if name == "PyTorch":
        # torch.set_num_threads() does not reach the threads of the OpenBLAS that makes the products.
        words = ["env", f"OPENBLAS_NUM_THREADS={case.threads}", sys.executable, HERE / "torch_side.py", inputs, results,
                 *sizes]
        return Side(name, case.threads, words, ["autograd", *rows], results)
    from onnx_models import write_model
    models.mkdir()
    if case.problem == "forward":
        rows += ["MultiHeadAttention"] + (["GroupQueryAttention"] if case.mask == "causal" else [])
    for variant in rows:
        write_model(str(models / variant), *case[:4], variant)
    words = ["env", f"NODE_PATH={options.modules}", "node", HERE / "onnxruntime_side.js", inputs, results, sizes[-1]]
    return Side(name, case.threads, words, rows, results, models)


def missing(name, options):
    """Why a side cannot start, and the remedy. Empty: it can."""
    def without(package, needs):
        return "" if importlib.util.find_spec(package) else f"{needs} is missing: as root, apt-get install {needs}"
    if name == "PyTorch":
        return without("torch", "python3-torch")
    if name != "ONNX Runtime":
        return ""
    if not shutil.which("node"):
        return "node is missing: as root, apt-get install nodejs npm, then tools/bench --peers"
    if not (options.modules / "onnxruntime-node").is_dir():
        return "onnxruntime-node is not installed: tools/bench --peers installs it"
    return without("onnx", "python3-onnx")


@contextlib.contextmanager
def prepared(case, options):
    """Starts all sides, and chooses their variants. Gives the sides that work, redblue first."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as started:
        directory = pathlib.Path(directory)
        (directory / "inputs").mkdir()
        given = make_inputs(case, directory / "inputs")
        expected = exact(case, given) if options.check else None
        sides = []
        for name in options.sides[:1] if case.problem in ALONE else options.sides:
            try:
                side = start(name, case, options, directory)
                started.callback(side.end)
                expected = side.choose(OPERANDS[case.problem][1].split(), expected, options.check)
                sides.append(side)
            except LeftOut as reason:
                if name == "redblue" or options.check:
                    raise
                say(f"{name} is left out: {reason}")
        yield sides


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.2f} {low:.2f}-{high:.2f}"


def rest(sides):
    """Waits until no side has a busy thread. Threads that have finished spin for a tenth of a second before they sleep,
    and would slow down the next side."""
    before = None
    for _ in range(100):
        used = [side.processor_time() for side in sides]
        if used == before:
            return
        before = used
        time.sleep(REST)
    raise LeftOut("idle threads of a side never sleep: is OMP_WAIT_POLICY set to active?")


def measured(case, sides, options):
    """Times all sides in turn. Returns a row of the table."""
    times, shares = collections.defaultdict(list), []
    for turn in range(options.rounds):
        first = turn % len(sides)
        for side in sides[first:] + sides[:first]:
            rest(sides)
            times[side.name].append(side.milliseconds(case))
            if side.name == "redblue":
                rest(sides)
                shares.append(float(side.ask("peak")))
    ours = times.pop("redblue")
    return [*map(str, case), f"{statistics.median(ours):.1f}", f"{statistics.median(shares):.0%}",
            sides[0].variant.split("/")[1].replace("@", " "),
            *(quartiles([their / our for their, our in zip(times[name], ours)]) if name in times else "-"
              for name in options.sides[1:])]


def show(row, options):
    widths = [9, 6, 5, 3, 7, 8, 7, 19] + [16] * (len(options.sides) - 1)
    left = {0, 1, 7}
    print("  ".join(f"{cell:<{width}}" if k in left else f"{cell:>{width}}"
                    for k, (cell, width) in enumerate(zip(row, widths))).rstrip(), flush=True)


def memory():
    """The bytes of main memory that programs may take."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def some_of(known):
    """The type of an option: names with commas between them."""
    def parse(text):
        if wrong := [part for part in text.split(",") if part not in known]:
            raise argparse.ArgumentTypeError(f"{wrong[0]}: expected some of {','.join(known)}")
        return text.split(",")
    return parse


def numbers(text):
    """The type of an option: positive numbers with commas between them."""
    if wrong := [part for part in text.split(",") if not part.isdecimal() or int(part) == 0]:
        raise argparse.ArgumentTypeError(f"{wrong[0]}: expected a positive number")
    return [int(part) for part in text.split(",")]


def parsed():
    parser = argparse.ArgumentParser(prog="tools/bench", description="Times redblue beside other libraries.")
    parser.add_argument("--peers", action="store_true", help="also PyTorch and ONNX Runtime, not OpenBLAS alone")
    parser.add_argument("--problem", type=some_of(OPERANDS), default=list(OPERANDS), metavar="P,...",
                        help=f"problems: {', '.join(OPERANDS)} (default: all)")
    parser.add_argument("--mask", type=some_of(["full", "causal"]), default=["full", "causal"], metavar="MASK,...",
                        help="masks: full, causal (default: both)")
    parser.add_argument("--n", type=numbers, default=[1024, 4096], metavar="N,...",
                        help="queries and keys (default: 1024,4096); 16384 takes hours and 13 GB")
    parser.add_argument("--d", type=numbers, default=[64, 128], metavar="D,...", help="width (default: 64,128)")
    parser.add_argument("--threads", type=numbers, default=[1, 2], metavar="T,...",
                        help="threads of each side (default: 1,2)")
    parser.add_argument("--rounds", type=int, default=9, help="timings of each side (default: 9)")
    parser.add_argument("--check", action="store_true",
                        help="compare the results of all variants with double precision, at n = 37, and time nothing")
    parser.add_argument("--program", default="build/release/bench/redblue_peer", help=argparse.SUPPRESS)
    parser.add_argument("--modules", type=pathlib.Path, default="build/peers/node_modules", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.modules = options.modules.resolve()
    if not pathlib.Path(options.program).exists():
        parser.error(f"{options.program} is not built: tools/bench builds it")
    if options.rounds < 2:
        parser.error("--rounds: expected at least 2, for quartiles")
    options.sides = ["redblue"] + (PEERS if options.peers else PEERS[:1])
    return options


def main():
    options = parsed()
    left_out = {name: why for name in options.sides if (why := missing(name, options))}
    for name, why in left_out.items():
        # A test that is skipped says so in the form of GoogleTest. tools/test looks for it.
        print(f"{name}: Skipped\n{name}: {why}" if options.check else f"bench: {name} is left out: {why}", flush=True)
    options.sides = [name for name in options.sides if name not in left_out]
    if options.check:
        options.n, options.d, options.threads = [37], [24], [2]

    versions, chosen, failed = {}, collections.defaultdict(collections.Counter), False
    if not options.check:
        show(["problem", "mask", "n", "d", "threads", "ms", "of peak", "kernel, M", *options.sides[1:]], options)
    for case in itertools.starmap(Case, itertools.product(options.problem, options.mask, options.n, options.d,
                                                          options.threads)):
        needed = 12 * 4 * case.n**2  # ONNX Runtime keeps the most matrices of scores
        if needed > memory():
            say(f"{' '.join(map(str, case))} is left out: it needs {needed >> 30} GiB of free memory")
            continue
        try:
            with prepared(case, options) as sides:
                for side in sides:
                    versions[side.name] = side.version
                    all_rows = f"rows:{case.n}"
                    chosen[side.name]["all queries" if side.variant == all_rows else side.variant] += 1
                if not options.check:
                    show(measured(case, sides, options), options)
        except (Differs, LeftOut) as error:
            say(f"{' '.join(map(str, case))}: {error}")
            failed = True
    print("" if options.check else "\nThe fastest ways of the libraries, with the number of lines:")
    for name, variants in chosen.items():
        if options.check:
            print(f"{versions[name]}: the results of all variants are those of double precision")
        elif name != "redblue":
            ways = ", ".join(f"{way} ({count})" for way, count in variants.most_common())
            print(f"{versions[name]}: {ways}".replace("rows:", "blocks of "))
    return int(failed or not versions)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
