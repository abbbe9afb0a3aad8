// The teaching view of the explorer. teaching.start(container) fills a container with an animation
// of a small attention run and with the 2 x 2 pebble game. It needs no other file than teaching.css.
// Its counts come from interpreting the nest that it shows, and its optimum from a search here.
(() => {
"use strict";

// ---- Nests: a parser and an interpreter of docs/nests.md, without masks and `each` ----

// Compiles a size, or a comparison of two sizes, to a function of the values of its names.
function compile(text) {
  const tokens = text.match(/\d+|[A-Za-z_][\w.]*|[<>=!]=|[-+*/(),<>]/g) ?? [];
  let at = 0;
  const take = (token) => tokens[at] === token && ++at;
  const functions = {min: Math.min, max: Math.max, ceil: true, if: (test, yes, no) => (test ? yes : no)};
  const operators = {
    "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => Math.floor(a / b),
    "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
    "==": (a, b) => a === b, "!=": (a, b) => a !== b,
  };
  const levels = [["<", "<=", ">", ">=", "==", "!="], ["+", "-"], ["*", "/"]];
  function operand() {
    const token = tokens[at++];
    if (token === "(") {
      const inner = binary(0);
      if (!take(")")) throw new Error(`a bracket is open in "${text}"`);
      return inner;
    }
    if (/^\d/.test(token)) return () => Number(token);
    if (functions[token] && take("(")) {
      const list = [binary(0)];
      while (take(",")) list.push(binary(0));
      if (!take(")")) throw new Error(`a bracket is open in "${text}"`);
      if (token === "ceil") {  // ceil(a / b) rounds the quotient up
        const [a, b] = list[0].quotient;
        return (names) => Math.ceil(a(names) / b(names));
      }
      return (names) => functions[token](...list.map((value) => value(names)));
    }
    return (names) => {
      if (!(token in names)) throw new Error(`"${token ?? text}" is no size`);
      return names[token];
    };
  }
  function binary(level) {
    if (level === levels.length) return operand();
    let left = binary(level + 1);
    while (levels[level].includes(tokens[at])) {
      const symbol = tokens[at++], operator = operators[symbol], a = left, b = binary(level + 1);
      left = (names) => operator(a(names), b(names));
      if (symbol === "/") left.quotient = [a, b];
    }
    return left;
  }
  const result = binary(0);
  if (at < tokens.length) throw new Error(`"${text}" is no size`);
  return result;
}

function parse_tiles(text) {
  return [...text.matchAll(/([A-Za-z_][\w.]*)\[([^\]]*)\](?: sum)?(?:\s+as\s+([\w.]+))?/g)].map(
    ([, name, inside, other]) => ({
      name, other,
      indices: inside.split(/,(?![^(]*\))/).map((index) => ({text: index.trim(), size: compile(index)})),
    }));
}

function parse(source) {
  const nest = {matrices: {}, blocks: [], body: [], lines: source.split("\n")};
  const open = [{indent: -1, body: nest.body}];
  nest.lines.forEach((whole, line) => {
    const text = whole.replace(/#.*/, "").trimEnd(), indent = text.search(/\S/);
    if (indent < 0) return;
    const [word] = text.trim().split(/\s/), rest = text.trim().slice(word.length).trim();
    const fail = (why) => { throw new Error(`line ${line + 1}: ${why}`); };
    while (open.at(-1).indent >= indent) open.pop();
    const statement = {kind: word, line};
    try {
      if (["kernel", "problem", "two-step", "once", "takes"].includes(word)) return;
      if (word === "matrix" || word === "temp") {
        rest.split("->").forEach((part, k) => parse_tiles(part).forEach(({name, indices}) => {
          nest.matrices[name] = {extents: indices.map((index) => index.size), input: word === "matrix" && !k};
        }));
        return;
      }
      if (word === "block") {
        const [, name, extent, size] = rest.match(/^(\S+) of (\S+)(?: = (.*))?$/) ?? fail("a block is unclear");
        nest.blocks.push({name, extent, size: compile(size ?? fail(`block ${name} has no size`))});
        return;
      }
      if (word === "for") {
        const [, variable, range, from, by] =
          rest.match(/^(\S+) in (\S+?)(?: from (.+?))? by (.+?)(?: met by \S+)?(?: whole)?$/)
          ?? fail("a loop is unclear");
        Object.assign(statement, {variable, range, from: compile(from ?? "0"), by: compile(by), body: []});
      } else if (word === "phase" || word === "when" || word === "otherwise") {
        Object.assign(statement, {name: rest, test: word === "when" && compile(rest), body: []});
      } else if (["read", "new", "write"].includes(word)) {
        const condition = rest.match(/\s(?:unless\s+)?(?:first|last)\s+\w+(?:\s+and\s.*)?$/)?.[0] ?? "";
        statement.conditions = condition.trim().split(/\s+and\s+/).filter(Boolean)
          .map((one) => one.split(/\s+/).reverse());
        statement.tiles = parse_tiles(rest.slice(0, rest.length - condition.length));
      } else if (word === "drop") {
        statement.names = rest.split(/\s+/);
      } else if (word === "do") {
        statement.text = rest.replace(/^"|"$/g, "");
      } else if (word !== "flops" && word !== "index") {
        fail(`"${word}" is no statement`);
      }
    } catch (error) {
      throw error.message.startsWith("line") ? error : new Error(`line ${line + 1}: ${error.message}`);
    }
    open.at(-1).body.push(statement);
    if (statement.body) open.push({indent, body: statement.body});
  });
  return nest;
}

// Runs a nest with the values of its extents. Returns the words of each phase, the peak, and with
// `record` the steps of the animation. A step lists the words that enter and leave fast memory.
function run(nest, sizes, record = false) {
  const names = {...sizes, masked: 0, softmax: 1}, ranges = {}, passes = {};
  const phases = new Map(), steps = [], slots = [];
  let alive = [], live = 0, peak = 0, current = "";
  for (const {name, extent, size} of nest.blocks) names[name] = Math.min(size(names), names[extent]);
  for (const extent of ["n", "m", "d", "dv"]) ranges[extent] = [0, names[extent]];

  const tally = () => {
    if (!phases.has(current)) phases.set(current, {reads: 0, writes: 0});
    return phases.get(current);
  };
  const step = (line, text, more = {}) => record && steps.push({line, text, phase: current, live, peak, ...more});
  const place = ({text, size}) => ranges[text] ?? [0, size(names)];
  const words_of = (rows) => rows.reduce((product, [begin, end]) => product * (end - begin), 1);
  const cells = (matrix, [[top, bottom], [left, right] = [0, 1]]) => {
    const list = [];
    for (let row = top; row < bottom; ++row) for (let col = left; col < right; ++col) list.push({matrix, row, col});
    return list;
  };
  const enter = (name, matrix, rows) => {
    const tile = {name, words: words_of(rows), cells: [], slots: []};
    if (record) {
      tile.cells = cells(matrix, rows);
      for (const cell of tile.cells) {
        let slot = slots.findIndex((other) => !other);
        if (slot < 0) slot = slots.length;
        slots[slot] = cell;
        tile.slots.push(slot);
      }
    }
    alive.push(tile);
    live += tile.words;
    return tile;
  };
  const free = (gone) => {
    alive = alive.filter((tile) => !gone.includes(tile));
    for (const tile of gone) {
      live -= tile.words;
      for (const slot of tile.slots) slots[slot] = null;
    }
    return {leave: gone.flatMap((tile) => tile.slots)};
  };
  const holds = ([variable, which, unless]) => passes[variable][which] !== (unless === "unless");

  function move(statement) {
    if (!statement.conditions.every(holds)) return;
    const enters = [], moved = [];
    let words = 0;
    for (const {name, other, indices} of statement.tiles) {
      const rows = indices.map(place), size = words_of(rows), cut = passes[indices[1]?.text];
      words += size;
      if (statement.kind === "write") {
        const tile = alive.findLast((one) => one.name === name), target = other ?? name;
        if (!tile) throw new Error(`line ${statement.line + 1}: ${name} is not in fast memory`);
        if (!nest.matrices[target]) throw new Error(`line ${statement.line + 1}: ${target} is no matrix`);
        moved.push({name: target, rows, cut, slots: tile.slots, cells: record ? cells(target, rows) : []});
      } else {
        if (statement.kind === "read" && !nest.matrices[name]) {
          throw new Error(`line ${statement.line + 1}: ${name} is no matrix`);
        }
        const tile = enter(other ?? name, name, rows);
        enters.push(tile);
        moved.push({name, rows, cut, slots: tile.slots, cells: tile.cells});
      }
    }
    peak = Math.max(peak, live);
    if (statement.kind !== "new") tally()[`${statement.kind}s`] += words;
    step(statement.line, sentence(statement.kind, moved, words), {kind: statement.kind, words, moved, enters});
  }

  function loop(statement) {
    const {variable, range, line} = statement, [first, end] = ranges[range];
    const begin = Math.min(first + statement.from(names), end), by = statement.by(names);
    if (!(by > 0)) throw new Error(`line ${line + 1}: the step of a loop is 0`);
    const count = Math.ceil((end - begin) / by), outside = alive.slice();
    for (let pass = 0; pass < count; ++pass) {
      ranges[variable] = [begin + pass * by, Math.min(begin + (pass + 1) * by, end)];
      names[variable] = ranges[variable][1] - ranges[variable][0];
      passes[variable] = {first: pass === 0, last: pass === count - 1};
      const block = span(ranges[variable], {n: "query", m: "key"}[range]);
      step(line, `Pass ${pass + 1} of ${count}: ${variable} is ${block}.`);
      walk(statement.body);
      const gone = alive.filter((tile) => !outside.includes(tile));
      const left = free(gone);
      if (gone.length) {
        step(line, `This pass ends: ${listed([...new Set(gone.map((tile) => tile.name))])} ` +
             `${gone.length > 1 ? "leave" : "leaves"} fast memory. This moves no words.`, left);
      }
    }
    delete ranges[variable];
  }

  function walk(list) {
    let spared = false;
    for (const statement of list) {
      const {kind, line} = statement;
      if (kind === "for") {
        loop(statement);
      } else if (kind === "phase") {
        const outer = current;
        current = outer ? `${outer}/${statement.name}` : statement.name;
        walk(statement.body);
        current = outer;
      } else if (kind === "when" || kind === "otherwise") {
        if (kind === "when" ? !(spared = !statement.test(names)) : spared) walk(statement.body);
      } else if (kind === "do") {
        step(line, `Compute: ${statement.text}. This moves no words.`, {kind});
      } else if (kind === "drop") {
        const left = free(alive.filter((tile) => statement.names.includes(tile.name)));
        step(line, `Drop ${listed(statement.names)}. This moves no words.`, left);
      } else if (kind !== "flops" && kind !== "index") {
        move(statement);
      }
    }
  }
  walk(nest.body);
  const total = {reads: 0, writes: 0};
  for (const {reads, writes} of phases.values()) {
    total.reads += reads;
    total.writes += writes;
  }
  return {phases, total, words: total.reads + total.writes, peak, steps};
}

const listed = (list) => list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`;
const counted = (words) => `${words} ${words === 1 ? "word" : "words"}`;
const span = ([begin, end], unit = "row") =>
  end - begin === 1 ? `${unit} ${end}` : `${unit === "query" ? "queries" : `${unit}s`} ${begin + 1} to ${end}`;
function sentence(kind, moved, words) {
  const columns = ({rows, cut}) => cut ? `, ${span(rows[1], "column")},` : "";
  const tiles = listed(moved.map((part) => `${span(part.rows[0])}${columns(part)} of ${part.name}`));
  return kind === "new" ? `Make room in fast memory for ${tiles}: ${counted(words)}. This moves no words.`
    : kind === "read" ? `Read ${tiles}: ${counted(words)} from slow memory.`
    : `Write ${tiles}: ${counted(words)} to slow memory.`;
}

// ---- The schedules of the animation: n = m = 8 rows of d = 2 ----

const sizes = {n: 8, m: 8, d: 2, dv: 2};
const head = `problem attention
matrix Q[n,d] K[m,d] V[m,d] -> O[n,d]
block Br of n = BR
block Bc of m = BC
`;
const schedules = [{
  name: "Queries stay",
  about: "A block of queries stays in fast memory with its results. All keys and values stream past it, " +
    "once for each block. FlashAttention-2 works like this.",
  text: `kernel queries-stay
${head}
for I in n by Br
  phase load
    read Q[I,d]
    new O[I,d]
    new stats[I,2]   # maximum, sum
  phase stream
    for J in m by Bc
      read K[J,d] V[J,d]
      new s[I,J]
      do "s = Q K^T, O += exp(s) V"
  phase store
    write O[I,d]`,
}, {
  name: "Keys stay",
  about: "A block of keys and values stays. All queries stream past it, once for each block, and their " +
    "unfinished results go to slow memory and come back. The first FlashAttention works like this.",
  text: `kernel keys-stay
${head}temp stats[n,2]      # maximum, sum

for J in m by Bc
  phase load
    read K[J,d] V[J,d]
  phase stream
    for I in n by Br
      read Q[I,d]
      new s[I,J]
      new O[I,d] stats[I,2] first J
      read O[I,d] stats[I,2] unless first J
      do "s = Q K^T, O += exp(s) V"
      write stats[I,2] unless last J
      write O[I,d]`,
}, {
  name: "Scores go out",
  about: "Three steps, as in a textbook: scores, softmax, values. All scores go to slow memory after the first " +
    "step. The other steps read them again.",
  text: `kernel scores-go-out
${head}temp s[n,m]

phase scores
  for I in n by Br
    read Q[I,d]
    for J in m by Bc
      read K[J,d]
      new s[I,J]
      do "s = Q K^T"
      write s[I,J]
phase softmax
  for R in n by 1
    read s[R,m]
    new stats[R,2]   # maximum, sum
    do "s = softmax of s"
    write s[R,m]
phase values
  for G in n by Br
    new O[G,d]
    for H in m by Bc
      read s[G,H] V[H,d]
      do "O += s V"
    write O[G,d]`,
}];
const nest_text = (schedule, Br, Bc) => schedule.text.replace("BR", Br).replace("BC", Bc);

function best_blocks(schedule, M) {
  const blocks = (most) => Array.from({length: most}, (_, k) => k + 1);
  schedule.runs ??= blocks(sizes.n).flatMap((Br) =>
    blocks(sizes.m).map((Bc) => ({Br, Bc, ...run(parse(nest_text(schedule, Br, Bc)), sizes)})));
  return schedule.runs.filter(({peak}) => peak <= M).sort((a, b) => a.words - b.words || a.peak - b.peak)[0];
}

// ---- Elements of a page ----

const {make} = redblue;
const button = (text, label, onclick, more = {}) =>
  make("button", {type: "button", "aria-label": label !== text && label, onclick, ...more}, text);
let last_id = 0;
function slider(label, min, max, value, oninput, unit = () => "") {
  const id = `teaching-${++last_id}`, output = make("output", {for: id});
  const input = make("input", {id, type: "range", min, max, value});
  const show = () => {
    output.textContent = `${input.value}${unit(Number(input.value))}`;
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => { show(); oninput(); });
  show();
  return {
    element: make("div", {class: "slider"}, make("label", {for: id}, label), input, output),
    get value() { return Number(input.value); },
    set value(number) { input.value = number; show(); },
    set max(number) { input.max = number; show(); },
  };
}
const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
function table(caption, columns, rows) {
  return make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", {scope: "col"}, name)))),
    make("tbody", {}, ...rows.map(([first, ...others]) =>
      make("tr", {}, make("th", {scope: "row"}, first), ...others.map((cell) => make("td", {}, cell))))));
}

// ---- The animation ----

function machine_view(container) {
  let chosen = schedules[0], ran = null, at = 0, timer = null;
  let slow_cells = new Map(), fast_cells = [], line_items = [], inputs = new Set();

  const choices = make("fieldset", {class: "choices"}, make("legend", {}, "Schedule"),
    ...schedules.map((schedule, k) => make("label", {}, make("input", {
      type: "radio", name: "teaching-schedule", value: k, checked: !k,
      onchange: () => { chosen = schedule; change(); },
    }), schedule.name)));
  const M = slider("Fast memory M", 10, 64, 24, () => change(), () => " words");
  const Br = slider("Block of queries Br", 1, sizes.n, 2, () => change(), (rows) => rows === 1 ? " row" : " rows");
  const Bc = slider("Block of keys Bc", 1, sizes.m, 2, () => change(), (rows) => rows === 1 ? " row" : " rows");
  const speed = slider("Speed", 1, 20, 3, () => {}, (steps) => steps === 1 ? " step a second" : " steps a second");
  const place = slider("Step", 0, 1, 0, () => { pause(); show(place.value); }, () => ` of ${ran?.steps.length ?? 0}`);
  const about = make("p", {class: "about"}), refusal = make("p", {class: "refusal", role: "alert"});
  const now = make("p", {class: "now", role: "status"});
  const nest = make("ol", {class: "nest", tabindex: 0, "aria-label": "The loop nest. Left and right arrow keys step."});
  const slow = make("div", {class: "slow"}), fast = make("div", {class: "fast", role: "img"});
  const full = make("p", {class: "full"}), counters = make("div", {class: "counters"});
  const compared = make("div", {class: "compared"});
  const play = button("Play", "Play", () => (timer ? pause() : start()), {class: "play"});
  const transport = make("div", {class: "transport", role: "group", "aria-label": "Steps"},
    button("First", "First step", () => jump(0)), button("Back", "Back one step", () => jump(at - 1)), play,
    button("Next", "Next step", () => jump(at + 1)), button("Last", "Last step", () => jump(Infinity)));
  const stage = make("div", {class: "stage"},
    make("div", {class: "program"}, make("h3", {}, "The loop nest"), nest),
    make("div", {class: "machine"},
      make("h3", {}, "Slow memory"), slow,
      make("p", {class: "keys"}, "Framed words are in fast memory now. Slow memory does not have dashed words yet. st: for each query, the maximum and the sum of its exponentials (stats)."),
      make("h3", {}, "Fast memory"), full, fast));
  const controls = [M, Br, Bc].map((one) => one.element);
  container.append(
    make("h2", {}, "Watch the machine"),
    make("p", {}, "This is attention for 8 queries and 8 keys of width 2. Arithmetic happens only in fast memory, " +
      "which holds M words. Each word that moves between the two memories costs 1. Press Play, and then try to move " +
      "fewer words."),
    choices, about, make("div", {class: "sliders"}, ...controls), refusal,
    make("div", {class: "deck"}, transport, now), stage,
    make("div", {class: "sliders"}, place.element, speed.element), make("div", {class: "tables"}, counters, compared));
  stage.addEventListener("keydown", (event) => {
    const target = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: Infinity}[event.key];
    if (target === undefined) return;
    event.preventDefault();
    jump(target);
  });

  function change() {
    pause();
    at = 0;
    about.textContent = chosen.about;
    const parsed = parse(nest_text(chosen, Br.value, Bc.value));
    ran = run(parsed, sizes, true);
    const fits = ran.peak <= M.value;
    refusal.textContent = fits ? "" : `Br = ${Br.value} and Bc = ${Bc.value} need ${ran.peak} words of fast memory, ` +
      `and M is ${M.value}: choose smaller blocks or a larger M.`;
    for (const control of transport.children) control.disabled = !fits;
    if (!fits) ran = {...ran, steps: [], phases: new Map([...ran.phases.keys()].map((name) => [name, null]))};
    line_items = parsed.lines.map((line) =>
      make("li", {}, make("code", {}, line || " "), make("span", {class: "words"})));
    nest.replaceChildren(...line_items);
    lay_out_slow(parsed);
    fast_cells = Array.from({length: M.value}, () => make("span", {class: "cell"}));
    fast.replaceChildren(...fast_cells);
    place.max = ran.steps.length;
    compare();
    show(0);
  }

  function lay_out_slow(parsed) {
    slow_cells = new Map();
    inputs = new Set(Object.keys(parsed.matrices).filter((name) => parsed.matrices[name].input));
    slow.replaceChildren(...Object.entries(parsed.matrices).map(([name, {extents}]) => {
      const [rows, cols] = extents.map((extent) => extent(sizes));
      const grid = make("div", {class: "grid", style: `grid-template-columns: repeat(${cols}, 1fr)`});
      for (let row = 0; row < rows; ++row) {
        for (let col = 0; col < cols; ++col) {
          const cell = make("span");
          slow_cells.set(`${name} ${row} ${col}`, cell);
          grid.append(cell);
        }
      }
      return make("figure", {}, make("figcaption", {}, name), grid);
    }));
  }

  const slow_cell = ({matrix, row, col}) => slow_cells.get(`${matrix} ${row} ${col}`);

  // Shows the machine after the first `count` steps. The state is replayed, so going back is exact.
  function show(count, with_flight = false) {
    at = Math.min(Math.max(count, 0), ran.steps.length);
    const held = [], filled = new Set(), lines = new Map();
    const tally = new Map([...ran.phases.keys()].map((name) => [name, {reads: 0, writes: 0}]));
    for (const {line, phase, kind, words, moved, enters = [], leave = []} of ran.steps.slice(0, at)) {
      for (const tile of enters) tile.slots.forEach((slot, k) => { held[slot] = tile.cells[k]; });
      for (const slot of leave) held[slot] = null;
      if (kind !== "read" && kind !== "write") continue;
      tally.get(phase)[`${kind}s`] += words;
      lines.set(line, (lines.get(line) ?? 0) + words);
      if (kind === "write") moved.forEach((part) => part.cells.forEach((cell) => filled.add(slow_cell(cell))));
    }
    const step = ran.steps[at - 1], parts = step?.moved ?? [];
    const touched = new Set(parts.flatMap((part) => part.slots));
    const copied = new Set(held.filter(Boolean).map(slow_cell));
    const moving = new Set(step?.kind === "new" ? [] : parts.flatMap((part) => part.cells.map(slow_cell)));
    for (const [key, cell] of slow_cells) {
      const [name] = key.split(" "), there = inputs.has(name) || filled.has(cell);
      cell.className = ["cell", `of-${name}`, !there && "empty", copied.has(cell) && "copied",
        moving.has(cell) && "moving"].filter(Boolean).join(" ");
    }
    fast_cells.forEach((cell, slot) => {
      const word = held[slot];
      cell.className = word ? `cell of-${word.matrix}` : "cell empty";
      cell.classList.toggle("moving", touched.has(slot));
      cell.textContent = word ? `${word.matrix === "stats" ? "st" : word.matrix}${word.row + 1}${word.col + 1}` : "";
    });
    line_items.forEach((item, line) => {
      if (step?.line === line) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
      item.lastChild.textContent = lines.has(line) ? `${lines.get(line)}` : "";
    });
    const live = step?.live ?? 0;
    full.textContent = `${live} of ${M.value} words in use, at most ${step?.peak ?? 0} so far.`;
    fast.setAttribute("aria-label", `Fast memory: ${full.textContent}`);
    now.textContent = step ? step.text : ran.steps.length ? "All words are in slow memory." : "";
    place.value = at;
    count_up(tally);
    if (with_flight && !still() && step?.moved && step.kind !== "new") fly(step);
    if (at === ran.steps.length) pause();
  }

  function count_up(tally) {
    const total = {reads: 0, writes: 0};
    const rows = [...tally].map(([name, {reads, writes}]) => {
      total.reads += reads;
      total.writes += writes;
      return [name, reads, writes, reads + writes];
    });
    rows.push(["all phases", total.reads, total.writes, total.reads + total.writes]);
    counters.replaceChildren(table("Words moved so far", ["Phase", "Read", "Written", "Both"], rows));
  }

  function fly(step) {
    const limit = Math.min(400, 700 / speed.value);
    const flights = step.moved.flatMap(({cells, slots}) => cells.map((cell, k) => {
      const ends = [slow_cell(cell), fast_cells[slots[k]]].map((one) => one.getBoundingClientRect());
      return [cell.matrix, ...(step.kind === "read" ? ends : ends.reverse())];
    }));
    for (const [matrix, from, to] of flights) {
      const ghost = make("span", {class: `ghost of-${matrix}`, "aria-hidden": "true",
        style: `left: ${from.left}px; top: ${from.top}px; width: ${from.width}px; height: ${from.height}px`});
      container.append(ghost);
      ghost.animate([{transform: "none"}, {
        transform: `translate(${to.left - from.left}px, ${to.top - from.top}px)`,
        width: `${to.width}px`, height: `${to.height}px`,
      }], {duration: limit, easing: "ease-in-out"}).finished.then(() => ghost.remove(), () => ghost.remove());
    }
  }

  function jump(count) {
    const forward = count === at + 1;
    pause();
    show(count, forward);
  }
  function start() {
    if (at === ran.steps.length) show(0);
    play.textContent = "Pause";
    now.setAttribute("aria-live", "off");
    const tick = () => {
      show(at + 1, true);
      if (timer) timer = setTimeout(tick, 1000 / speed.value);
    };
    timer = setTimeout(tick, 0);
  }
  function pause() {
    clearTimeout(timer);
    timer = null;
    play.textContent = "Play";
    now.setAttribute("aria-live", "polite");
  }

  function compare() {
    const rows = schedules.map((schedule) => {
      const best = best_blocks(schedule, M.value);
      if (!best) return [schedule.name, "no blocks fit", "–", ""];
      const use = () => {
        const k = schedules.indexOf(chosen = schedule);
        choices.querySelectorAll("input")[k].checked = true;
        Br.value = best.Br;
        Bc.value = best.Bc;
        change();
        compared.querySelectorAll("tbody tr")[k].querySelector("button").focus();
      };
      return [schedule.name, `Br ${best.Br}, Bc ${best.Bc}`, best.words,
        button("Use", `Use ${schedule.name} with these blocks`, use)];
    });
    compared.replaceChildren(
      table(`The best blocks for M = ${M.value}`, ["Schedule", "Blocks", "Words", "Try"], rows),
      make("p", {}, "No schedule moves fewer than 64 words. It must read Q, K and V once, and write O once."));
  }
  change();
}

// ---- The pebble game: C = A B with 2 x 2 matrices, by the rules of `redblue pebble --game fma` ----

// Words 0 to 3 are A, 4 to 7 are B and 8 to 11 are C, row by row. Term t adds A(i,k) B(k,j) to C(i,j).
const terms = Array.from({length: 8}, (_, t) => {
  const i = t >> 2, j = (t >> 1) & 1, k = t & 1;
  return {a: 2 * i + k, b: 4 + 2 * k + j, c: 8 + 2 * i + j, bit: 1 << t};
});
const terms_of = Array.from({length: 12}, (_, word) =>
  terms.reduce((bits, {a, b, c, bit}) => bits | ([a, b, c].includes(word) ? bit : 0), 0));
const word_name = (word) => `${"ABC"[word >> 2]}${1 + ((word >> 1) & 1)}${1 + (word & 1)}`;
const term_name = ({a, b}) => `${word_name(a)} × ${word_name(b)}`;
const ones = (bits) => { let count = 0; for (; bits; bits &= bits - 1) ++count; return count; };

// done: terms that were added. red: words in fast memory. blue: words in slow memory with their
// present value.
const beginning = {done: 0, red: 0, blue: 0xff, words: 0};
const finished = ({done, blue}) => done === 0xff && (blue & 0xf00) === 0xf00;

// Returns the sentence that refuses a move, or "".
function refusal_of({done, red, blue}, {act, word, term}, pebbles) {
  const full = ones(red) >= pebbles, name = word_name(word ?? terms[term].c);
  const is_red = (one) => (red >> one) & 1, is_blue = (one) => (blue >> one) & 1;
  if (act === "compute") {
    const {a, b, c, bit} = terms[term], missing = [a, b].filter((one) => !is_red(one));
    if (done & bit) return `${name} contains this term already, and no term is computed twice.`;
    if (missing.length) return `${listed(missing.map(word_name))} must be in fast memory first.`;
    if (is_red(c)) return "";
    if (done & terms_of[c]) return `${name} is in slow memory with its first term: load it first.`;
    return full ? `${name} needs a pebble, and all ${pebbles} are in use.` : "";
  }
  if (act === "load") {
    if (is_red(word)) return `${name} is in fast memory already.`;
    if (!is_blue(word)) return `${name} does not exist yet: compute one of its terms.`;
    return full ? `All ${pebbles} pebbles are in use: delete a word first.` : "";
  }
  if (!is_red(word)) return `${name} is not in fast memory.`;
  if (act === "store") return is_blue(word) ? `${name} is in slow memory already, with the same value.` : "";
  return is_blue(word) ? "" : `${name} would be lost, because no term is computed twice: store it first.`;
}

function play_move({done, red, blue, words}, {act, word, term}) {
  if (act === "load") return {done, red: red | (1 << word), blue, words: words + 1};
  if (act === "store") return {done, red, blue: blue | (1 << word), words: words + 1};
  if (act === "delete") return {done, red: red & ~(1 << word), blue, words};
  const {c, bit} = terms[term];
  return {done: done | bit, red: red | (1 << c), blue: blue & ~(1 << c), words};
}

// The least words that must still move: missing inputs, sums to be read again, and sums to be stored.
function compulsory({done, red, blue}) {
  let words = 0;
  for (let word = 0; word < 12; ++word) {
    const open = terms_of[word] & ~done, is_red = (red >> word) & 1;
    if (word < 8) words += open && !is_red ? 1 : 0;
    else words += (open || !((blue >> word) & 1) ? 1 : 0) + (open && done & terms_of[word] && !is_red ? 1 : 0);
  }
  return words;
}

// The 16 symmetries of the product: swap the rows of A, the columns of B or the depth, and transpose
// everything. Each is two tables: where it takes a set of terms, and a set of words.
function find_symmetries() {
  const sets = (map) => Uint16Array.from({length: 1 << map.length}, (_, set) =>
    map.reduce((all, to, from) => all | (((set >> from) & 1) << to), 0));
  return Array.from({length: 16}, (_, which) => {
    const words = [], images = terms.map(({a, b, c}, term) => {
      const swapped = term ^ ((which & 1) * 4 | (which & 2) | ((which >> 2) & 1)), across = which >> 3;
      const image = across ? ((swapped & 2) << 1) | ((swapped & 4) >> 1) | (swapped & 1) : swapped;
      const to = terms[image];
      [words[a], words[b], words[c]] = across ? [to.b, to.a, to.c] : [to.a, to.b, to.c];
      return image;
    });
    return {terms: sets(images), words: sets(words)};
  });
}
let symmetries = null;

// Finds the fewest words of a game from a position, and the moves, by A*. The estimate `compulsory`
// never falls by more than a move costs. The search makes three kinds of moves at once, because no
// game gets worse by them. It adds a term to a sum in fast memory, stores a complete sum, and
// deletes a word without further terms. Any other deletion waits until all pebbles are in use.
// Symmetric positions are one position.
function search(position, pebbles) {
  const queue = [], best = new Map();
  symmetries ??= find_symmetries();
  const key = ({done, red, blue}) => symmetries.reduce((least, {terms, words}) =>
    Math.min(least, (terms[done] * 4096 + words[red]) * 16 + (words[blue] >> 8)), Infinity);
  const push = (state, moves, before) => {
    const play = (move) => { state = play_move(state, move); moves.push(move); };
    terms.forEach(({a, b, c, bit}, term) => {
      const needed = (1 << a) | (1 << b) | (1 << c);
      if (!(state.done & bit) && (state.red & needed) === needed) play({act: "compute", term});
    });
    for (let word = 0; word < 12; ++word) {
      if (terms_of[word] & ~state.done || !((state.red >> word) & 1)) continue;
      if (!((state.blue >> word) & 1)) play({act: "store", word});
      play({act: "delete", word});
    }
    const place = key(state);
    if (best.get(place) <= state.words) return;
    best.set(place, state.words);
    const estimate = state.words + compulsory(state);
    (queue[estimate] ??= []).push({state, moves, before});
  };
  push({...position, words: 0}, [], null);
  for (let estimate = 0; estimate < queue.length; ++estimate) {
    while (queue[estimate]?.length) {
      const node = queue[estimate].pop(), {state} = node;
      if (best.get(key(state)) < state.words) continue;
      if (finished(state)) {
        const games = [];
        for (let each = node; each; each = each.before) games.unshift(each.moves);
        const moves = games.flat();
        while (moves.at(-1)?.act === "delete") moves.pop();
        return {words: state.words, moves, states: best.size};
      }
      const full = ones(state.red) >= pebbles;
      for (let word = 0; word < 12; ++word) {
        const is_red = Boolean((state.red >> word) & 1), is_blue = (state.blue >> word) & 1;
        if (!(terms_of[word] & ~state.done) || is_red !== full) continue;
        const list = !full ? is_blue ? ["load"] : [] : is_blue ? ["delete"] : ["store", "delete"];
        const moves = list.map((act) => ({act, word}));
        if (moves.length) push(moves.reduce(play_move, state), moves, node);
      }
      terms.forEach(({a, b, c}, term) => {
        const move = {act: "compute", term}, operands = (1 << a) | (1 << b);
        if (!full && (state.red & operands) === operands && !(state.done & terms_of[c])) {
          push(play_move(state, move), [move], node);
        }
      });
    }
  }
  return null;
}
const solved = new Map();
function solve(position, pebbles) {
  const name = [pebbles, position.done, position.red, position.blue].join();
  if (!solved.has(name)) solved.set(name, search(position, pebbles));
  return solved.get(name);
}

function tell({act, word, term}) {
  if (act === "compute") return `compute ${word_name(terms[term].c)} += ${term_name(terms[term])}`;
  return `${act} ${word_name(word)}`;
}

function game_view(container) {
  let moves = [], timer = null, shown = false;
  const pebbles = slider("Red pebbles S", 3, 8, 4, () => restart());
  const score = make("p", {class: "score"}), said = make("p", {class: "now", role: "status", "aria-live": "polite"});
  const log = make("ol", {class: "log", tabindex: 0, "aria-label": "Moves so far"});
  const words = Array.from({length: 12}, (_, word) => button("", "", () => act({act: "load", word}),
    {class: `word of-${"ABC"[word >> 2]}`, "data-word": word}));
  const term_buttons = terms.map((_, term) => button("", "", () => act({act: "compute", term})));
  const matrix = (name, cells) =>
    make("figure", {}, make("figcaption", {}, name), make("div", {class: "two"}, ...cells));
  const sums = words.slice(8).map((word, c) =>
    make("div", {class: "sum"}, word, ...term_buttons.slice(2 * c, 2 * c + 2)));
  const tray = make("div", {class: "tray"});
  let slots = [];
  const undo = button("Undo", "Undo the last move", () => {
    stop();
    shown = false;
    draw(moves.pop() ? "The last move is undone." : "There is no move to undo.");
  });
  const again = button("Start again", "Start again", () => restart());
  const show_me = button("Show me", "", () => {
    if (!timer) return demonstrate();
    stop();
    draw("Stopped.");
  });
  const pebble = (colour, there = true) =>
    make("span", {class: `pebble ${colour}${there ? "" : " none"}`, "aria-hidden": "true"});
  const game = make("div", {class: "game"},
    make("div", {class: "verdict"}, make("div", {class: "transport"}, undo, again, show_me), score, said),
    make("div", {class: "board"},
      make("p", {class: "keys"}, pebble("blue"), " in slow memory ", pebble("red"), " in fast memory. White words are no longer needed."),
      make("div", {class: "factors"},
        matrix("A", words.slice(0, 4)), matrix("B", words.slice(4, 8)), matrix("C", sums)),
      make("h3", {}, "Fast memory"), tray),
    make("div", {}, make("h3", {}, "Moves"), log));
  container.append(
    make("h2", {}, "Play against the optimum"),
    make("p", {}, "Compute C = A B for 2 × 2 matrices. You have S red pebbles, and each word in fast memory needs " +
      "one. A load and a store move one word each. Computing and deleting are free. Each word of C is the sum of two " +
      "terms, and no term is computed twice. At the end, all four words of C must be in slow memory. Move as few words as you can."),
    make("p", {class: "keys"}, "Click a word to load it, and a term to compute it. Tab and the arrow keys go from " +
      "button to button. The keys L, S and D load, store and delete the word in focus. The key U undoes a move."),
    make("div", {class: "sliders"}, pebbles.element), game);

  game.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target.closest("[data-word]"), key = event.key.toLowerCase();
    const name = {l: "load", s: "store", d: "delete"}[key];
    if (key === "u") undo.click();
    else if (name && at?.dataset.word) act({act: name, word: Number(at.dataset.word)});
    else if (event.key.startsWith("Arrow") && event.target.tagName === "BUTTON") {
      const all = [...game.querySelectorAll("button")], here = all.indexOf(event.target);
      all.at((here + (/Right|Down/.test(event.key) ? 1 : -1) + all.length) % all.length).focus();
    } else return;
    event.preventDefault();
  });

  const state_now = () => moves.reduce(play_move, beginning);
  const reach = () => state_now().words + solve(state_now(), pebbles.value).words;
  function act(move) {
    const empty = move.word === undefined && move.act !== "compute";
    const why = empty ? "This place is empty." : refusal_of(state_now(), move, pebbles.value);
    stop();
    if (why) return draw(why, true);
    shown = false;
    const before = reach(), text = `${upper(tell(move))}.`;
    moves.push(move);
    draw(reach() > before ? `${text} Now the fewest words that you can reach are ${reach()}, not ${before}.` : text);
  }
  const upper = (text) => text[0].toUpperCase() + text.slice(1);

  function draw(text, refused = false) {
    const state = state_now(), fewest = solve(beginning, pebbles.value).words, over = finished(state);
    const praise = state.words === fewest ? " Nobody can do better." : "";
    const ending = shown ? `This game moved ${state.words} words. No game with ${pebbles.value} pebbles moves fewer.`
      : `You moved ${state.words} words; the fewest is ${fewest}.${praise}`;
    said.textContent = over && !refused ? ending : text;
    said.classList.toggle("refusal", refused);
    said.classList.toggle("over", over && !refused);
    const numbers = {Moved: state.words, "Best still possible": reach(), Fewest: fewest};
    score.replaceChildren(...Object.entries(numbers).map(([name, number]) =>
      make("span", {}, `${name} `, make("strong", {}, `${number}`))));
    const held = [];
    moves.reduce((before, move) => {
      const after = play_move(before, move);
      const added = after.red & ~before.red, removed = before.red & ~after.red;
      if (removed) held[held.indexOf(31 - Math.clz32(removed))] = undefined;
      if (added) {
        let slot = 0;
        while (held[slot] !== undefined) ++slot;
        held[slot] = 31 - Math.clz32(added);
      }
      return after;
    }, beginning);
    slots.forEach(({box, label, store, remove}, k) => {
      const word = held[k], empty = word === undefined;
      box.className = empty ? "slot empty" : `slot of-${"ABC"[word >> 2]}`;
      for (const one of [box, store, remove]) empty ? delete one.dataset.word : (one.dataset.word = word);
      label.textContent = empty ? "free" : word_name(word);
      const name = empty ? "the word: this place is empty" : word_name(word);
      store.setAttribute("aria-label", `Store ${name}`);
      remove.setAttribute("aria-label", `Delete ${name}`);
      store.classList.toggle("idle", empty || Boolean((state.blue >> word) & 1));
      remove.classList.toggle("idle", empty || !((state.blue >> word) & 1));
    });
    words.forEach((one, word) => {
      const red = (state.red >> word) & 1, blue = (state.blue >> word) & 1, open = ones(terms_of[word] & ~state.done);
      const where = ["not computed yet", "in fast memory", "in slow memory", "in both memories"][2 * blue + red];
      one.replaceChildren(word_name(word), pebble("blue", blue), pebble("red", red));
      one.setAttribute("aria-label", `${word_name(word)}: ${where}, ${open} of 2 terms to go. Load it.`);
      one.classList.toggle("spent", word < 8 && !open);
    });
    term_buttons.forEach((one, term) => {
      const move = {act: "compute", term}, done = state.done & terms[term].bit;
      const ready = !refusal_of(state, move, pebbles.value);
      one.className = `term ${done ? "done" : ready ? "ready" : "idle"}`;
      one.textContent = `${done ? "✓" : "+"} ${term_name(terms[term])}`;
      one.setAttribute("aria-label", `${upper(tell(move))}${done ? ": done" : ready ? ": ready" : ""}`);
    });
    log.replaceChildren(...moves.map((move) =>
      make("li", {}, tell(move), make("span", {class: "words"}, /load|store/.test(move.act) ? "1" : ""))));
    log.scrollTop = log.scrollHeight;
    show_me.textContent = timer ? "Stop" : "Show me";
    show_me.setAttribute("aria-label", timer ? "Stop the game that is shown" : "Show a game with the fewest words");
  }

  function restart() {
    stop();
    moves = [];
    shown = false;
    slots = Array.from({length: pebbles.value}, (_, k) => {
      const label = make("strong"), of = () => slots[k].box.dataset.word;
      const on = (name) => () => act({act: name, word: of() === undefined ? undefined : Number(of())});
      const store = button("Store", "Store", on("store")), remove = button("Delete", "Delete", on("delete"));
      return {box: make("div", {class: "slot"}, label, store, remove), label, store, remove};
    });
    tray.replaceChildren(...slots.map(({box}) => box));
    draw(`Load a word to begin. With ${pebbles.value} pebbles the fewest is ${reach()} words.`);
  }
  function demonstrate() {
    const best = solve(beginning, pebbles.value).moves;
    moves = [];
    shown = true;
    const next = () => {
      moves.push(best[moves.length]);
      timer = moves.length < best.length ? setTimeout(next, 700) : null;
      draw(`${upper(tell(moves.at(-1)))}.`);
    };
    timer = setTimeout(next, 300);
    draw("This is a game with the fewest words.");
  }
  function stop() {
    clearTimeout(timer);
    timer = null;
  }
  restart();
}

window.teaching = {
  start(container) {
    container.classList.add("teaching");
    const machine = make("section", {class: "watch"}), game = make("section", {class: "pebbles"});
    container.append(machine, game);
    machine_view(machine);
    game_view(game);
  },
  // For tests.
  count: (text, with_sizes = sizes) => run(parse(text), with_sizes),
  game: {beginning, finished, play: play_move, refusal: refusal_of, solve, search, terms},
};
})();
