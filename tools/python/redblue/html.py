"""What notebooks show in place of a representation: HTML with the colours of the notebook's own text."""

import html
import re
import sys

_CELL = "padding:0 0.8em;text-align:right"
_MOST_QUERIES = 48  # of the picture of a mask


def text(content):
    """A text as it is."""
    return f'<pre style="line-height:1.3">{html.escape(content)}</pre>'


def of_result(document, table):
    """A table with a bar for the words of each phase. None without phases: the notebook then shows the command's table."""
    phases, total = document.get("phases"), document.get("total")
    if not isinstance(total, dict) or not phases or not all(
            isinstance(phase, dict) and {"path", "reads", "writes", "peak"} <= phase.keys() for phase in phases):
        return None
    title = table.splitlines()[0] if table else ""
    most = max(phase["reads"] + phase["writes"] for phase in phases) or 1
    rows = [_row(phase["path"] or "(outside)", phase, most) for phase in phases] + [_row("total", total, 0)]
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("phase", "reads", "writes", "peak", ""))
    return f"<p>{html.escape(title)}</p><table><tr>{head}</tr>{''.join(rows)}</table>"


def _row(name, counts, most):
    cells = [html.escape(name), *(f"{counts[key]:,}" if key in counts else "-" for key in ("reads", "writes", "peak"))]
    bar = "" if most == 0 else "".join(
        f'<span title="{key}" style="display:inline-block;height:0.8em;width:{120 * counts[key] / most:.1f}px;'
        f'background:{colour}"></span>' for key, colour in (("reads", "#2b6cb0"), ("writes", "#c53030")))
    return ("<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
            + f'<td style="text-align:left;white-space:nowrap">{bar}</td></tr>')


def of_mask(mask):
    """A picture: dark where a query (down) meets a key (across)."""
    n = _MOST_QUERIES
    pairs = mask.pairs(n)
    runs = []
    for i, row in enumerate(pairs):
        j = 0
        while j < n:
            end = j + 1
            while end < n and row[end] == row[j]:
                end += 1
            if row[j]:
                runs.append(f'<rect x="{j}" y="{i}" width="{end - j}" height="1"/>')
            j = end
    return (f'<svg width="{4 * n}" height="{4 * n}" viewBox="0 0 {n} {n}" fill="#2b6cb0" shape-rendering="crispEdges">'
            f'<rect width="{n}" height="{n}" fill="#8883"/>{"".join(runs)}</svg>'
            f"<p>{html.escape(str(mask))}: {n} queries (down) and {n} keys (across)</p>")


class Bar:
    """Shows lines about the progress of a run: in a notebook as a bar, elsewhere on standard error as one line."""

    def __init__(self):
        self._shown = None
        self._width = 0

    def __call__(self, line):
        if not _is_notebook():
            print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(line)
            return
        from IPython.display import HTML, display

        share = re.search(r"([0-9]+)%", line)
        bar = f'<progress value="{share[1]}" max="100"></progress> ' if share else ""
        if self._shown is None:
            self._shown = display(HTML(bar + html.escape(line)), display_id=True)
        else:
            self._shown.update(HTML(bar + html.escape(line)))

    def close(self):
        """Removes what is shown."""
        if self._shown is not None:
            from IPython.display import HTML

            self._shown.update(HTML(""))
        elif self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)


def _is_notebook():
    python = sys.modules.get("IPython")
    return python is not None and hasattr(python.get_ipython(), "kernel")
