"""A run for each mask, as one result, where masks differ by batch or head."""

import types

import numpy

from . import InputError, Result, UsageError, run
from .calls import _Call

_NOT_HERE = ("out", "store", "format")  # each run would write the same
_OF_THE_CALL = ("schema", "context", "problem", "asked", "kernel", "blocks", "objective", "given", "operands", "wanted", "n", "m",
                "d", "dv", "M", "threads", "activation", "softmax_scale", "seed")


def run_by_mask(kernel, keywords):
    """The result of redblue.run for a mask of more than two dimensions, which differs between heads."""
    if not kernel:
        raise UsageError("kernel is required")
    problem = kernel.partition("/")[0]
    if problem not in ("attention", "gradients"):
        raise InputError(f"mask differs between heads: {kernel} takes one for all; attention and gradients take one for each")
    for name in _NOT_HERE:
        if keywords.get(name) is not None:
            raise UsageError(f"{name} is not for a mask that differs between heads: results come back as arrays")
    given = {name: keywords[name] for name in ("Q", "K", "V", "dO", "O", "L") if keywords.get(name) is not None}
    for name in ("Q", "K", "V", "dO")[:4 if problem == "gradients" else 3]:
        if name not in given or isinstance(given[name], str):
            raise UsageError(f"{name} is no array: with a mask that differs between heads, give {name}=array")
    others = {name: value for name, value in keywords.items() if name not in (*given, "mask")}
    call = _Call(given["Q"], given["K"], given["V"], keywords["mask"], None, None, 1, None, "time")
    heads = {"Q": call.Q, "K": call.K, "V": call.V}
    n, dv = call.Q.shape[1], call.V.shape[2]
    for name in given.keys() - heads.keys():
        heads[name] = call.of_queries(name, given[name], (n,) if name == "L" else (n, dv))
    runs = []
    for queries, keys, pairs in call.parts():
        if problem == "gradients" and queries.stop - queries.start == 1 and call.heads != call.kv_heads:
            raise UsageError("mask differs between heads that share keys: dK and dV are then sums over runs; "
                             "redblue.gradients computes them")
        part = {name: array[keys if name in ("K", "V") else queries] for name, array in heads.items()}
        runs.append(run(kernel, **part, mask=pairs, **others))
    arrays = {}
    for name in runs[0].arrays:
        whole = numpy.concatenate([each.arrays[name] for each in runs])
        arrays[name] = whole.reshape(*(call.kv_lead if name in ("dK", "dV") else call.lead), *whole.shape[1:])
    document = _together([each.to_dict() for each in runs], heads=len(call.Q), kv_heads=len(call.K))
    result = Result(types.SimpleNamespace(data=document, table=_table(kernel, document, len(runs)), csv="",
                                          words=[line for each in runs for line in each.said],
                                          code=max(each.exit_code for each in runs)), arrays)
    result.by_mask = runs
    return result


def _together(documents, **heads):
    """What all documents say of the call, the sums of their counts, and the worst error."""
    first = documents[0]
    both = {name: first[name] for name in _OF_THE_CALL if name in first and all(each.get(name) == first[name] for each in documents)}
    both |= heads
    paths = dict.fromkeys(phase["path"] for each in documents for phase in each["phases"])
    both["total"] = _sum([each["total"] for each in documents])
    both["phases"] = [{"path": path} | _sum([phase for each in documents for phase in each["phases"] if phase["path"] == path])
                      for path in paths]
    if "error" in first:
        both["error"] = max((each["error"] for each in documents),
                            key=lambda error: (not error["ok"], error["value"] / (error["bound"] or 1)))
    return both


def _sum(counts):
    summed = {name for name in counts[0] if name == "seconds" or isinstance(counts[0][name], int)}
    return {name: (max if name in ("peak", "span") else sum)(each.get(name, 0) for each in counts)
            for name in counts[0] if name in summed}


def _table(kernel, document, masks):
    rows = [("phase", "reads", "writes", "peak")]
    for phase in (*document["phases"], {"path": "total"} | document["total"]):
        rows.append((phase["path"], *(f"{phase[name]:,}" for name in rows[0][1:])))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join([f"{row[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:]))]) for row in rows]
    sizes = " ".join(f"{name}={document[name]}" for name in ("n", "m", "d", "heads", "kv_heads", "M"))
    verified = [] if "error" not in document else ["", f"verified: {'yes' if document['error']['ok'] else 'NO'}"]
    return "\n".join([f"{kernel}: {sizes}, a run for each of {masks} masks   (all in words)", "", *lines, *verified])
