"""Trains a small causal transformer twice from the same seed, with redblue.torch.attention and with PyTorch's own
operations, and compares the losses.

    python3 tools/python/examples/train.py                           # 200 steps
    python3 tools/python/examples/train.py --picture training.svg    # draws the losses, too
"""

import argparse

import torch
import torch.nn.functional as F

import redblue.torch

SYMBOLS, WORD, LENGTH = 32, 8, 64


class Layer(torch.nn.Module):
    def __init__(self, attention, width, heads):
        super().__init__()
        self.attention, self.heads = attention, heads
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.mix = torch.nn.Linear(width, width)
        self.wide = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)  # (batch, heads, n, d)
        x = x + self.mix(self.attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.wide(self.norms[1](x))


class Transformer(torch.nn.Module):
    """Predicts the next symbol at each place of a text."""

    def __init__(self, attention, layers=2, width=64, heads=4):
        super().__init__()
        self.symbol = torch.nn.Embedding(SYMBOLS, width)
        self.place = torch.nn.Embedding(LENGTH, width)
        self.layers = torch.nn.Sequential(*(Layer(attention, width, heads) for _ in range(layers)))
        self.next = torch.nn.Linear(width, SYMBOLS)

    def forward(self, text):
        return self.next(self.layers(self.symbol(text) + self.place.weight[:text.shape[1]]))


def plain(q, k, v, is_causal):
    """Attention in PyTorch's own operations."""
    s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if is_causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:]).tril().bool(), -torch.inf)
    return torch.softmax(s, -1) @ v


def losses(attention, steps, seed=1):
    """The loss of each step. A text is a random word again and again: after the first one, a symbol is known."""
    torch.manual_seed(seed)
    model = Transformer(attention)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        text = torch.randint(SYMBOLS, (16, WORD)).repeat(1, LENGTH // WORD + 1)[:, :LENGTH + 1]
        loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield loss.item()


def draw(ours, theirs, file):
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "redblue"  # the same file each time
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 5), height_ratios=(2, 1), layout="constrained")
    above.plot(theirs, color="#dd8452", linewidth=5, alpha=0.5, label="PyTorch's own operations")
    above.plot(ours, color="#2b6cb0", linewidth=1.2, label="redblue.torch.attention")
    above.set(ylabel="loss", ylim=(0, None))
    above.legend(frameon=False)
    below.plot([abs(one - other) for one, other in zip(ours, theirs)], color="#444444", linewidth=1)
    below.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    below.set(xlabel="step", ylabel="difference")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--picture", metavar="FILE")
    asked = parser.parse_args()
    ours, theirs = (list(losses(attention, asked.steps)) for attention in (redblue.torch.attention, plain))
    print(f"loss from {ours[0]:.2f} to {ours[-1]:.2f}, and by PyTorch's own operations to {theirs[-1]:.2f}; largest difference "
          f"{max(abs(one - other) for one, other in zip(ours, theirs)):.0e}")
    if asked.picture:
        draw(ours, theirs, asked.picture)


if __name__ == "__main__":
    main()
