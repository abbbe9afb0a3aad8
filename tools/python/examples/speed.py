"""Times one forward and backward pass of attention with redblue.torch.attention and with PyTorch's own operations. Their
runs take turns. The ratio is the median of PyTorch divided by that of redblue.

    python3 tools/python/examples/speed.py 1024 4096
"""

import argparse
import statistics
import time

import torch

import redblue.torch

WIDTH = 64
MASKS = ["full", "causal", "window:256,0"]


def sides(n, mask):
    """Functions of q, k and v: redblue, and PyTorch's own operations."""
    of = None if mask == "full" else mask
    dead = None if mask == "full" else ~torch.from_numpy(redblue.Mask(mask).pairs(n))

    def plain(q, k, v):
        s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return torch.softmax(s if dead is None else s.masked_fill(dead, -torch.inf), -1) @ v

    return [lambda q, k, v: redblue.torch.attention(q, k, v, of), plain]


def milliseconds(attention, operands, do):
    for each in operands:
        each.grad = None  # the next one is not added to it
    begin = time.perf_counter()
    attention(*operands).backward(do)
    return 1000 * (time.perf_counter() - begin)


def medians(n, mask, heads, rounds):
    """The medians of redblue and of PyTorch, in milliseconds."""
    torch.manual_seed(1)
    *operands, do = torch.randn(4, 1, heads, n, WIDTH).unbind()
    for each in operands:
        each.requires_grad_()
    both = sides(n, mask)
    times = [[milliseconds(side, operands, do) for side in both] for _ in range(rounds + 1)]
    return map(statistics.median, zip(*times[1:]))  # without the first run, which allocates memory


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("n", type=int, nargs="+", help="queries, and as many keys")
    parser.add_argument("--heads", type=int, default=8, help="default: 8")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--rounds", type=int, default=9, help="timed runs of each (default: 9)")
    asked = parser.parse_args()
    print("| n | mask | threads | redblue | PyTorch | ratio |\n|---|---|---|---|---|---|")
    for n in asked.n:
        for mask in MASKS:
            for threads in asked.threads:
                torch.set_num_threads(threads)
                ours, theirs = medians(n, mask, asked.heads, asked.rounds)
                print(f"| {n} | {mask} | {threads} | {ours:,.1f} ms | {theirs:,.1f} ms | {theirs / ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
