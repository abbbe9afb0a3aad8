"""PyTorch's side of tools/bench --peers: computes one problem on request. peers.py describes the requests.

    torch_side.py INPUTS RESULTS PROBLEM N D MASK THREADS

Variants: `autograd` is what a user writes. `rows:R` makes the fewest products, in buffers that are used again, for R
queries at a time."""

import pathlib
import sys
import time

import numpy
import torch

inputs, results = map(pathlib.Path, sys.argv[1:3])
problem, mask = sys.argv[3], sys.argv[6]
n, d, threads = int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[7])
torch.set_num_threads(threads)
causal = mask == "causal"


def read(names):
    return [torch.from_numpy(numpy.fromfile(inputs / name, numpy.float32).reshape(-1, d)) for name in names.split()]


def by_autograd():
    upper = torch.ones(n, n, dtype=torch.bool).triu(1) if causal else None

    def softmax(s):
        return torch.softmax(s.masked_fill(upper, -torch.inf) if causal else s, -1)

    if problem == "g":
        A1, A2, A3, X, Y, dO = read("A1 A2 A3 X Y dO")
        X.requires_grad_()
        return lambda: {"g": torch.autograd.grad(softmax(A1 @ X @ A2.T) @ (A3 @ Y), X, dO)[0]}
    if problem == "gradients":
        Q, K, V, dO = read("Q K V dO")
        given = [each.requires_grad_() for each in (Q, K, V)]
        return lambda: dict(zip(("dQ", "dK", "dV"),
                                torch.autograd.grad(softmax(Q * d**-0.5 @ K.T) @ V, given, dO)))
    Q, K, V = read("Q K V")
    return lambda: {"O": softmax(Q * d**-0.5 @ K.T) @ V}


def by_rows(rows):
    blocks = [(first, min(first + rows, n)) for first in range(0, n, rows)]
    blocks = [(first, last, last if causal else n) for first, last in blocks]
    buffers = [torch.empty(min(rows, n) * n) for _ in range(1 if problem == "forward" else 2)]
    upper = torch.ones(rows, rows, dtype=torch.bool).triu(1) if causal else None

    def scores(buffer, first, last, keys):
        return buffer[:(last - first) * keys].view(last - first, keys)

    def softmax(left, right, first, last, keys):
        f = torch.mm(left[first:last], right[:keys].T, out=scores(buffers[0], first, last, keys))
        if causal:
            f[:, first:].masked_fill_(upper[:last - first, :last - first], -torch.inf)
        return torch.softmax(f, -1, out=f)

    def derivative(f, dO, values, first, last, keys):
        q = torch.mm(dO[first:last], values[:keys].T, out=scores(buffers[1], first, last, keys))
        return torch.ops.aten._softmax_backward_data.out(q, f, -1, torch.float32, grad_input=q)

    def forward(Q, K, V, O):
        Q = Q * d**-0.5
        for at in blocks:
            first, last, keys = at
            torch.mm(softmax(Q, K, *at), V[:keys], out=O[first:last])
        return {"O": O}

    def g(A1, A2, A3, X, Y, dO, W):
        S, h = A1 @ X, A3 @ Y
        for at in blocks:
            first, last, keys = at
            torch.mm(derivative(softmax(S, A2, *at), dO, h, *at), A2[:keys], out=W[first:last])
        return {"g": A1.T @ W}

    def gradients(Q, K, V, dO, dQ):
        dK, dV = torch.zeros(n, d), torch.zeros(n, d)
        Q = Q * d**-0.5
        for at in blocks:
            first, last, keys = at
            f = softmax(Q, K, *at)
            dV[:keys].addmm_(f.T, dO[first:last])
            p = derivative(f, dO, V, *at)
            torch.mm(p, K[:keys], out=dQ[first:last])
            dK[:keys].addmm_(p.T, Q[first:last])
        return {"dQ": dQ.mul_(d**-0.5), "dK": dK, "dV": dV}

    work, names = {"forward": (forward, "Q K V"), "g": (g, "A1 A2 A3 X Y dO"),
                   "gradients": (gradients, "Q K V dO")}[problem]
    operands = [*read(names), torch.empty(n, d)]

    def run():
        with torch.no_grad():
            return work(*operands)

    return run


run, made = None, {}


def answer(word, variant):
    global run, made
    if word == "use":
        run, made = None, {}
        run = by_autograd() if variant == "autograd" else by_rows(int(variant.partition(":")[2]))
    elif word == "run":
        start = time.perf_counter()
        made = run()
        return f"{1e3 * (time.perf_counter() - start):.4f}"
    else:
        for name, words in made.items():
            words.numpy().tofile(results / name)
    return "ok"


print("PyTorch", torch.__version__, flush=True)
for line in sys.stdin:
    word, _, variant = line.strip().partition(" ")
    try:
        print(answer(word, variant), flush=True)
    except RuntimeError as error:
        print("failed:", str(error).splitlines()[0], flush=True)
