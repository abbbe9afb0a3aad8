"""Tests calls next to other threads, and interrupted calls."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy
import pytest

import redblue


def in_fresh_interpreter(code):
    """Runs the code in a new interpreter, which must succeed, and returns the last line that it prints."""
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-1]


INTERRUPTED = {
    "one thread": 'redblue.run("attention/rows", n=60000, d=64, M="16K")',
    "two threads": 'redblue.run("attention/rows", n=80000, d=64, M="16K", threads=2)',
    "phases without operands": 'redblue.run("backward/small", n=20000, d=64, M="256")',
    "attention": 'redblue.attention(A, A, A, M="16K")',
    "gradients": 'redblue.gradients(A, A, A, A, M="16K")',
    "arrays": 'redblue.run("attention/rows", Q=A, K=A, V=A, M="16K")',
    "a forward pass": 'redblue.run("gradients/flash", n=60000, d=64, M="16K")',
    "ranks": 'redblue.run("attention/rows", n=60000, d=64, M="16K", grid="2x1")',
    "a store": 'redblue.run("attention/rows", n=60000, d=64, M="16K", store="file:store")',
    "verification": 'redblue.run("attention/rows", n=16000, d=64, M="256K", verify=True)',
    "a sweep": 'redblue.sweep("suite.json", out="swept")',
    "a gate": 'redblue.record("suite.json")',
    "a search": 'redblue.pebble.solve("product", n=3, d=3, M=6, seconds=60)',
    "a trace": 'redblue.trace("attention/rows", n=60000, d=64, M="16K", din="/dev/null")',
}


@pytest.mark.parametrize("what", INTERRUPTED)
def test_interrupt_ends_a_call(what, tmp_path, monkeypatch):
    """A run of 20 s ends less than a second after Ctrl-C, with KeyboardInterrupt. Its memory is freed, the handler
    is Python's again, and calls still work."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.json").write_text(
        '{"points": [{"kernel": "attention/rows", "n": 60000, "d": 64, "M": [16384, 8192, 32768]}]}')
    seconds, left = in_fresh_interpreter(f"""
        import os, signal, threading, time
        import numpy, redblue
        A = numpy.ones((60000, 64), numpy.float32)
        redblue.run("attention/rows", n=64, d=8, M="1K", threads=2)
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        handler = signal.getsignal(signal.SIGINT)
        before = resident()
        def interrupt():
            time.sleep(2)
            global sent
            sent = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            {INTERRUPTED[what]}
            raise SystemExit("it was not interrupted")
        except KeyboardInterrupt:
            took = time.monotonic() - sent
        assert signal.getsignal(signal.SIGINT) is handler
        assert redblue.count("forward/flash", n=64, d=8, M=512).n == 64
        print(took, resident() - before)
    """).split()
    print(f"{what}: {float(seconds):.2f} s after the signal")
    assert float(seconds) < 1
    assert int(left) < (64 << 20) + (64 << 20)  # 64 MiB of memory may be kept for later calls
    left_on_disk = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert left_on_disk <= {"suite.json", "swept"}  # a sweep keeps its points


def test_the_environment_may_change_meanwhile():
    """Three threads call for 3 s while a fourth changes os.environ. The process survives, and each call has the
    counts of a call alone. `M="L1"` reads the machine by hwloc, which itself reads the environment."""
    calls = in_fresh_interpreter("""
        import os, threading, time
        import redblue
        words = redblue.count("forward/flash", n=64, d=8, M="L1").total.io
        over, wrong, calls = False, 0, 0
        def change():
            k = 0
            while not over:
                os.environ[f"CHANGED_{k % 5000}"] = "x" * (k % 900)
                if k % 7 == 0:
                    os.environ.pop(f"CHANGED_{k * 31 % 5000}", None)
                k += 1
        def call():
            global wrong, calls
            end = time.monotonic() + 3
            while time.monotonic() < end:
                wrong += redblue.count("forward/flash", n=64, d=8, M="L1").total.io != words
                calls += 1
        changing = threading.Thread(target=change)
        changing.start()
        calling = [threading.Thread(target=call) for _ in range(3)]
        for thread in calling:
            thread.start()
        for thread in calling:
            thread.join()
        over = True
        changing.join()
        assert wrong == 0
        print(calls)
    """)
    assert int(calls) > 3


def test_the_environment_may_change_when_a_call_chooses_M():
    """The first attention() without M reads the machine by hwloc, with Python's lock. A thread changes os.environ meanwhile."""
    assert in_fresh_interpreter("""
        import os, threading
        import numpy, redblue
        over = False
        def change():
            k = 0
            while not over:
                os.environ[f"CHANGED_{k % 5000}"] = "x" * (k % 900)
                k += 1
        changing = threading.Thread(target=change)
        changing.start()
        Q, K, V = numpy.random.default_rng(1).standard_normal((3, 20, 8), numpy.float32)
        same = redblue.attention(Q, K, V)[0].tobytes() == redblue.attention(Q, K, V)[0].tobytes()
        over = True
        changing.join()
        print(int(same))
    """).strip() == "1"


def test_handlers_of_python_are_called_meanwhile():
    """A handler that raises no exception is called while a kernel runs, and the kernel continues."""
    beats = []
    before = signal.signal(signal.SIGALRM, lambda *_: beats.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        ran = redblue.run("attention/rows", n=6000, d=64, M="16K")
        ended = time.monotonic()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ran.total.seconds < 0.1 or [beat for beat in beats if beat < ended]


def test_other_threads_keep_running():
    """While a kernel runs, a Python thread counts as before, because the interpreter lock is free."""
    ticks = []
    over = threading.Event()

    def tick():
        while not over.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    redblue.run("attention/rows", n=8000, d=64, M="16K")
    ended = time.monotonic()
    over.set()
    thread.join()
    meanwhile = [at for at in ticks if begun < at < ended]
    print(f"{len(meanwhile)} ticks in {ended - begun:.2f} s")
    assert len(meanwhile) > (ended - begun) / 0.005 / 10


def test_threads_call_at_the_same_time():
    """Calls from four threads have the counts, bits and errors of calls one after the other. One of the calls
    chooses other vector instructions."""
    given = {name: numpy.random.default_rng(k).standard_normal((200, 16), numpy.float32)
             for k, name in enumerate(("Q", "K", "V", "dO"))}

    def work(k):
        if k % 7 == 6:
            return redblue.run("gradients/auto", **given, M="2K", simd="SSE4").context.simd
        if k % 5 == 4:
            try:
                redblue.count("backward/small", n=8, d=8, M=3)
            except redblue.FastMemoryTooSmall as error:
                return str(error)
        if k % 2:
            return redblue.plan(problem="backward", n=100 + k, d=8, M="1K").to_dict()
        return redblue.run("gradients/auto", **given, M="2K", threads=1 + k % 3).dQ.tobytes()

    alone = [work(k) for k in range(20)]
    together = [None] * 20

    def some(first):
        for k in range(first, 20, 4):
            together[k] = work(k)

    threads = [threading.Thread(target=some, args=[k]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_calls_of_other_threads_are_not_interrupted():
    """Ctrl-C interrupts the main thread only: a call of another thread ends normally."""
    assert in_fresh_interpreter("""
        import os, signal, threading, time
        import redblue
        words = []
        def work():
            words.append(redblue.run("attention/rows", n=8000, d=64, M="16K").total.io)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        except KeyboardInterrupt:
            thread.join()
        print(words[0] == redblue.count("attention/rows", n=8000, d=64, M="16K").total.io)
    """) == "True"


def test_a_child_may_call():
    """A process that forks after a run on threads can run on threads, too."""
    assert in_fresh_interpreter("""
        import multiprocessing
        import redblue
        def words(n):
            return redblue.run("attention/rows", n=n, d=8, M="1K", threads=2).total.io
        here = words(100)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(words, [100, 100]) == [here, here])
    """) == "True"


def test_a_child_computes_on_threads():
    """A process that forks after redblue.attention on threads, too, and the bits are the same. With threads that only the
    parent has, a child would wait forever."""
    assert in_fresh_interpreter("""
        import os, signal
        import numpy, redblue
        A = numpy.random.default_rng(1).standard_normal((64, 16), numpy.float32)
        def bits():
            return [array.tobytes() for array in (*redblue.attention(A, A, A, threads=3), *redblue.gradients(A, A, A, A, threads=2),
                                                  redblue.run("attention/rows", Q=A, K=A, V=A, M="2K", threads=2).O)]
        here = bits()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if bits() == here else 1)
        print(os.waitpid(child, 0)[1])
    """) == "0"


def test_a_short_call_that_waits_is_interrupted():
    """A call with simd= runs alone. A short call that waits for its end listens to Ctrl-C meanwhile."""
    took = float(in_fresh_interpreter("""
        import os, signal, threading, time
        import numpy, redblue
        A = numpy.ones((16, 8), numpy.float32)
        redblue.attention(A, A, A)
        def alone():
            redblue.run("attention/rows", n=60000, d=64, M="16K", simd="SSE4")
        threading.Thread(target=alone, daemon=True).start()
        time.sleep(1)
        def interrupt():
            time.sleep(1)
            global sent
            sent = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            redblue.attention(A, A, A)
            raise SystemExit("it did not wait")
        except KeyboardInterrupt:
            print(time.monotonic() - sent, flush=True)
        os._exit(0)
    """))
    assert took < 1


def test_calls_a_second():
    """Counting costs little: hundreds of calls a second."""
    redblue.count("backward/small", n=1000, d=48, M=1024)
    begun, calls = time.monotonic(), 0
    while time.monotonic() < begun + 1:
        redblue.count("backward/small", n=1000, d=48, M=1024)
        calls += 1
    print(f"{calls} calls of count a second")
    assert calls > 5  # on any machine, under any load


def test_a_thread_that_ends_with_python():
    """If the interpreter ends during a daemon thread's call, or at its end, no message is printed."""
    for wait in (0.3, 0.3, 0.05, 0.01, 0):  # short calls end meanwhile, and ask for Python's lock
        ended = subprocess.run([sys.executable, "-c", textwrap.dedent(f"""
            import threading, time, redblue
            def work():
                while True:
                    redblue.run("attention/rows", n={4000 if wait == 0.3 else 100}, d=64, M="16K")
            threading.Thread(target=work, daemon=True).start()
            time.sleep({wait})
        """)], capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, "")
