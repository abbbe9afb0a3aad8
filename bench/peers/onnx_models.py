"""Models of the problems of tools/bench --peers, for ONNX Runtime.

Variants: `MultiHeadAttention` and `GroupQueryAttention` are ONNX Runtime's own operators, for the forward pass.
`rows:R` is a graph of products and softmax with the fewest products, for R queries at a time."""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUTS = {"forward": "Q K V", "g": "A1 A2 A3 X Y dO", "gradients": "Q K V dO"}


class Graph:
    """Nodes and constants. A method returns the name of its result."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, values, dtype=numpy.int64):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(values, dtype), name))
        return name

    def node(self, kind, *operands, outputs=1, **attributes):
        names = [f"x{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, operands, names, **attributes))
        return names[0]

    def product(self, a, b):
        return self.node("MatMul", a, b)

    def transposed(self, a):
        return self.node("Transpose", a, perm=[1, 0])

    def times(self, a, factor):
        return self.node("Mul", a, self.constant(factor, numpy.float32))

    def rows(self, a, first, last):
        return self.node("Slice", a, self.constant([first]), self.constant([last]), self.constant([0]))

    def stacked(self, parts):
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)


def operator(graph, kind, n, causal):
    """One head of width d, by an operator of ONNX Runtime."""
    at = graph.constant([0])
    operands = [graph.node("Unsqueeze", name, at) for name in "QKV"]
    if kind == "GroupQueryAttention":  # always causal
        operands += ["", "", graph.constant([n - 1], numpy.int32), graph.constant(n, numpy.int32)]
        options = {"num_heads": 1, "kv_num_heads": 1, "outputs": 3}
    else:
        options = {"num_heads": 1, "unidirectional": int(causal)}
    return {"O": graph.node("Squeeze", graph.node(kind, *operands, domain="com.microsoft", **options), at)}


def by_rows(graph, problem, n, d, causal, rows):
    blocks = [(first, min(first + rows, n)) for first in range(0, n, rows)]
    single = len(blocks) == 1

    def cut(name, first, last):
        return name if single else graph.rows(name, first, last)

    if problem == "g":
        queries, keys_of, values_of = graph.product("A1", "X"), "A2", graph.product("A3", "Y")
    else:
        queries, keys_of, values_of = graph.times("Q", d**-0.5), "K", "V"
    tops, dK, dV, before = [], None, None, 0

    def added(sums, more):  # `sums` has as many rows as the keys of the block before
        if sums is None:
            return more
        if before == last_key:
            return graph.node("Add", sums, more)
        both = graph.node("Add", sums, graph.rows(more, 0, before))
        return graph.stacked([both, graph.rows(more, before, last_key)])

    for first, last in blocks:
        last_key = last if causal else n
        keys = cut(keys_of, 0, last_key) if last_key < n else keys_of
        values = cut(values_of, 0, last_key) if last_key < n else values_of
        some = cut(queries, first, last)
        s = graph.product(some, graph.transposed(keys))
        if causal:
            # ONNX Runtime computes the mask once, when it loads the model.
            row = graph.constant(numpy.arange(first, last).reshape(-1, 1), numpy.float32)
            col = graph.constant(numpy.arange(last_key).reshape(1, -1), numpy.float32)
            dead = graph.node("Greater", col, row)
            zero = graph.constant(0, numpy.float32)
            s = graph.node("Add", s, graph.node("Where", dead, graph.constant(-numpy.inf, numpy.float32), zero))
        f = graph.node("Softmax", s, axis=-1)
        if problem == "forward":
            tops.append(graph.product(f, values))
            continue
        dO = cut("dO", first, last)
        q = graph.product(dO, graph.transposed(values))
        v = graph.node("ReduceSum", graph.node("Mul", f, q), graph.constant([1]), keepdims=1)
        p = graph.node("Mul", f, graph.node("Sub", q, v))
        tops.append(graph.product(p, keys))
        if problem == "gradients":
            dK = added(dK, graph.product(graph.transposed(p), some))
            dV = added(dV, graph.product(graph.transposed(f), dO))
        before = last_key
    top = graph.stacked(tops)
    if problem == "forward":
        return {"O": top}
    if problem == "g":
        return {"g": graph.product(graph.transposed("A1"), top)}
    return {"dQ": graph.times(top, d**-0.5), "dK": dK, "dV": dV}


def write_model(file, problem, mask, n, d, variant):
    graph = Graph()
    kind, _, rows = variant.partition(":")
    made = (by_rows(graph, problem, n, d, mask == "causal", int(rows)) if kind == "rows" else
            operator(graph, kind, n, mask == "causal"))
    for name, of in made.items():
        graph.nodes.append(helper.make_node("Identity", [of], [name]))

    def declared(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [d if name in "X Y g" else n, d])

    onnx.save(helper.make_model(
        helper.make_graph(graph.nodes, problem, [declared(name) for name in INPUTS[problem].split()],
                          [declared(name) for name in made], graph.constants),
        opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)], ir_version=7), file)
