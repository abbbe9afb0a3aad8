"""Calls with the types that the stubs give them. test_package.py checks this file with mypy --strict."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import redblue

Floats = npt.NDArray[np.float32]


def words(M: int) -> int:
    counted = redblue.count("backward/small", n=1000, d=48, M=M)
    largest = max(counted.phases, key=lambda phase: phase.reads + phase.writes)
    return counted.total.io - largest.writes


def best(mask: redblue.Mask | str) -> str:
    plan = redblue.plan(problem="gradients", n="4K", d=64, M="64K", mask=mask)
    return plan.plan.kernel + ": " + ", ".join(other.kernel for other in plan.runners_up)


def attend(Q: Floats, K: Floats, V: Floats) -> tuple[Floats, Floats]:
    O, L = redblue.attention(Q, K, V, mask="causal", scale=0.125)
    dQ, _, _ = redblue.gradients(Q, K, V, O, O=O, L=L)
    return O, dQ


def intensity() -> float:
    return redblue.cost("attention", n=[100, 2000], d=64, heads=8, kv_heads=2, word=2).intensity


def transpose(A: Floats, B: Floats, side: int) -> redblue.Result:
    machine = redblue.Machine(2 * side * side)
    a_slow, b_slow = machine.matrix("A", A), machine.matrix("B", B, kind="operands")
    with machine.phase("transpose"):
        for I in redblue.blocks(A.shape[0], side):
            for J in redblue.blocks(A.shape[1], side):
                a = machine.read(a_slow[I, J])
                b = machine.new("b", a.shape[1], a.shape[0])
                b[...] = a.T
                machine.write(b, b_slow[J, I])
                del a, b
    return machine.report()


def text() -> str:
    return redblue.count("forward/small", n=8, d=4, M=99, format="csv")


def least(kernel: str) -> int | None:
    try:
        redblue.count(kernel, n=64, d=8, M=2)
    except redblue.FastMemoryTooSmall as error:
        return error.least_M
    return None
