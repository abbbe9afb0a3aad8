"""Prints the memory that one forward and backward pass of causal attention takes, with redblue.torch.attention and with
PyTorch's own operations. Each is measured in a process of its own: the largest resident memory, less the resident memory
when all operands are there.

    python3 tools/python/examples/peak_memory.py --heads 8 2048 4096 8192
"""

import argparse
import pathlib
import re
import subprocess
import sys

import torch
from train import plain

import redblue.torch

KINDS = {"redblue": redblue.torch.attention, "PyTorch": plain}
WIDTH = 64


def measured(kind, heads, n):
    """Bytes. For a process that does nothing else."""
    torch.manual_seed(1)
    q, k, v, do = torch.randn(4, 1, heads, n, WIDTH).unbind()
    for each in (q, k, v):
        each.requires_grad_()

    def step(rows):
        part = [each[:, :, :rows] for each in (q, k, v)]
        KINDS[kind](*part, is_causal=True).backward(do[:, :, :rows])

    step(16)  # loads code, and makes room for the gradients of q, k and v
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = status("VmRSS")
    step(n)
    return status("VmHWM") - before


def status(field):
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("n", type=int, nargs="+")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--only", choices=KINDS, help="print the bytes of one kind, for one n")
    asked = parser.parse_args()
    if asked.only:
        print(measured(asked.only, asked.heads, asked.n[0]))
        return
    print("| n |", " | ".join(KINDS), "| ratio |\n|---|---|---|---|")
    for n in asked.n:
        peaks = [int(subprocess.run([sys.executable, __file__, "--only", kind, "--heads", str(asked.heads), str(n)],
                                    capture_output=True, text=True, check=True).stdout) for kind in KINDS]
        print(f"| {n} |", " | ".join(f"{peak / 2**20:,.0f} MiB" for peak in peaks), f"| {peaks[1] / peaks[0]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
