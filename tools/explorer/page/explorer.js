// The page: its state, its controls and its views. The state is in the URL.
"use strict";
(() => {
const find = (selector) => document.querySelector(selector);
const {make} = redblue;

// ---- Numbers ----

redblue.number = (value) => value >= 1e15 ? value.toExponential(4) : value.toLocaleString("en-US");
const with_digits = (value) => Number(value.toPrecision(3)).toLocaleString("en-US");
redblue.short = (value) => {
  for (const [letter, unit] of [["G", 2 ** 30], ["M", 2 ** 20], ["K", 2 ** 10]]) {
    if (value >= unit && Number.isInteger(value / unit * 4)) return value / unit + letter;
  }
  return redblue.number(value);
};
function bytes(value) {
  const names = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const step = Math.min(names.length - 1, Math.max(0, Math.floor(Math.log2(value) / 10)));
  return `${with_digits(value / 1024 ** step)} ${names[step]}`;
}
function duration(seconds) {
  for (const [name, unit] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) {
    if (seconds >= unit) return `${with_digits(seconds / unit)} ${name}`;
  }
  return `${with_digits(seconds / 1e-9)} ns`;
}
function rate(value, unit) {
  return value >= 1e12 ? `${with_digits(value / 1e12)} T${unit}/s` : `${with_digits(value / 1e9)} G${unit}/s`;
}
// Reads 8192, 8,192, 8K and, of M, 192KiB. Returns null for other text.
function size_of(text, word) {
  const found = /^(\d+(?:\.\d+)?)(?:([KMG])(iB)?)?$/i.exec(text.replace(/[,\s]/g, ""));
  if (!found || (found[3] && !word)) return null;
  const value = found[1] * {K: 2 ** 10, M: 2 ** 20, G: 2 ** 30}[(found[2] ?? "").toUpperCase()] || +found[1];
  const words = found[3] ? value / word : value;
  return Number.isSafeInteger(words) && words > 0 ? words : null;
}

// ---- State ----

const octaves = (from, to) => Array.from({length: to - from + 1}, (_, i) => 2 ** (from + i));
const range_of_M = [256, 2 ** 24];
const steps = {
  n: octaves(0, 20), m: octaves(0, 20),
  d: [1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512, 1024],
  M: octaves(8, 24).flatMap((size) => [size, size * 1.5]).filter((size) => size <= range_of_M[1]),
};
const names = {
  problem: ["attention", "gradients", "forward", "backward", "layer", "linear", "linear-gradient", "product"],
  given: ["OL", "nothing"], word: ["4", "2"], multiple: ["1", "8", "16", "32", "64"],
  device: [...Object.keys(redblue.devices), "none"], view: ["explore", "learn"],
};
const beginning = {problem: "attention", given: "OL", n: 8192, m: 8192, d: 64, heads: 1, kv_heads: 1,
  mask: "full", device: "a100", M: 49152, word: 4, multiple: 1, kernel: "auto", view: "explore"};
const version = "1";
let state = {...beginning};

const takes = {
  heads: ["attention", "gradients"], mask: ["attention", "gradients", "forward", "backward", "layer"],
  given: ["gradients", "backward", "layer"],
};

function link_of(some) {
  const words = Object.entries(some).map(([key, value]) =>
    `${key}=${encodeURIComponent(value).replace(/%2F/g, "/").replace(/%3A/g, ":").replace(/%2C/g, ",")}`);
  return `#v=${version}&${words.join("&")}`;
}
// Returns the state of a link, and its mistakes as texts.
function state_of(link) {
  const read = {...beginning}, wrong = [];
  const given = new URLSearchParams(link.replace(/^#/, ""));
  if ([...given].length === 0) return {read, wrong};
  if (given.get("v") !== version) {
    wrong.push(`this link has version ${given.get("v") ?? "none"}, and this page reads version ${version}`);
    return {read, wrong};
  }
  for (const [key, text] of given) {
    if (key === "v") continue;
    const known = Object.hasOwn(beginning, key), number = known && typeof beginning[key] === "number";
    const value = number ? size_of(text) : text;
    if (!known || value === null || (Object.hasOwn(names, key) && !names[key].includes(text))) {
      wrong.push(`the link says ${key}=${text}, which this page does not know`);
    } else {
      read[key] = value;
    }
  }
  if (!given.has("m")) read.m = read.n;
  if (!given.has("kv_heads")) read.kv_heads = read.heads;
  return {read, wrong};
}

// ---- Command lines ----

// The words of a command line that say the problem, without the values that the command has anyway.
function sizes_of(some) {
  const words = ["--n", some.n, ...(some.m === some.n ? [] : ["--m", some.m]), "--d", some.d];
  if (takes.mask.includes(some.problem) && some.mask !== "full") words.push("--mask", some.mask);
  if (some.word !== 4) words.push("--word", some.word);
  return words.map(String);
}
function heads_of(some) {
  if (!takes.heads.includes(some.problem) || some.heads === 1) return [];
  return ["--heads", some.heads, ...(some.kv_heads === some.heads ? [] : ["--kv-heads", some.kv_heads])].map(String);
}
function problem_of(some) {
  const given = takes.given.includes(some.problem) && some.given !== "OL" ? ["--given", some.given] : [];
  return ["--problem", some.problem, ...given, ...sizes_of(some), ...heads_of(some)];
}
const multiple_of = (some) => some.multiple === 1 ? [] : ["--multiple", String(some.multiple)];
function plan_words(some, M = some.M) {
  return ["plan", ...problem_of(some), "--M", String(M), ...multiple_of(some)];
}
// The nests of other projects: forward passes, and backward passes that start from O and L.
const as_all = ({problem, given}) =>
  problem === "attention" || (problem === "gradients" && given === "OL") ? ["--as", "all"] : [];
// Only one head of keys has a nest, with the queries that share it.
function loops_words(some, kernel, M) {
  const heads = takes.heads.includes(some.problem) ? some.heads / some.kv_heads : 1;
  return ["plan", "--loops", kernel, ...sizes_of(some), ...(heads === 1 ? [] : ["--heads", heads, "--kv-heads", 1]),
    "--M", M, ...multiple_of(some)].map(String);
}
const count_words = (some, kernel, M) =>
  ["count", kernel, ...sizes_of(some), ...heads_of(some), "--M", M, "--objective", "words", ...multiple_of(some)].map(String);
const quoted = (word) => /^[\w:.,/=+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
const command_of = (some) => ["redblue", ...plan_words(some), ...as_all(some)].map(quoted).join(" ");
const with_json = (words) => ({arguments: [...words, "--format", "json"]});

// ---- Controls ----

const form = find("#controls");
const device_of = (some) => redblue.devices[some.device];

function show_controls() {
  for (const control of form.elements) {
    if (!control.name) continue;
    const value = state[control.name];
    if (document.activeElement !== control) control.value = typeof value === "number" && control.type === "text" ? redblue.number(value) : value;
    control.removeAttribute("aria-invalid");
  }
  for (const slider of form.querySelectorAll("[data-of]")) {
    const all = steps[slider.dataset.of], value = state[slider.dataset.of];
    const nearest = all.reduce((a, b) => Math.abs(Math.log(b / value)) < Math.abs(Math.log(a / value)) ? b : a);
    slider.value = all.indexOf(nearest);
    slider.setAttribute("aria-valuetext", redblue.number(value));
  }
  for (const label of form.querySelectorAll("[data-for]")) {
    label.hidden = !label.dataset.for.split(" ").includes(state.problem);
  }
  const preset = [...find("#masks").options].map((option) => option.value).includes(state.mask);
  if (document.activeElement !== find("#masks") || preset) find("#masks").value = preset ? state.mask : "";
  find("#mask-text").hidden = !takes.mask.includes(state.problem) || ["full", "causal"].includes(state.mask);
  const device = device_of(state), size = state.M * state.word;
  find("#bytes-of-M").textContent = bytes(size) + (!device ? "" : size === device.fast ?
    ", all of the device's" : ` (the device has ${bytes(device.fast)})`);
}

function change(some, {typed = false} = {}) {
  const before = state;
  state = {...state, ...some};
  if (some.problem && some.problem !== before.problem) state.kernel = "auto";
  if (some.n && before.m === before.n && !some.m) state.m = some.n;
  if (some.heads && !some.kv_heads) {
    state.kv_heads = before.kv_heads === before.heads || some.heads % before.kv_heads ? some.heads : before.kv_heads;
  }
  if (some.word && some.word !== before.word) state.M = Math.max(1, Math.round(before.M * before.word / some.word));
  if (some.device && device_of(state)) state.M = device_of(state).fast / state.word;
  update();
}

function prepare_controls() {
  find("[name=device]").append(...Object.entries(redblue.devices).map(([key, device]) =>
    make("option", {value: key}, `${device.name}: ${device.part}, ${bytes(device.fast)}`)), make("option", {value: "none"}, "a size of my own"));
  find("#sources").append(...Object.values(redblue.devices).map((device) => make("li", {},
    `${device.name}: ${bytes(device.fast)} in one ${device.part}; whole device: ${rate(device.bandwidth, "B")}, ${rate(device.flops[2], "FLOP")} with 2 bytes a word, ${rate(device.flops[4], "FLOP")} with 4. ${device.source}.`)));
  for (const slider of form.querySelectorAll("[data-of]")) {
    slider.min = 0;
    slider.max = steps[slider.dataset.of].length - 1;
    slider.step = 1;
    slider.addEventListener("input", () => change({[slider.dataset.of]: steps[slider.dataset.of][slider.value]}));
  }
  find("#masks").addEventListener("change", (event) => {
    if (event.target.value) {
      change({mask: event.target.value});
    } else {
      find("#mask-text").hidden = false;
      find("[name=mask]").select();
    }
  });
  form.addEventListener("change", (event) => {
    const {name, value} = event.target;
    if (!(name in state)) return;
    if (typeof state[name] !== "number") {
      change({[name]: value.trim() || beginning[name]});
      return;
    }
    const number = size_of(value, name === "M" ? state.word : 0);
    if (number === null) {
      event.target.setAttribute("aria-invalid", "true");
      complain(`${name} is "${value}": expected a number such as 8192 or 8K${name === "M" ? ", or 192KiB" : ""}`);
    } else {
      event.target.value = redblue.number(number);
      change({[name]: number});
    }
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    change({...beginning, view: state.view});
  });
}

// ---- Views ----

function complain(text) {
  find("#problem-message").hidden = !text;
  find("#problem-message").textContent = text ?? "";
}
const in_words = (blocks, most = 99) => {
  const all = Object.entries(blocks ?? {}).map(([name, size]) => `${name} = ${redblue.number(size)}`);
  return all.length <= most ? all.join(", ") : `${all.slice(0, 2).join(", ")} and ${all.length - 2} more sizes`;
};
const spoken_M = (M) => `${redblue.number(M)} words (${bytes(M * state.word)})`;
const percent = (share) => `${with_digits(100 * share)}%`;
const tile_names = {
  "flash-attention-1": ["FlashAttention 1", "FA1"], "flash-attention-2": ["FlashAttention-2", "FA2"],
  "flash-attention-3": ["FlashAttention-3", "FA3"], "flash-decoding": ["Flash-decoding", "Flash-decoding"],
  "flex-attention-cpu": ["FlexAttention, CPU", "Flex"], "ggml-cpu": ["ggml, CPU", "ggml"],
  "onnxruntime-cpu": ["ONNX Runtime, CPU", "ORT"], "pytorch-cpu": ["PyTorch, CPU", "PyTorch"],
  "ring-attention-step": ["Ring attention, one step", "Ring"], "triton-tutorial": ["Triton tutorial", "Triton"],
  xformers: ["xFormers", "xFormers"],
};
const tile_name = (row) => tile_names[row.as] ?? [row.as, row.as];
function label_of(kernel, tiles) {
  const tile = tiles?.find((row) => row.kernel === kernel);
  return tile ? tile_name(tile)[0] : kernel;
}

let current = 0;     // the number of the newest update
let shown = {};      // what the views show: plan, curve, tiles

const kernels_of = (plan) => [plan.plan, ...plan.runners_up];
const tiles_of = (as) => (as ?? []).filter((row) => row.kernel && row.words);

const is_of_class = (one, plan) => Boolean(one.lower_bound && one.lower_bound.words !== plan.lower_bound.words);
const beside = (words, bound) => bound.words ? [". The kernel moves ", make("b", {}, `${(words / bound.words).toFixed(2)} times`), " as many."] : ["."];

function show_headline({plan}) {
  const best = plan.plan;
  find("#headline").replaceChildren(make("b", {}, best.kernel), " moves ",
    make("b", {}, `${redblue.number(best.words)} words`), ` (${bytes(best.words * state.word)}) through ${bytes(state.M * state.word)} of fast memory. `,
    "A proven bound says that no algorithm with standard matrix products moves fewer than ", make("b", {}, redblue.number(plan.lower_bound.words)), ...beside(best.words, plan.lower_bound),
    ...(is_of_class(best, plan) ? [` The bound for its class of algorithms (${best.lower_bound.term}) is `, make("b", {}, redblue.number(best.lower_bound.words)), ...beside(best.words, best.lower_bound)] : []),
    in_words(best.blocks) ? ` Its tiles: ${in_words(best.blocks, 4)}.` : "");
}

// Facts stand in the order of the page, whichever is known first.
function fact(key, ...children) {
  const one = find(`#facts [data-key="${key}"]`);
  one.replaceChildren(...children);
  one.hidden = children.length === 0;
}
function show_facts({plan, twice, ungrouped, unmasked, enough, curve, bounds, counted, tiles, chosen, is_complete}) {
  const words = plan.plan.words, facts = [];
  const say = (key, question, text) => facts.push([key, make("b", {}, question), ` ${text}`]);
  const compulsory = bounds?.bounds.find((bound) => bound.name === "compulsory")?.words;
  const flash = tiles?.find((row) => row.as === "flash-attention-2");
  if (flash) {
    const too_many = flash.too_many > 0, M = spoken_M(too_many ? flash.peak : state.M);
    say("flash", "How good are FlashAttention-2's tiles?", `They (${in_words(flash.blocks)}) need ${spoken_M(flash.peak)}${too_many ? ", more than the chosen M" : ""}. They move ${redblue.number(flash.words)} words. That is ${flash.ratio.toFixed(2)} times the bound for ${M}, and ${flash.times_planned.toFixed(2)} times what FlashAttention-2's loops move there with the best tiles.`);
  }
  if (twice) {
    const saved = 1 - twice.plan.words / words;
    say("twice", "Would twice the fast memory help?", saved < .005 ? "No: the best kernel would move as many words." :
      `In ${spoken_M(2 * state.M)}, ${twice.plan.kernel} moves ${percent(saved)} fewer words.`);
  }
  if (ungrouped) {
    const saved = ungrouped.plan.words - words;
    say("grouped", `What do ${state.kv_heads} key/value heads save?`, saved <= 0 ? `Nothing: with ${state.heads} key/value heads, the best kernel moves ${redblue.number(words + saved)} words.` :
      `${redblue.number(saved)} words (${bytes(saved * state.word)}), or ${percent(saved / ungrouped.plan.words)} of the words that the best kernel moves with ${state.heads} key/value heads.`);
  }
  if (unmasked) {
    const saved = unmasked.plan.words - words;
    say("mask", "What does the mask save?", saved <= 0 ? "Nothing." : `${redblue.number(saved)} words (${bytes(saved * state.word)}), or ${percent(saved / unmasked.plan.words)} of the words that the best kernel moves for all pairs.`);
  }
  if (curve && compulsory && enough !== undefined) {
    const least = fewest_at(curve.points.at(-1));
    say("enough", "How much fast memory is enough?", least <= compulsory * 1.05 ?
      `About ${spoken_M(enough)}${enough === curve.points[0].M ? ", or fewer" : ""}. Then the best kernel moves only the compulsory ${redblue.number(compulsory)} words (${bytes(compulsory * state.word)}): each input is read once and each result written once.` :
      `More than ${spoken_M(curve.points.at(-1).M)}. Inputs and results alone are ${redblue.number(compulsory)} words (${bytes(compulsory * state.word)}).`);
  }
  const device = device_of(state), flops = counted?.total?.flops;
  if (device && flops && compulsory) {
    const time = (moved) => moved * state.word / device.bandwidth;
    const all = time(counted.total.io), least = time(compulsory), computed = flops / device.flops[state.word];
    const label = label_of(chosen, tiles), products = `the matrix products ${duration(computed)} at ${rate(device.flops[state.word], "FLOP")}`;
    say("time", "Does the traffic matter?", (all <= computed ?
      `The arithmetic takes longer. Even if all words of ${label} came from the memory of the whole ${device.name}, they would take ${duration(all)}, and ${products}.` :
      least >= computed ? `Yes. The compulsory words alone take ${duration(least)} from the memory of the whole ${device.name}, and ${products}.` :
      `It depends on caches in between. From the memory of the whole ${device.name}, the words of ${label} would take ${duration(all)}, the compulsory words alone ${duration(least)}, and ${products}.`) +
      ` Its memory moves ${rate(device.bandwidth, "B")}.`);
  }
  for (const [key, ...children] of facts) fact(key, ...children);
  for (const old of find("#facts").children) {
    if (is_complete && !facts.some(([key]) => key === old.dataset.key)) fact(old.dataset.key);
  }
}

function class_of(name, all) {
  return `c${all.indexOf(name) % 8}${all.indexOf(name) >= 8 ? " dashed" : ""}`;
}
function show_table({plan, tiles, curve, least_M = {}, chosen}) {
  const device = device_of(state), all = curve ? names_in(curve) : [];
  const body = find("#kernels tbody");
  const focused = body.contains(document.activeElement) ? document.activeElement.title : null;
  const row = (kernel, label, words, ratio, blocks, needs, note, is_tile, of_class) => {
    const button = make("button", {type: "button", class: "pick", "aria-pressed": String(kernel === chosen), title: kernel,
      onclick: () => change({kernel: kernel === plan.plan.kernel ? "auto" : kernel})}, label);
    const swatch = is_tile ? "swatch tile" : `swatch ${class_of(kernel, all)}`;
    return make("tr", {class: kernel === chosen ? "chosen" : ""},
      make("th", {scope: "row"}, make("span", {class: swatch, "aria-hidden": "true"}), button, ...(note ? [make("small", {}, note)] : [])),
      make("td", {}, redblue.number(words)), make("td", {}, ratio ? `${ratio.toFixed(2)}${of_class ? " †" : ""}` : "–"),
      make("td", {class: "blocks", title: in_words(blocks)}, in_words(blocks, 4)), make("td", {}, needs),
      make("td", {class: "time"}, device ? duration(words * state.word / device.bandwidth) : "–"));
  };
  const rows = kernels_of(plan).map((one) => row(one.kernel, one.kernel, one.words, one.ratio, one.blocks, least_M[one.kernel] ? redblue.number(least_M[one.kernel]) : "–",
    one.forward ? ` after ${one.forward.kernel ?? one.forward}` : "", false, is_of_class(one, plan)));
  const used = kernels_of(plan).map((one) => one.lower_bound).filter(Boolean);
  for (const bound of new Map([plan.lower_bound, ...used].map((bound) => [bound.words, bound])).values()) {
    rows.push(make("tr", {class: "bound"}, make("th", {scope: "row"}, make("span", {class: "swatch bound"}),
        bound.words === plan.lower_bound.words ? `proven bound (${bound.term})` : `† for a class (${bound.term})`),
      make("td", {}, redblue.number(bound.words)), make("td", {}, used.some(({words}) => words === bound.words) ? "1.00" : ""), make("td", {}, ""), make("td", {}, ""),
      make("td", {class: "time"}, device ? duration(bound.words * state.word / device.bandwidth) : "–")));
  }
  if (tiles?.length) {
    rows.push(make("tr", {class: "heading"}, make("th", {colspan: 6, scope: "rowgroup"}, "Tiles that other projects ship")));
    for (const one of [...tiles].sort((a, b) => (a.too_many > 0) - (b.too_many > 0) || a.ratio - b.ratio)) {
      rows.push(row(one.kernel, tile_name(one)[0], one.words, one.ratio, one.blocks,
        `${redblue.number(one.peak)}${one.too_many > 0 ? " *" : ""}`, "", true));
    }
  }
  body.replaceChildren(...rows);
  if (focused) [...body.querySelectorAll(".pick")].find((one) => one.title === focused)?.focus({preventScroll: true});
  find("#table-M").textContent = spoken_M(state.M);
  const small = Object.entries(least_M).filter(([name]) => !kernels_of(plan).some((one) => one.kernel === name));
  find("#table-note").textContent = [
    "Choose a kernel to see its loop nest, and its time beside the arithmetic.",
    small.length ? `These kernels need a larger M: ${small.map(([name, M]) => `${name} (${redblue.number(M)} words)`).join(", ")}.` : "",
    state.problem === "gradients" && state.given !== "OL" ? "Tiles of other projects are shown if O and L are in slow memory." : "",
    tiles?.some((one) => one.too_many > 0) ? "* more than the chosen M: compared with the bound at the M that it needs." : "",
    kernels_of(plan).some((one) => is_of_class(one, plan)) ? "† compared with the bound for its class of algorithms." : "",
    tiles?.some((one) => one.words < plan.lower_bound.words && one.too_many <= 0) ? "Tiles that move fewer words than the bound do not write L." : "",
  ].filter(Boolean).join(" ");
}

function names_in(curve) {
  return [...new Set(curve.points.flatMap((point) => point.choices.map((choice) => choice.kernel)))].sort();
}
function show_chart({curve, plan, tiles, chosen}) {
  const all = names_in(curve);
  const lines = all.map((name) => ({
    name, label: name.split("/")[1], class: class_of(name, all),
    points: curve.points.flatMap((point) => point.choices.filter((choice) => choice.kernel === name)
      .map((choice) => [point.M, choice.words])),
  }));
  redblue.draw({
    container: find("#chart"), lines, chosen, sizes: steps.M, M: state.M,
    bound: curve.points.map((point) => [point.M, point.lower_bound.words]),
    tiles: (tiles ?? []).map((row) => ({name: row.kernel, title: tile_name(row)[0], label: tile_name(row)[1], M: row.peak, words: row.words})),
    summary: `Words moved against M for ${all.length} kernels and the proven bound. At M = ${state.M}: ${plan.plan.kernel} moves ${plan.plan.words} words, the bound is ${plan.lower_bound.words}. The table below has all numbers.`,
    choose_M: (M) => change({M}), choose: (kernel) => change({kernel}),
  });
  const item = (kind, text) => make("li", {}, make("span", {class: `swatch ${kind}`}), text);
  find("#legend").replaceChildren(...lines.map((line) => item(line.class, line.label)),
    item("bound", "proven bound"), ...(tiles?.length ? [item("tile", "tiles that ship, at the M that they need")] : []));
}

function show_nest(nest, counted, M) {
  const most = Math.max(1, ...nest.loops.map((loop) => loop.reads + loop.writes));
  find("#nest tbody").replaceChildren(...nest.loops.map((loop) => {
    const moved = loop.reads + loop.writes;
    const line = make("tr", {class: loop.kind},
      make("th", {scope: "row"}, loop.text),
      make("td", {}, loop.trips === null ? "" : `${redblue.number(loop.trips)} × ${redblue.number(loop.block)}`),
      make("td", {}, moved ? redblue.number(moved) : ""));
    line.style.setProperty("--depth", loop.depth);
    line.style.setProperty("--share", moved / most);
    return line;
  }));

  // A bar for each loop with resident tiles that has no such loop inside.
  const stacks = [];
  nest.loops.forEach((loop, i) => {
    if (loop.stays.length === 0) return;
    const inside = nest.loops.slice(i + 1);
    const end = inside.findIndex((other) => other.depth <= loop.depth);
    if (inside.slice(0, end < 0 ? inside.length : end).some((other) => other.stays.length)) return;
    const around = [];
    let depth = loop.depth;
    for (const other of nest.loops.slice(0, i).reverse()) {
      if (other.depth < depth) {
        around.unshift(...other.stays);
        depth = other.depth;
      }
    }
    stacks.push({loop, tiles: [...around, ...loop.stays]});
  });
  find("#stays").replaceChildren(...stacks.map(({loop, tiles}) => {
    const resident = tiles.reduce((sum, tile) => sum + tile.words, 0);
    const peak = counted?.phases?.find((phase) => phase.path === loop.phase)?.peak ?? resident;
    const parts = [...tiles.map((tile, i) => [tile.tile, tile.words, `t${i % 6}`]),
      ["passing through", Math.max(0, peak - resident), "passing"], ["free", Math.max(0, M - Math.max(peak, resident)), "free"]]
      .filter(([, words]) => words > 0);
    return make("div", {class: "stack"}, make("p", {}, `During “${loop.text}”${loop.phase ? ` of the phase ${loop.phase}` : ""}`),
      make("div", {class: "bar", "aria-hidden": "true"}, ...parts.map(([name, words, kind]) => {
        const part = make("span", {class: kind, title: `${name}: ${redblue.number(words)} words`}, words / M > .09 ? name : "");
        part.style.flexGrow = words;
        return part;
      })),
      make("p", {class: "hint"}, ...parts.flatMap(([name, words, kind], i) => [i ? "  " : "", make("span", {class: `swatch ${kind}`}), `${name} ${redblue.number(words)}`])));
  }));
}

function show_formula(answer) {
  const box = find("#formula");
  if (answer.code !== 0) {
    const masked = state.mask !== "full" && takes.mask.includes(state.problem);
    box.replaceChildren(make("p", {class: "hint"}, masked ?
      "Words under a mask depend on which pairs live, so there is no formula in n, m and d. The count is exact." : answer.words.join(" ")));
    return;
  }
  const symbolic = JSON.parse(answer.data), {total} = symbolic;
  const line = (title, latex) => [make("p", {class: "hint"}, title), make("div", {class: "scroll"}, redblue.rendered(latex))];
  const sum = [total.reads.latex, total.writes.latex].filter((part) => part !== "0").join(" + ");
  box.replaceChildren(...line("words moved, reads + writes", sum),
    ...line("words in fast memory, for tiles as large as these", total.peak.latex),
    ...(symbolic.leading ? line("leading term for large n and m", symbolic.leading.latex) : []),
    ...(symbolic.leading_in_M ? line("leading term, with the best tiles", symbolic.leading_in_M.latex) : []),
    ...(symbolic.leading_in_M_with ? line("where", symbolic.leading_in_M_with.latex) : []));
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", {class: "visually-hidden"}, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  find("#said").textContent = `${what} copied`;
  find("#said").classList.add("seen");
  setTimeout(() => find("#said").classList.remove("seen"), 1800);
}

// ---- Updates ----

let nest_text = null;  // asks for the chosen kernel's nest as text

async function update({keep_link = false} = {}) {
  const turn = ++current, some = state;
  redblue.cancel();
  show_controls();
  if (!keep_link) history.replaceState(null, "", link_of(some));
  show_view();
  complain(null);
  find("#command").textContent = command_of(some);
  const results = find(".results");
  results.setAttribute("aria-busy", "true");
  const slow = setTimeout(() => { find("#progress").hidden = false; }, 200);
  let planned = false;
  const get = async (words) => {
    const document = await redblue.engine(with_json(words));
    if (turn !== current) throw redblue.cancelled;
    return document;
  };
  try {
    const problem = problem_of(some);
    const from = Math.min(range_of_M[0], 2 ** Math.floor(Math.log2(some.M)));
    const to = Math.max(range_of_M[1], 2 ** Math.ceil(Math.log2(some.M)));
    const now = {plan: await get(plan_words(some))};
    planned = true;
    find("#version").textContent = now.plan.context.redblue;
    now.chosen = some.kernel === "auto" ? now.plan.plan.kernel : some.kernel;
    const same = shown.problem === JSON.stringify(problem);
    if (same) {
      now.curve = shown.curve;
      now.tiles = shown.tiles;
      now.bounds = shown.bounds;
      now.least_M = shown.least_M;
      now.enough = shown.enough;
    }
    show_headline(now);
    performance.mark("answer");
    show_table(now);
    results.classList.remove("old");
    if (now.curve) show_chart(now);

    now.curve = await get(["curve", ...problem, "--from", String(from), "--to", String(to)]);
    show_chart(now);
    now.bounds = await get(["bounds", ...problem, "--M", String(some.M)]);
    now.least_M = await least_M_of(some, names_in(now.curve), turn);
    now.tiles = as_all(some).length ? tiles_of((await get([...plan_words(some), ...as_all(some)])).as) : [];
    shown = {...now, problem: JSON.stringify(problem)};
    show_table(now);
    show_chart(now);
    show_facts(now);

    const tile = now.tiles.find((row) => row.kernel === now.chosen);
    if (!tile && !kernels_of(now.plan).some((one) => one.kernel === now.chosen)) {
      throw new Error(`${now.chosen} does not run in M = ${some.M}, or not for this problem: choose another kernel in the table`);
    }
    await show_kernel(now, tile, get, turn);
    now.twice = await get(plan_words(some, 2 * some.M));
    if (heads_of(some).includes("--kv-heads")) now.ungrouped = await get(plan_words({...some, kv_heads: some.heads}));
    if (takes.mask.includes(some.problem) && some.mask !== "full") now.unmasked = await get(plan_words({...some, mask: "full"}));
    shown.enough = now.enough ??= await enough_of(now, some, get);
    now.is_complete = true;
    show_facts(now);
  } catch (error) {
    if (error === redblue.cancelled || turn !== current) return;
    complain(error.message);
    if (!planned) results.classList.add("old");
  } finally {
    clearTimeout(slow);
    if (turn === current) {
      find("#progress").hidden = true;
      results.setAttribute("aria-busy", "false");
    }
  }
}

const fewest_at = (point) => Math.min(...point.choices.map((choice) => choice.words));

// Returns an M, at most 1% above the least one, in which the best kernel moves about as few words as
// in the largest M of the curve.
async function enough_of({curve}, some, get) {
  const least = fewest_at(curve.points.at(-1)), is_enough = (words) => words <= least * 1.005;
  const first = curve.points.findIndex((point) => is_enough(fewest_at(point)));
  if (first === 0) return curve.points[0].M;
  let [low, high] = [curve.points[first - 1].M, curve.points[first].M];
  while (high > low * 1.01 && high > low + 1) {
    const middle = Math.round(Math.sqrt(low * high));
    if (is_enough((await get(plan_words({...some, multiple: 1}, middle))).plan.words)) high = middle; else low = middle;
  }
  return high;
}

// Returns the least M in which each kernel runs. The command says it when it refuses a smaller one.
async function least_M_of(some, kernels, turn) {
  const all = {};
  for (const kernel of kernels) {
    const {words} = await redblue.ask([...count_words(some, kernel, 1), "--format", "json"]);
    if (turn !== current) throw redblue.cancelled;
    const found = /M of at least (\d+)/.exec(words.join(" "));
    if (found) all[kernel] = +found[1];
  }
  return all;
}

async function show_kernel(now, tile, get, turn) {
  const some = state, {chosen} = now, M = tile ? Math.max(some.M, tile.peak) : some.M;
  find("#nest-kernel").textContent = label_of(chosen, now.tiles);
  nest_text = () => redblue.ask([...loops_words(some, chosen, M), "--format", "nest"]);
  now.counted = await get(count_words(some, chosen, M));
  show_facts(now);
  try {
    show_nest(await get(loops_words(some, chosen, M)), now.counted, M);
    const one = tile ?? kernels_of(now.plan).find((each) => each.kernel === chosen);
    find("#nest-note").textContent = `Tiles: ${in_words(one.blocks) || "none"}. Lines are shaded by the words that they move.${some.heads > 1 && takes.heads.includes(some.problem) ? ` The nest is of one of ${some.kv_heads} key/value heads, with the queries that share it.` : ""}`;
  } catch (error) {
    if (error === redblue.cancelled) throw error;
    find("#nest tbody").replaceChildren();
    find("#stays").replaceChildren();
    find("#nest-note").textContent = error.message;
  }
  const one_head = {...some, heads: 1, kv_heads: 1};
  const formula = await redblue.ask([...count_words(one_head, chosen, M).filter((word, i, all) =>
    !["--objective", "--multiple"].includes(word) && !["--objective", "--multiple"].includes(all[i - 1])), "--symbolic", "--format", "json"]);
  if (turn === current) show_formula(formula);
}

// ---- Tabs ----

let is_teaching = false;
function show_view() {
  const learn = state.view === "learn";
  find("#explore").hidden = learn;
  find("#learn").hidden = !learn;
  for (const tab of find("#tabs").children) {
    const selected = (tab.id === "tab-learn") === learn;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
  }
  if (learn && !is_teaching) {
    is_teaching = true;
    window.teaching.start(find("#learn"));
  }
}
function prepare_tabs() {
  for (const tab of find("#tabs").children) {
    tab.addEventListener("click", () => change({view: tab.id.slice(4)}));
    tab.addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
      const other = [...find("#tabs").children].find((one) => one !== tab);
      other.focus();
      other.click();
    });
  }
}

// ---- Start ----

prepare_controls();
prepare_tabs();
find("#copy-link").addEventListener("click", () => copy(location.href, "Link"));
find("#copy-command").addEventListener("click", () => copy(command_of(state), "Command"));
find("#copy-nest").addEventListener("click", async () => {
  const answer = await nest_text?.();
  if (answer?.code === 0) copy(answer.data, "Loop nest"); else complain(answer?.words.join("\n") ?? "no kernel is chosen yet");
});
addEventListener("resize", () => shown.curve && show_chart(shown));
function read_link() {
  const {read, wrong} = state_of(location.hash);
  state = read;
  update({keep_link: wrong.length > 0}).then(() => wrong.length > 0 && complain(`${wrong.join("; ")}.`));
}
addEventListener("hashchange", read_link);
read_link();

redblue.page = {state_of, link_of, command_of, problem_of, get state() { return state; }, get shown() { return shown; }};
})();
