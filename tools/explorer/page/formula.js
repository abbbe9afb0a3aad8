// Turns the LaTeX of `redblue count --symbolic` into MathML, which browsers render.
"use strict";
redblue.rendered = (latex) => {
  const tokens = latex.match(/\\left\\lceil|\\right\\rceil|\\left\(|\\right\)|\\[a-zA-Z]+|\\[,;! ]|\d+|[^\s]/g) ?? [];
  const make = redblue.make_in("http://www.w3.org/1998/Math/MathML");
  let at = 0;
  function group() {  // what stands in braces, or one token
    if (tokens[at] !== "{") return atom();
    ++at;
    const inner = row("}");
    ++at;
    return inner;
  }
  const operators = {"\\cdot": "·", "\\approx": "≈", "\\le": "≤", "\\ge": "≥", "\\lfloor": "⌊",
    "\\rfloor": "⌋", "\\log": "log", "\\max": "max", "\\min": "min", "\\times": "×", "-": "−",
    "\\left\\lceil": "⌈", "\\right\\rceil": "⌉", "\\lceil": "⌈", "\\rceil": "⌉", "\\left(": "(",
    "\\right)": ")"};
  function atom() {
    const token = tokens[at++];
    if (token === "{") {
      --at;
      return group();
    }
    if (/^\\[tdc]?frac$/.test(token)) return make("mfrac", {}, group(), group());
    if (token === "\\sqrt") return make("msqrt", {}, group());
    if (/^\\(mathrm|mathit|text|operatorname)$/.test(token)) return make("mtext", {}, group().textContent);
    if (/^\\[,;! ]$/.test(token)) return make("mspace", {width: "0.17em"});
    if (/^\d+$/.test(token)) return make("mn", {}, token);
    if (token in operators) return make("mo", {}, operators[token]);
    if (token.startsWith("\\")) return make("mi", {}, token.slice(1));
    return make(/[a-zA-Z]/.test(token) ? "mi" : "mo", {}, token);
  }
  function row(end) {
    const all = make("mrow");
    while (at < tokens.length && tokens[at] !== end) {
      let one = group();
      while (tokens[at] === "_" || tokens[at] === "^") {
        one = make(tokens[at++] === "_" ? "msub" : "msup", {}, one, group());
      }
      all.append(one);
    }
    return all;
  }
  return make("math", {displaystyle: "true"}, row());
};
