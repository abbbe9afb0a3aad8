// The picture: words moved against M, both axes logarithmic.
"use strict";
redblue.draw = (() => {
  const make = redblue.make_in("http://www.w3.org/2000/svg");
  const superscript = (power) => String(power).replace(/./g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit] ?? "⁻");

  // Moves labels apart that are less than `gap` high apart. Keeps their order.
  function apart(labels, gap, top, bottom) {
    labels.sort((a, b) => a.y - b.y);
    for (let i = 1; i < labels.length; ++i) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + gap);
    let limit = bottom;
    for (let i = labels.length - 1; i >= 0; --i) {
      labels[i].y = Math.min(labels[i].y, limit);
      limit = labels[i].y - gap;
    }
    return labels;
  }

  // `lines`: {name, label, class, points: [[M, words]]}. `bound`: points. `tiles`: {name, title, label,
  // M, words}. `sizes` are the values of M that a click may choose. Calls choose_M(M), choose(name).
  return function draw({container, lines, bound, tiles, M, chosen, sizes, summary, choose_M, choose}) {
    const width = Math.max(300, container.clientWidth), phone = width < 560;
    const height = phone ? 380 : 440;
    const box = {left: 58, right: phone ? 12 : 140, top: 14, bottom: 46};
    const all_M = [...bound.map(([x]) => x), M];
    const least_M = Math.min(...all_M), most_M = Math.max(...all_M);
    const best = bound.map(([x]) => Math.min(...lines.flatMap((line) =>
      line.points.filter(([at]) => at === x).map(([, words]) => words))));
    const seen = [...best.filter(Number.isFinite), ...tiles.map((tile) => tile.words),
      ...bound.map(([, words]) => words)];
    const least = Math.min(...seen) / 1.6, most = Math.max(...seen) * 1.6;
    const plot = {width: width - box.left - box.right, height: height - box.top - box.bottom};
    const x = (value) => box.left + plot.width * Math.log(value / least_M) / Math.log(most_M / least_M);
    const y = (value) => box.top + plot.height * (1 - Math.log(value / least) / Math.log(most / least));
    const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
    const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": summary});

    svg.append(make("defs", {},
      make("pattern", {id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
        make("line", {x1: 0, y1: 0, x2: 0, y2: 7, class: "hatch"})),
      make("clipPath", {id: "clip"},
        make("rect", {x: box.left, y: box.top, width: plot.width, height: plot.height}))));

    const chooser = (name) => (event) => {
      event.stopPropagation();
      choose(name);
    };

    // Axes.
    const axes = make("g", {class: "axes"});
    const steps = Math.ceil(Math.log2(most_M / least_M) / (plot.width / 52));
    for (let power = Math.ceil(Math.log2(least_M)); power <= Math.log2(most_M) + 1e-9; ++power) {
      if (power % steps) continue;
      const at = x(2 ** power);
      axes.append(make("line", {x1: at, x2: at, y1: box.top, y2: height - box.bottom}),
        make("text", {x: at, y: height - box.bottom + 16, "text-anchor": "middle"}, redblue.short(2 ** power)));
    }
    const decades = Math.log10(most / least);
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); ++power) {
      for (const digit of decades < 2 ? [1, 2, 5] : [1]) {
        const words = digit * 10 ** power;
        if (words < least || words > most) continue;
        axes.append(make("line", {x1: box.left, x2: width - box.right, y1: y(words), y2: y(words)}),
          make("text", {x: box.left - 6, y: y(words) + 4, "text-anchor": "end"}, `${digit > 1 ? `${digit}·` : ""}10${superscript(power)}`));
      }
    }
    axes.append(make("text", {x: box.left + plot.width / 2, y: height - 8, "text-anchor": "middle"}, "M, words of fast memory"),
      make("text", {x: -(box.top + plot.height / 2), y: 12, transform: "rotate(-90)", "text-anchor": "middle"}, "words moved"));
    svg.append(axes);

    // The area below the bound.
    const body = make("g", {"clip-path": "url(#clip)"});
    const floor = `L${x(bound.at(-1)[0])} ${height - box.bottom}L${x(bound[0][0])} ${height - box.bottom}Z`;
    body.append(make("path", {d: path(bound) + floor, fill: "url(#hatch)"}),
      make("path", {d: path(bound), class: "bound"}));
    const corner = bound[Math.floor(bound.length * .12)];
    svg.append(body);
    svg.append(make("text", {x: x(corner[0]), y: height - box.bottom - 12, class: "impossible"}, "below the proven bound"));

    // Kernels: the chosen one last, above the others.
    const ordered = [...lines].sort((a, b) => (a.name === chosen) - (b.name === chosen));
    for (const line of ordered) {
      const one = make("path", {d: path(line.points), class: `line ${line.class}${line.name === chosen ? " chosen" : ""}`});
      const wide = make("path", {d: path(line.points), class: "reach", onclick: chooser(line.name)}, make("title", {}, line.name));
      body.append(one, wide);
    }
    if (!phone) {
      const labels = lines.filter((line) => line.points.length).map((line) => ({line, y: y(line.points.at(-1)[1]) + 4}))
        .filter((label) => label.y > box.top);
      for (const {line, y: at} of apart(labels, 13, box.top, height - box.bottom)) {
        svg.append(make("text", {x: width - box.right + 6, y: at, class: `label ${line.class}${line.name === chosen ? " chosen" : ""}`}, line.label));
      }
    }

    // The chosen M.
    const at = x(M);
    svg.append(make("line", {x1: at, x2: at, y1: box.top, y2: height - box.bottom, class: "M"}),
      make("text", {x: at + (at > width - box.right - 90 ? -6 : 6), y: box.top + 10, class: "M",
        "text-anchor": at > width - box.right - 90 ? "end" : "start"}, `M = ${redblue.short(M)}`));

    // Tiles of other projects, each at the M that it needs, with a label where there is room.
    const taken = [];
    const is_free = (box) => taken.every((other) => box.right < other.left || box.left > other.right ||
      box.bottom < other.top || box.top > other.bottom);
    const marks = tiles.filter((tile) => tile.M >= least_M && tile.M <= most_M)
      .map((tile) => ({tile, x: x(tile.M), y: y(tile.words), size: tile.name === chosen ? 6.5 : 4.5}));
    for (const {x: left, y: top} of marks) taken.push({left: left - 5, right: left + 5, top: top - 5, bottom: top + 5});
    for (const {tile, x: middle, y: top, size} of marks) {
      const one = make("path", {d: `M${middle} ${top - size}l${size} ${size}l${-size} ${size}l${-size} ${-size}Z`,
        class: `mark${tile.name === chosen ? " chosen" : ""}`, onclick: chooser(tile.name)});
      one.append(make("title", {}, `${tile.title}: ${redblue.number(tile.words)} words in ${redblue.number(tile.M)}`));
      svg.append(one);
      const long = tile.label.length * 6.4;
      for (const [across, down] of [[8, 4], [-8, 4], [8, -7], [8, 15], [-8, -7], [-8, 15], [8, 26], [-8, 26], [8, -18], [8, 37]]) {
        const begin = across > 0 ? middle + across : middle + across - long;
        const box_of_label = {left: begin, right: begin + long, top: top + down - 9, bottom: top + down + 2};
        if (!is_free(box_of_label) || begin < box.left || begin + long > width) continue;
        taken.push(box_of_label);
        svg.append(make("text", {x: begin, y: top + down, class: `mark-label${tile.name === chosen ? " chosen" : ""}`}, tile.label));
        break;
      }
    }

    svg.addEventListener("click", (event) => {
      const {left} = svg.getBoundingClientRect();
      const share = (event.clientX - left - box.left) / plot.width;
      if (share < 0 || share > 1) return;
      const wanted = least_M * (most_M / least_M) ** share;
      choose_M(sizes.reduce((a, b) => Math.abs(Math.log(b / wanted)) < Math.abs(Math.log(a / wanted)) ? b : a));
    });
    container.replaceChildren(svg);
  };
})();
