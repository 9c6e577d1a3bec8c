"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);

  // ---- elements and words

  function make(name, properties, ...children) {
    const element = document.createElement(name);
    return fill(element, properties, children);
  }
  function draw(name, properties, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);
  }
  function fill(element, properties, children) {
    for (const [key, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
    return element;
  }
  const prose = (text) => text.split(/`([^`\n]+)`/).map((part, index) => (index % 2 ? make("code", {}, part) : part));
  const plural = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  const known = (number) => typeof number === "number" && Number.isFinite(number);
  function scaled(number, units, base) {
    if (!known(number)) return "unknown";
    let index = 0;
    while (Math.abs(number) >= base * 0.9995 && index < units.length - 1) { number /= base; index += 1; }
    const digits = index === 0 || Math.abs(number) >= 100 ? 0 : Math.abs(number) >= 10 ? 1 : 2;
    return `${number.toFixed(digits)}${units[index] ? " " + units[index] : ""}`;
  }
  const inBytes = (number) => scaled(number, ["B", "kB", "MB", "GB", "TB", "PB"], 1000);
  const inFlops = (number) => scaled(number, ["", "k", "M", "G", "T", "P"], 1000);
  const percent = (share) => (share >= 0.0995 || share === 0 ? `${Math.round(share * 100)} %` : share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(1)} %`);
  const rounded = (number) => Number(number.toFixed(number < 0.1 ? 3 : number < 10 ? 2 : 1));
  const short = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);
  function facts(rows) {
    return make("dl", {}, rows.filter((row) => row[1] !== null && row[1] !== "").map(([label, value]) => [make("dt", {}, label), make("dd", {}, value)]).flat());
  }

  // ---- light and dark

  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });

  // ---- edits to copy

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const text = data.diffs[Number(button.dataset.diff)];
      const before = button.textContent;
      button.textContent = (await copied(text)) ? "Copied" : "Copying is not allowed here";
      setTimeout(() => { button.textContent = before; }, 1600);
    });
  }
  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = make("textarea", { "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  // ---- keys: one element of a picture is reached by Tab, the others from there by arrows

  function roving(elements, place) {
    let current = 0;
    const reach = (index) => {
      elements[current].setAttribute("tabindex", "-1");
      current = index;
      elements[current].setAttribute("tabindex", "0");
      elements[current].focus({ preventScroll: false });
    };
    elements.forEach((element, index) => {
      element.setAttribute("tabindex", index ? "-1" : "0");
      element.addEventListener("focus", () => {
        elements[current].setAttribute("tabindex", "-1");
        current = index;
        element.setAttribute("tabindex", "0");
      });
      element.addEventListener("keydown", (event) => {
        const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (way) {
          const next = nearest(place, index, way);
          if (next >= 0) reach(next);
          event.preventDefault();
        } else if (event.key === "Home" || event.key === "End") {
          reach(event.key === "Home" ? 0 : elements.length - 1);
          event.preventDefault();
        } else if (event.key === "Enter" || event.key === " ") {
          element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
          event.preventDefault();
        }
      });
    });
  }
  function nearest(place, from, [right, down]) {
    // what lies straight ahead first; what lies aside counts threefold
    let best = -1, least = Infinity;
    place.forEach(([x, y], index) => {
      const ahead = (x - place[from][0]) * right + (y - place[from][1]) * down;
      const aside = Math.abs((x - place[from][0]) * down) + Math.abs((y - place[from][1]) * right);
      if (index !== from && ahead > 0.5 && ahead + 3 * aside < least) { least = ahead + 3 * aside; best = index; }
    });
    return best;
  }

  // ---- axes

  function isWide(low, high) { return high / Math.max(low, 1) > 20; }
  function scaleOf(low, high, from, to) {
    const bend = isWide(low, high) ? (size) => Math.log(size + (low < 1 ? 1 : 0)) : (size) => size;
    const start = bend(low), span = bend(high) - start || 1;
    return (size) => from + ((bend(size) - start) / span) * (to - from);
  }
  function spreadOut(sizes, low, high, length, gap) {
    // each size at its place on the scale, pushed apart where marks would hide each other
    const at = scaleOf(low, high, 0, length);
    const places = sizes.map(at);
    for (let i = 1; i < places.length; i += 1) places[i] = Math.max(places[i], places[i - 1] + gap);
    let last = Math.max(length, gap * (sizes.length - 1));
    for (let i = places.length - 1; i >= 0; i -= 1) { places[i] = Math.min(places[i], last); last = places[i] - gap; }
    return places;
  }
  function labelled(places, room) {
    // which labels have room, the last one in any case
    const shown = new Set([places.length - 1]);
    let end = -Infinity;
    places.forEach((place, index) => {
      if (place - end >= room && (index === places.length - 1 || places[places.length - 1] - place >= room)) { shown.add(index); end = place; }
    });
    return shown;
  }

  // ---- the map of sizes

  const STATES = { right: "run and right", wrong: "wrong", limit: "where the model itself fails", "not run": "planned, not run" };
  const map = data.map;
  const variety = map.dims.map((_, dim) => new Set(map.marks.map((mark) => mark.sizes[dim])).size);
  const widest = map.dims.map((_, dim) => dim).sort((a, b) => variety[b] - variety[a] || a - b);  // the longest axis lies across
  const mapView = { x: widest[0] ?? 0, y: widest[1] ?? 1, at: map.dims.map(() => null), chosen: -1, areas: new Set() };
  const excluded = (sizes, free) => anyshapeFormulas.excluded(sizes).findIndex((holds, which) => !holds && !map.relations[which].dims.some((dim) => free.has(dim)));
  const colourOf = (mark) => {
    if (mark.state !== "right") return mark.state.replace(" ", "");
    if (!map.allowed || mark.ratio === null) return "right2";
    const part = mark.ratio / map.allowed;
    return `right${[1 / 16, 1 / 8, 1 / 4, 1 / 2].filter((bound) => part > bound).length}`;
  };
  function glyph(state, x, y, side) {
    const inset = side * 0.3;
    if (state === "wrong") return draw("path", { d: `M${x + inset} ${y + inset}L${x + side - inset} ${y + side - inset}M${x + side - inset} ${y + inset}L${x + inset} ${y + side - inset}` });
    if (state === "limit") return draw("path", { d: `M${x + inset} ${y + side / 2}H${x + side - inset}` });
    return null;
  }
  function drawMap() {
    const plot = byId("map-plot");
    if (!plot) return;
    const count = map.dims.length;
    const visible = map.marks.map((mark, index) => [mark, index]).filter(([mark]) => mark.sizes.every((size, dim) => (count > 2 && dim !== mapView.x && dim !== mapView.y && mapView.at[dim] !== null ? size === mapView.at[dim] : true)));
    const xs = axisOf(mapView.x, visible), ys = count > 1 ? axisOf(mapView.y, visible) : null;
    const left = ys ? 26 + Math.max(...ys.sizes.map((size) => String(size).length)) * 7 : 12, right = 26;
    const room = plot.clientWidth - left - right;
    const side = Math.max(11, Math.min(22, Math.floor(room / xs.sizes.length) - 2));
    const gap = side + 2;
    const wide = !count ? side : isWide(xs.low, xs.high) ? room : Math.min(room, Math.max(220, xs.sizes.length * 52));
    const xAt = spreadOut(xs.sizes, xs.low, xs.high, wide - side, gap);
    const deep = ys ? Math.min(430, Math.max(170, ys.sizes.length * gap)) : 0;
    const yAt = ys ? spreadOut(ys.sizes, ys.low, ys.high, deep, gap).map((place, _, all) => Math.max(...all) - place) : [0];
    const width = Math.max(...xAt, wide - side) + side, height = Math.max(...yAt) + side, top = ys ? 30 : 10;
    const picture = draw("svg", { width: width + left + right, height: height + top + (count ? 46 : 10), role: "group", "aria-label": `Map of sizes: ${map.dims.map((dim) => dim.name).join(", ")}` });
    picture.append(hatches());
    const plane = draw("g", { transform: `translate(${left} ${top})` });
    picture.append(plane);
    plane.append(draw("rect", { class: "plane", x: -5, y: -5, width: width + 10, height: height + 10, rx: 6 }));
    mapView.areas.clear();
    ground(plane, xs, ys, xAt, yAt, side, new Set(visible.map(([mark]) => `${mark.sizes[mapView.x]} ${ys ? mark.sizes[mapView.y] : 0}`)));
    axisLabels(plane, xs, ys, xAt, yAt, side, width, height);
    const cells = new Map();
    for (const [mark, index] of visible) {
      const key = `${xs.sizes.indexOf(mark.sizes[mapView.x])} ${ys ? ys.sizes.indexOf(mark.sizes[mapView.y]) : 0}`;
      cells.set(key, [...(cells.get(key) || []), index]);
    }
    const marks = [], places = [];
    for (const [key, indices] of cells) {
      const [i, j] = key.split(" ").map(Number);
      const parts = Math.ceil(Math.sqrt(indices.length)), small = (side + 1) / parts - 1;
      indices.forEach((index, place) => {
        const x = (count ? xAt[i] : 0) + (place % parts) * (small + 1), y = yAt[j] + Math.floor(place / parts) * (small + 1);
        const mark = map.marks[index];
        marks.push(draw("g", { class: `mark ${colourOf(mark)}`, role: "button", "aria-label": markLabel(mark), "data-run": index, onclick: () => chooseMark(index) },
          draw("rect", { x, y, width: small, height: small, rx: Math.min(3, small / 4) }), glyph(mark.state, x, y, small)));
        places.push([x, y]);
      });
    }
    plane.append(...marks);
    if (marks.length) roving(marks, places);
    plot.replaceChildren(picture);
    ringAround();
    mapLegend();
  }
  function axisOf(dim, visible) {
    if (!map.dims.length) return { sizes: [1], low: 1, high: 1, name: "" };
    const { name, first, last } = map.dims[dim];
    const run = new Set(visible.map(([mark]) => mark.sizes[dim]));
    const most = Math.max(first, ...run), ends = last === null ? [first] : [first, last];
    const sizes = [...new Set([...run, ...ends])].sort((a, b) => a - b);
    return { sizes, run, low: Math.min(first, ...sizes), high: Math.max(most, last === null ? most : last), name, open: last === null };
  }
  function hatches() {
    const pattern = (id, name, angle) => draw("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})` }, draw("path", { d: "M3 0V6", class: name }));
    return draw("defs", {}, pattern("hatch", "hatch", 45), pattern("hatch2", "hatch2", -45));
  }
  function ground(plane, xs, ys, xAt, yAt, side, marked) {
    // what is excluded, and what could have been run and was not
    if (!map.dims.length) return;
    const others = map.dims.map((dim, index) => mapView.at[index] ?? map.marks[0].sizes[index]);
    const free = new Set(map.dims.map((_, dim) => dim).filter((dim) => dim !== mapView.x && dim !== mapView.y && mapView.at[dim] === null));
    const dots = [], areas = { hatch: [], hatch2: [] };
    xs.sizes.forEach((x, i) => (ys ? ys.sizes : [0]).forEach((y, j) => {
      const sizes = [...others];
      sizes[mapView.x] = x;
      if (ys) sizes[mapView.y] = y;
      const by = excluded(sizes, free);
      const box = `M${xAt[i]} ${yAt[j]}h${side}v${side}h${-side}z`;
      if (marked.has(`${x} ${y}`)) return;
      if (by >= 0) areas[map.relations[by].by === "limit" ? "hatch2" : "hatch"].push(box);
      else dots.push(`M${xAt[i] + side / 2 - 1.2} ${yAt[j] + side / 2}a1.2 1.2 0 1 0 2.4 0a1.2 1.2 0 1 0 -2.4 0z`);
    }));
    if (dots.length <= 4000) plane.append(draw("path", { class: "dots", d: dots.join("") }));
    for (const [name, boxes] of Object.entries(areas)) if (boxes.length) mapView.areas.add(name) && plane.append(draw("path", { d: boxes.join(""), fill: `url(#${name})` }));
  }
  function axisLabels(plane, xs, ys, xAt, yAt, side, width, height) {
    if (!map.dims.length) return;
    const shown = labelled(xAt, 7 * String(xs.high).length + 8);
    xs.sizes.forEach((size, i) => { if (shown.has(i)) plane.append(draw("text", { x: xAt[i] + side / 2, y: height + 20, "text-anchor": "middle" }, size)); });
    plane.append(draw("text", { class: "title", x: 0, y: height + 39 }, short(xs.name, 40) + (xs.open ? " →" : "")));
    if (!ys) return;
    const shownRows = labelled(yAt.map((y) => -y), 14);
    ys.sizes.forEach((size, j) => { if (shownRows.has(j)) plane.append(draw("text", { x: -11, y: yAt[j] + side / 2 + 4, "text-anchor": "end" }, size)); });
    plane.append(draw("text", { class: "title", x: -6, y: -14 }, short(ys.name, 40) + (ys.open ? " ↑" : "")));
  }
  const sizesText = (mark) => map.dims.map((dim, index) => `${dim.name} ${mark.sizes[index]}`).join(", ") || "the example's sizes";
  function markLabel(mark) {
    const error = mark.ratio === null ? "" : `, error ${rounded(mark.ratio)} of ${map.allowed} allowed`;
    return `${sizesText(mark)}: ${STATES[mark.state]}${error}`;
  }
  function chooseMark(index) {
    mapView.chosen = index;
    ringAround();
    const mark = map.marks[index];
    const parts = [make("h3", {}, STATES[mark.state][0].toUpperCase() + STATES[mark.state].slice(1)), facts(map.dims.map((dim, place) => [dim.name, String(mark.sizes[place])]))];
    if (mark.ratio !== null && map.allowed) {
      const gauge = make("span", {});
      gauge.style.width = `${Math.min(100, Math.max(1, (100 * mark.ratio) / map.allowed))}%`;
      parts.push(make("p", {}, `Largest error ${rounded(mark.ratio)} × ${map.measure}; ${map.allowed} is allowed`, make("span", { class: "gauge", "aria-hidden": "true" }, gauge)));
    }
    if (mark.contents > 1) parts.push(make("p", { class: "quiet" }, `${mark.contents} different contents were run`));
    if (mark.values.length) parts.push(make("p", { class: "quiet" }, prose(mark.values.join("; "))));
    if (mark.sentence) parts.push(make("p", {}, prose(mark.sentence)));
    if (costs && costs.dims.length && mark.sizes.length) {
      parts.push(make("button", { type: "button", onclick: () => { setSizes(costs.dims.map((dim, place) => mark.sizes[map.dims.findIndex((one) => one.name === dim.name)] ?? sizes[place])); byId("costs").scrollIntoView(); } }, "Costs at this size"));
    }
    byId("map-detail").replaceChildren(...parts);
  }
  function ringAround() {
    const plot = byId("map-plot");
    for (const ring of plot.querySelectorAll(".ring")) ring.remove();
    const mark = plot.querySelector(`[data-run="${mapView.chosen}"]`);
    if (!mark) return;
    const box = mark.querySelector("rect");
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)));
    mark.append(draw("rect", { class: "ring", x: x - 2, y: y - 2, width: width + 4, height: height + 4, rx: 4 }));
  }
  function mapControls() {
    const controls = byId("map-controls");
    if (!controls || map.dims.length < 3) return;
    controls.hidden = false;
    const choice = (label, options, current, change) => make("label", { class: "inline" }, label, make("select", { onchange: (event) => { change(event.target.value); mapControls(); drawMap(); } },
      options.map(([value, text]) => make("option", { value, selected: String(value) === String(current) }, text))));
    const names = map.dims.map((dim, index) => [index, dim.name]);
    const parts = [
      choice("across", names.filter(([index]) => index !== mapView.y), mapView.x, (value) => { mapView.x = Number(value); mapView.at[mapView.x] = null; }),
      choice("up", names.filter(([index]) => index !== mapView.x), mapView.y, (value) => { mapView.y = Number(value); mapView.at[mapView.y] = null; }),
    ];
    map.dims.forEach((dim, index) => {
      if (index === mapView.x || index === mapView.y) return;
      const values = [...new Set(map.marks.map((mark) => mark.sizes[index]))].sort((a, b) => a - b);
      parts.push(choice(dim.name, [["", "any size"], ...values.map((value) => [value, value])], mapView.at[index] ?? "", (value) => { mapView.at[index] = value === "" ? null : Number(value); }));
    });
    controls.replaceChildren(...parts);
  }
  function mapLegend() {
    const legend = byId("map-legend");
    if (!legend) return;
    const swatch = (name, mark, words) => make("span", { class: "key" }, draw("svg", { width: 14, height: 14, "aria-hidden": "true" }, draw("g", { class: name }, draw("rect", { x: 1, y: 1, width: 12, height: 12, rx: 3, class: name }), mark)), words);
    const states = new Set(map.marks.map((mark) => mark.state));
    const keys = [];
    if (states.has("right") && map.allowed) {
      const steps = [0, 1, 2, 3, 4].map((step) => draw("rect", { x: 1 + step * 14, y: 1, width: 12, height: 12, rx: 3, class: `right${step}` }));
      keys.push(make("span", { class: "key" }, "right, error 0", draw("svg", { width: 72, height: 14, "aria-hidden": "true" }, steps), `to ${map.allowed} × ${map.measure}`));
    } else if (states.has("right")) keys.push(swatch("right2", null, "run and right"));
    if (states.has("wrong")) keys.push(swatch("wrong", glyph("wrong", 1, 1, 12), "wrong"));
    if (states.has("limit")) keys.push(swatch("limit", glyph("limit", 1, 1, 12), STATES.limit));
    if (states.has("not run")) keys.push(swatch("notrun", null, STATES["not run"]));
    const area = (id, words) => make("span", { class: "key" }, draw("svg", { width: 14, height: 14, "aria-hidden": "true" }, draw("rect", { width: 14, height: 14, fill: `url(#${id})` })), words);
    if (mapView.areas.has("hatch")) keys.push(area("hatch", map.relations.some((one) => one.by === "given up") ? "excluded by the declaration or given up" : "excluded by the declaration"));
    if (mapView.areas.has("hatch2")) keys.push(area("hatch2", `excluded by a limit: ${map.relations.filter((one) => one.by === "limit").map((one) => one.text).join(", ")}`));
    if (map.dims.length) keys.push(make("span", { class: "key" }, draw("svg", { width: 8, height: 14, "aria-hidden": "true" }, draw("circle", { class: "dots", cx: 4, cy: 7, r: 1.6 })), "not run"));
    legend.replaceChildren(...keys);
  }

  // ---- costs: every formula at the sliders' sizes

  const costs = data.costs;
  let sizes = costs ? costs.dims.map((dim) => dim.start) : [];
  const lives = costs ? livesOf() : null;
  const allowed = (trial) => anyshapeFormulas.relations(trial).every(Boolean);

  function livesOf() {
    // as in costs/liveness.py: inputs live throughout, outputs to the end, all else to its last use
    const kept = new Set([...costs.inputs, ...costs.outputs]), last = new Map();
    costs.nodes.forEach((node, place) => {
      for (const value of [...node.outputs, ...node.inputs, ...(node.captured || [])]) if (value >= 0) last.set(value, place);
    });
    const dead = costs.nodes.map(() => []);
    for (const [value, place] of last) if (!kept.has(value)) dead[place].push(value);
    return { dead, born: costs.nodes.map((node) => node.outputs.filter((value) => value >= 0)) };
  }
  function computed(at) {
    // plain loops: all of it runs for every point of every curve while a slider moves
    const numbers = anyshapeFormulas.expressions(at), bytes = [], alive = [], flops = [0, 0], moved = [0, 0], unsized = new Set();
    let held = 0, peakAt = -1;
    for (const { shape, item } of costs.values) {
      let total = shape === null || item === null ? NaN : item;
      if (shape !== null) for (const axis of shape) total *= numbers[axis];
      if (!known(total)) { unsized.add(bytes.length); total = 0; }
      bytes.push(total);
    }
    for (const value of costs.inputs) held += bytes[value];
    let peak = held;
    for (let place = 0; place < costs.nodes.length; place += 1) {
      const node = costs.nodes[place];
      for (const value of lives.born[place]) held += bytes[value];
      const now = held + (known(numbers[node.inner]) ? numbers[node.inner] : 0);
      if (now > peak) { peak = now; peakAt = place; }
      for (const value of lives.dead[place]) held -= bytes[value];
      alive.push(now);
      if (known(numbers[node.flops])) flops[0] += numbers[node.flops]; else flops[1] += 1;
      if (known(numbers[node.moved])) moved[0] += numbers[node.moved]; else moved[1] += 1;
    }
    return { numbers, bytes, unsized, alive, peak, peakAt, flops, moved };
  }
  let now = costs ? computed(sizes) : null;
  const shapeText = (value) => {
    const { shape, type, state } = costs.values[value];
    if (shape === null) return `${type}[unknown]`;
    return `${type}[${shape.map((axis) => (known(now.numbers[axis]) ? now.numbers[axis] : "?")).join(", ")}]${state === "contradicted" ? " ≠ run" : ""}`;
  };
  const formulaText = (value) => (costs.values[value].shape === null ? "" : `[${costs.values[value].shape.map((axis) => costs.expressions[axis].text).join(", ")}]`);
  const nodeFigures = (index) => {
    const node = costs.nodes[index];
    const figure = (field) => (known(now.numbers[node[field]]) ? now.numbers[node[field]] : null);
    return {
      memory: node.outputs.some((value) => now.unsized.has(value)) ? null : node.outputs.reduce((sum, value) => sum + (value >= 0 ? now.bytes[value] : 0), 0), flops: figure("flops"), moved: figure("moved"),
      time: timeOf.get(node.name) ?? null,
    };
  };
  const timeOf = new Map(Object.entries((data.times && data.times.nodes) || {}));
  const ORDERS = { memory: "memory of what it gives", flops: "FLOPs", moved: "bytes moved" };
  if (timeOf.size) ORDERS.time = "time";
  const totalOf = (order) => ({ memory: now.peak, flops: now.flops[0], moved: now.moved[0], time: 1 })[order];

  function choicesOf(dim) {
    if (dim.sizes) return dim.sizes;
    const place = map.dims.findIndex((one) => one.name === dim.name);
    const seen = place < 0 ? [] : map.marks.map((mark) => mark.sizes[place]);
    const high = dim.last ?? Math.max(dim.start * 4, dim.first + 63 * dim.step, ...seen);
    const count = Math.floor((high - dim.first) / dim.step);
    if (count <= 160) return Array.from({ length: count + 1 }, (_, step) => dim.first + step * dim.step);
    const last = dim.first + count * dim.step, ratio = Math.pow(last / Math.max(dim.first, 1), 1 / 160);
    const steps = Array.from({ length: 161 }, (_, step) => Math.round((Math.max(dim.first, 1) * Math.pow(ratio, step) - dim.first) / dim.step));
    return [...new Set([0, ...steps.map((step) => Math.max(0, Math.min(step, count))), count])].sort((a, b) => a - b).map((step) => dim.first + step * dim.step);
  }
  const choices = costs ? costs.dims.map(choicesOf) : [];
  const fits = (dim, size) => (dim.sizes ? dim.sizes.includes(size) : size >= dim.first && (dim.last === null || size <= dim.last) && (size - dim.first) % dim.step === 0);
  const near = (list, wanted) => list.reduce((best, size) => (Math.abs(size - wanted) < Math.abs(best - wanted) ? size : best), list[0]);
  function reachable(dim, wanted) {
    // the sizes nearest to what is wanted at which all relations hold, and what was moved along
    const trial = [...sizes];
    trial[dim] = wanted;
    if (allowed(trial)) return [trial, ""];
    const broken = costs.relations.filter((_, index) => !anyshapeFormulas.relations(trial)[index]).map((one) => one.text).join(", ");
    const mine = choices[dim].filter((size) => { trial[dim] = size; return allowed(trial); });
    if (mine.some((size) => size !== sizes[dim])) { trial[dim] = near(mine, wanted); return [trial, `${broken} holds ${costs.dims[dim].name} at ${trial[dim]}`]; }
    trial[dim] = wanted;
    for (let other = 0; other < trial.length; other += 1) {
      if (other === dim) continue;
      const before = trial[other];
      const theirs = [...new Set([...choices[other], wanted])].filter((size) => { trial[other] = size; return fits(costs.dims[other], size) && allowed(trial); });
      if (theirs.length) { trial[other] = near(theirs, before); return [trial, `${broken} moves ${costs.dims[other].name} to ${trial[other]}`]; }
      trial[other] = before;
    }
    return [[...sizes], `${broken} holds ${costs.dims[dim].name} at ${sizes[dim]}`];
  }

  const sliders = [];
  function makeSliders() {
    costs.dims.forEach((dim, index) => {
      const range = make("input", { type: "range", min: 0, max: choices[index].length - 1, step: 1, "aria-label": `${dim.name}, slider`, oninput: () => wish(index, choices[index][Number(range.value)]) });
      const number = make("input", { type: "number", min: dim.first, max: dim.last, step: dim.step, "aria-label": dim.name, onchange: () => wish(index, snapped(dim, Number(number.value))) });
      const words = dim.sizes ? dim.sizes.join(", ") : `${dim.first} to ${dim.last ?? "any"}${dim.step === 1 ? "" : ` step ${dim.step}`}`;
      sliders.push([range, number]);
      byId("sliders").append(make("div", { class: "slider" }, make("span", { class: "name" }, dim.name, make("span", { class: "quiet" }, short(words, 60))), number, range));
    });
  }
  function snapped(dim, wanted) {
    if (!known(wanted)) return sizes[costs.dims.indexOf(dim)];
    if (dim.sizes) return near(dim.sizes, wanted);
    const step = Math.max(0, Math.round((wanted - dim.first) / dim.step)), most = dim.last === null ? Infinity : Math.floor((dim.last - dim.first) / dim.step);
    return dim.first + Math.min(step, most) * dim.step;
  }
  function wish(index, wanted) {
    const [reached, note] = reachable(index, wanted);
    byId("slider-note").textContent = note;
    setSizes(reached);
  }
  function setSizes(wanted) {
    sizes = wanted;
    now = computed(sizes);
    sizes.forEach((size, index) => {
      const [range, number] = sliders[index];
      range.value = choices[index].indexOf(near(choices[index], size));
      range.setAttribute("aria-valuetext", `${costs.dims[index].name} ${size}`);
      number.value = size;
    });
    showCosts();
    later(showCurves);
  }
  const waiting = new Set();
  function later(work) {
    if (waiting.has(work)) return;
    waiting.add(work);
    requestAnimationFrame(() => { waiting.delete(work); work(); });
  }
  function showCosts() {
    const atLeast = (missing) => (missing ? "≥ " : "");
    const total = (label, figure, growth) => make("div", { class: "total" }, make("div", { class: "label" }, label), make("div", { class: "figure" }, figure), make("div", { class: "growth" }, growth || ""));
    const growth = costs.growth || {};
    byId("totals").replaceChildren(
      total("Peak memory of values", atLeast(now.unsized.size) + inBytes(now.peak), growth.memory ? `grows as ${typeset(growth.memory)}` : ""),
      total("Weights", inBytes(costs.weights), "whatever the sizes"),
      total("FLOPs", atLeast(now.flops[1]) + inFlops(now.flops[0]), growth.flops ? `grows as ${typeset(growth.flops)}` : ""),
      total("Bytes moved", atLeast(now.moved[1]) + inBytes(now.moved[0]), "read and written by nodes"),
    );
    showTimeline();
    clearTimeout(resting);
    if (Math.min(nodesShown, costs.nodes.length) > 100) resting = setTimeout(showNodes, 150);  // a long table waits until the slider rests
    else showNodes();
    if (graphState.drawn) relabel();
    if (graphState.chosen !== null) showNode(graphState.chosen);
  }
  const typeset = (formula) => formula.replace(/(?:\*\*|\^)(\d+)/g, (_, power) => [...power].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")).replace(/ ?\* ?/g, "·");
  function showFormulas() {
    const growth = costs.growth || {};
    const rows = [["Peak memory, bytes", growth.memory_formula], ["FLOPs", growth.flops_formula]].filter(([, formula]) => formula);
    if (rows.length) byId("formulas").append(make("details", {}, make("summary", {}, "The whole formulas"), facts(rows.map(([label, formula]) => [label, make("code", {}, typeset(formula))]))));
  }
  function heldText() {
    const counts = {};
    for (const value of costs.values) counts[value.state] = (counts[value.state] || 0) + 1;
    const words = { held: "held in real runs", unknown: "unknown", contradicted: "contradicted by a run", "not run": "not held against a run" };
    const told = Object.entries(words).filter(([state]) => counts[state]).map(([state, text]) => `${counts[state]} ${text}`);
    const where = costs.held_at.map((one) => Object.entries(one).map(([dim, size]) => `${dim} ${size}`).join(", ")).filter(Boolean).join("; ");
    return `Shapes of ${plural(costs.values.length, "value")}: ${told.join(", ") || "none"}${where ? ` (${where})` : ""}.`;
  }

  // ---- charts

  function gridlines(ticks, words, y, left, width) {
    const tidy = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");  // 5.00 kB as 5 kB
    return ticks.flatMap((tick) => [draw("path", { class: "gridline", d: `M${left} ${y(tick)}H${width - 8}` }), draw("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tick ? tidy(words(tick)) : "0")]);
  }
  function ticksUpTo(most, count, least = 1) {
    const step = Math.pow(10, Math.floor(Math.log10(most / count || 1)));
    const nice = Math.max(least, [1, 2, 5, 10].map((factor) => factor * step).find((one) => most / one <= count) || step * 10);
    return Array.from({ length: Math.floor(most / nice) + 1 }, (_, index) => index * nice);
  }
  function showCurves() {
    const [columns, width] = curveColumns();
    const pairs = costs.dims.map((dim, index) => {
      const points = curvePoints(dim, index);
      return !points.length ? [] : [["Peak memory", (found) => found.peak, inBytes], ["FLOPs", (found) => found.flops[0], inFlops]].map(([label, pick, words]) => curve(dim, index, label, words, width, points.map(([size, found]) => [size, pick(found)])));
    });
    byId("curves").replaceChildren(...(columns === 3 ? [0, 1].flatMap((kind) => pairs.flatMap((pair) => pair.slice(kind, kind + 1))) : pairs.flat()));
  }
  function curveColumns() {
    const room = byId("curves").clientWidth, dims = costs.dims.length, columns = room < 700 ? 1 : room < 960 || dims < 3 ? 2 : dims === 3 ? 3 : 4;
    byId("curves").style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    return [columns, Math.max(200, (room - 40 * (columns - 1)) / columns)];
  }
  function curvePoints(dim, index) {
    const all = choices[index], first = all[0], span = Math.max(all[all.length - 1], sizes[index]) - first;
    const spaced = all.length <= 40 ? all : Array.from({ length: 33 }, (_, step) => snapped(dim, first + (span * step) / 32));
    return [...new Set([...spaced, sizes[index]])].sort((a, b) => a - b)
      .map((size) => { const trial = [...sizes]; trial[index] = size; return [size, trial]; })
      .filter(([, trial]) => allowed(trial)).map(([size, trial]) => [size, computed(trial)]);
  }
  function curve(dim, index, label, words, width, points) {
    const height = width < 300 ? 130 : 150, left = 62, bottom = 24, top = 8;
    const most = Math.max(...points.map(([, value]) => value), 1);
    const low = points[0][0], high = points[points.length - 1][0];
    const x = (size) => left + ((size - low) / (high - low || 1)) * (width - left - 8), y = (value) => height - bottom - (value / most) * (height - bottom - top);
    const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${label} against ${dim.name}: ${words(points[0][1])} at ${low}, ${words(points[points.length - 1][1])} at ${high}` });
    picture.append(...gridlines(ticksUpTo(most, 4), words, y, left, width));
    const path = points.map(([size, value], place) => `${place ? "L" : "M"}${x(size).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    picture.append(draw("path", { class: "curve-area", d: `${path}L${x(high)} ${y(0)}L${x(low)} ${y(0)}Z` }), draw("path", { class: "curve-line", d: path }));
    const current = points.find(([size]) => size === sizes[index]);
    if (current) picture.append(draw("circle", { class: "curve-dot", cx: x(current[0]), cy: y(current[1]), r: 4 }));
    picture.append(draw("text", { x: left, y: height - 6 }, low), draw("text", { x: width - 8, y: height - 6, "text-anchor": "end" }, high));
    if (current && x(current[0]) > left + 40 && x(current[0]) < width - 60) picture.append(draw("text", { x: x(current[0]), y: height - 6, "text-anchor": "middle", class: "title" }, current[0]));
    return make("div", { class: "curve" }, make("h3", {}, make("strong", {}, label), ` against ${dim.name}`), picture);
  }
  function showTimeline() {
    const place = byId("timeline"), width = Math.max(320, place.clientWidth), height = 160, left = 58, bottom = 10, top = 26;
    const count = now.alive.length;
    if (!count) { place.replaceChildren(make("p", { class: "empty" }, "This file has no nodes.")); return; }
    const y = (value) => height - bottom - (value / (now.peak || 1)) * (height - bottom - top);
    const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Memory alive at each of ${count} nodes; ${inBytes(now.peak)} at most${now.peakAt < 0 ? "" : `, at ${costs.nodes[now.peakAt].name}`}` });
    picture.append(...gridlines(ticksUpTo(now.peak || 1, 4), inBytes, y, left, width));
    const together = Math.ceil((2 * count) / (width - left - 8));  // of nodes nearer than two pixels, the one that holds the most
    const most = Array.from({ length: Math.ceil(count / together) }, (_, part) => Math.max(...now.alive.slice(part * together, (part + 1) * together)));
    const step = (width - left - 8) / most.length;
    const path = most.map((value, index) => `${index ? "L" : "M"}${(left + index * step).toFixed(1)} ${y(value).toFixed(1)}h${step.toFixed(2)}`).join("");
    picture.append(draw("path", { class: "curve-area", d: `${path}V${y(0)}H${left}Z` }), draw("path", { class: "curve-line", "stroke-width": 1.4, d: path }));
    if (now.peakAt >= 0) {
      const at = left + (Math.floor(now.peakAt / together) + 0.5) * step, node = costs.nodes[now.peakAt], after = at < width / 2;
      picture.append(draw("circle", { class: "curve-dot", cx: at, cy: y(now.peak), r: 4 }), draw("text", { x: at + (after ? 9 : -9), y: y(now.peak) - 9, "text-anchor": after ? "start" : "end", class: "title" }, short(`${inBytes(now.peak)} at ${node.op} ${node.name}`, Math.floor(((after ? width - at : at) - 12) / 7.2))));
    }
    place.replaceChildren(picture);
  }
  let nodesShown = 12, resting = 0;
  function showNodes() {
    const order = byId("node-order").value || "memory";
    const rows = costs.nodes.map((_, index) => [index, nodeFigures(index)]).sort((a, b) => (b[1][order] || 0) - (a[1][order] || 0) || a[0] - b[0]).slice(0, nodesShown);
    const most = rows.length ? rows[0][1][order] || 1 : 1;
    byId("node-table").tBodies[0].replaceChildren(...rows.map(([index, figures]) => {
      const node = costs.nodes[index], meter = make("span", {});
      meter.style.width = `${(100 * (figures[order] || 0)) / most}%`;
      return make("tr", { "data-node": index },
        make("td", { class: "words" }, make("button", { type: "button", class: "linked", onclick: () => openNode(index) }, node.op), " ", make("span", { class: "quiet" }, node.name)),
        make("td", { class: "words mono shapes" }, node.outputs.filter((value) => value >= 0).map((value, place) => [place ? make("br") : null, shapeText(value)]).flat()),
        make("td", {}, inBytes(figures.memory)), make("td", {}, figures.flops === null ? "unknown" : inFlops(figures.flops)), make("td", {}, figures.moved === null ? "unknown" : inBytes(figures.moved)),
        make("td", { class: "words bar-cell" }, make("div", { class: "meter", "aria-hidden": "true" }, meter), make("span", { class: "quiet small" }, figures[order] === null ? "unknown" : percent(figures[order] / (totalOf(order) || 1)))));
    }));
    byId("more-nodes").hidden = costs.nodes.length <= 12;
    byId("more-nodes").textContent = nodesShown > 12 ? "Show fewer" : `Show all ${costs.nodes.length} nodes`;
  }

  // ---- time against size

  function showTimes() {
    const times = data.times;
    const varied = Object.keys(times.sizes[0] || {}).filter((dim) => new Set(times.sizes.map((one) => one[dim])).size > 1);
    const label = (index) => (varied.length ? varied : Object.keys(times.sizes[index])).map((dim) => `${varied.length > 1 ? `${dim} ` : ""}${times.sizes[index][dim]}`).join(", ");
    byId("times-lead").textContent = `Milliseconds per run, ${[times.machine, times.threads ? plural(times.threads, "thread") : "", times.rounds ? plural(times.rounds, "round") : ""].filter(Boolean).join(", ")}.`;
    const place = byId("times-plot"), width = Math.max(320, place.clientWidth), height = 260, left = 58, bottom = 40, top = 10;
    const points = times.series.flatMap((one) => one.points.filter(Boolean));
    const most = Math.max(...points.map((one) => one.high ?? one.median), 1e-6);
    const numeric = varied.length === 1, values = times.sizes.map((one) => one[varied[0]]);
    const along = numeric ? scaleOf(Math.min(...values), Math.max(...values), left + 12, width - 24) : null;
    const x = (index) => (numeric ? along(values[index]) : left + 20 + (index / Math.max(1, times.sizes.length - 1)) * (width - left - 60));
    const y = (value) => height - bottom - (value / most) * (height - bottom - top);
    const words = (value) => `${value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toPrecision(2)} ms`;
    const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Time against size; the same as a table stands below" });
    picture.append(...gridlines(ticksUpTo(most, 4, 0), words, y, left, width));
    const shown = labelled(times.sizes.map((_, index) => x(index)), 64);
    times.sizes.forEach((_, index) => { if (shown.has(index)) picture.append(draw("text", { x: x(index), y: height - bottom + 18, "text-anchor": "middle" }, label(index))); });
    if (numeric) picture.append(draw("text", { class: "title", x: left, y: height - 4 }, varied[0]));
    times.series.forEach((series, which) => {
      const found = series.points.map((point, index) => [index, point]).filter(([, point]) => point).sort((a, b) => x(a[0]) - x(b[0]));
      const line = found.map(([index, point], place) => `${place ? "L" : "M"}${x(index).toFixed(1)} ${y(point.median).toFixed(1)}`).join("");
      const upper = found.map(([index, point]) => `${x(index).toFixed(1)} ${y(point.high ?? point.median).toFixed(1)}`), lower = found.map(([index, point]) => `${x(index).toFixed(1)} ${y(point.low ?? point.median).toFixed(1)}`).reverse();
      if (found.length) picture.append(draw("path", { class: `spread series${which % 5}`, d: `M${[...upper, ...lower].join("L")}Z` }), draw("path", { class: `series series${which % 5}`, "stroke-dasharray": ["", "6 3", "2 3", "8 3 2 3", "1 3"][which % 5] || null, d: line }));
      for (const [index, point] of found) picture.append(draw("circle", { class: `series${which % 5}`, cx: x(index), cy: y(point.median), r: 3 }));
    });
    for (const line of picture.querySelectorAll(".series")) line.style.fill = "none";
    place.replaceChildren(picture);
    byId("times-legend").replaceChildren(...times.series.map((series, which) => make("span", { class: "key" }, draw("svg", { width: 26, height: 10, "aria-hidden": "true" }, draw("path", { class: `series series${which % 5}`, "stroke-dasharray": ["", "6 3", "2 3", "8 3 2 3", "1 3"][which % 5] || null, d: "M0 5H26" })), series.name)));
    byId("times-table").replaceChildren(
      make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "words" }, "sizes"), times.series.map((series) => make("th", { scope: "col" }, series.name)))),
      make("tbody", {}, times.sizes.map((one, index) => make("tr", {}, make("td", { class: "words" }, Object.entries(one).map(([dim, size]) => `${dim} ${size}`).join(", ")),
        times.series.map((series) => make("td", {}, series.points[index] ? `${words(series.points[index].median)} (${words(series.points[index].low)} to ${words(series.points[index].high)})` : ""))))));
  }

  function showTimesOfNodes() {
    const { sizes: all, profiled_at: at } = data.times, place = byId("times-nodes"), operators = new Map(Object.entries(data.times.operators || {}));
    const rows = [...timeOf].sort((a, b) => b[1] - a[1]), known = new Map(costs ? costs.nodes.map((node, index) => [node.name, index]) : []);
    if (!rows.length) return;
    place.hidden = false;
    const where = Object.entries(all[at] || {}).map(([dim, size]) => `${dim} ${size}`).join(", ");
    const fused = rows.reduce((sum, [name, share]) => sum + (known.has(name) ? 0 : share), 0);
    byId("times-nodes-lead").textContent = `By ONNX Runtime's own profile${where ? ` at ${where}` : ""}, of the graph as it optimised it${costs && fused > 0.0005 ? `: ${percent(fused)} of the time is in nodes that it made, and stands at none of the file's` : ""}.`;
    place.querySelector("tbody").replaceChildren(...rows.slice(0, 20).map(([name, share]) => {
      const operator = operators.get(name) || "", meter = make("span", {});
      meter.style.width = `${(100 * share) / rows[0][1]}%`;
      return make("tr", {}, make("td", { class: "words" }, known.has(name) && graph ? make("button", { type: "button", class: "linked", onclick: () => openNode(known.get(name)) }, operator) : operator, " ", make("span", { class: "quiet" }, name)),
        make("td", { class: "words bar-cell" }, make("div", { class: "meter", "aria-hidden": "true" }, meter), make("span", { class: "quiet small" }, percent(share))));
    }));
  }

  // ---- the graph: nothing is drawn before it is unfolded

  const graph = data.graph;
  const graphState = { open: new Set(), chosen: null, zoom: null, colour: "memory", drawn: false };
  const parents = new Map(), homes = new Map();
  if (graph && costs) graph.groups.forEach((group, index) => group.items.forEach((item) => (item.group !== undefined ? parents.set(item.group, index) : homes.set(item.node, index))));

  function laidOut(index) {
    // a group with those of its items that are unfolded; each needs more room, and all behind it move aside
    const group = graph.groups[index], across = [], down = [];
    const moved = (stretches, place) => place + stretches.reduce((sum, one) => sum + one.more * Math.min(1, Math.max(0, (place - one.from) / (one.to - one.from))), 0);
    const inner = new Map();
    group.items.forEach((item, place) => {
      if (item.group === undefined || !graphState.open.has(item.group)) return;
      const child = laidOut(item.group), [x, y, width, height] = group.boxes[place];
      inner.set(place, child);
      for (const [stretches, from, length, wanted] of [[across, x, width, Math.max(child.width + 24, 230)], [down, y, height, child.height + 48]]) {
        const has = moved(stretches, from + length) - moved(stretches, from);
        if (has < wanted) stretches.push({ from, to: from + length, more: wanted - has });
      }
    });
    const X = (place) => moved(across, place), Y = (place) => moved(down, place);
    const boxes = group.boxes.map(([x, y, width, height]) => [X(x), Y(y), X(x + width) - X(x), Y(y + height) - Y(y)]);
    boxes.forEach((box, place) => {
      if (inner.has(place)) return;
      const [, , width, height] = group.boxes[place];  // what is folded keeps its size, in the middle of its room
      box[0] += (box[2] - width) / 2; box[1] += (box[3] - height) / 2; box[2] = width; box[3] = height;
    });
    const edges = group.edges.map(([from, to, points]) => [from, to, points.map(([x, y]) => [X(x), Y(y)])]);
    return { group, boxes, edges, inner, width: X(group.width), height: Y(group.height) };
  }
  function drawGraph(focus) {
    const layout = laidOut(graph.root), view = byId("graph-view"), margin = 20;
    const scroll = [view.scrollLeft, view.scrollTop];
    const zoom = graphState.zoom ?? Math.max(0.62, Math.min(1, (view.clientWidth - 2) / (layout.width + 2 * margin)));  // whole, where it can be read then
    const picture = draw("svg", { width: (layout.width + 2 * margin) * zoom, height: (layout.height + 2 * margin) * zoom, "data-zoom": zoom, viewBox: `${-margin} ${-margin} ${layout.width + 2 * margin} ${layout.height + 2 * margin}` });
    const items = [], places = [];
    drawGroup(picture, layout, 0, 0, items, places);
    view.replaceChildren(picture);
    [view.scrollLeft, view.scrollTop] = graphState.drawn ? scroll : [Math.max(0, ((layout.width + 2 * margin) * zoom - view.clientWidth) / 2), 0];
    graphState.drawn = true;
    relabel();
    roving(items, places);
    if (focus !== undefined) {
      const found = items.find((item) => item.dataset.key === focus);
      if (found) { found.focus({ preventScroll: true }); found.scrollIntoView({ block: "nearest", inline: "nearest" }); }
    }
  }
  function drawGroup(parent, layout, left, top, items, places) {
    for (const [from, to, points] of layout.edges) parent.append(draw("path", { class: "edge", d: edgePath(ended(points, layout.boxes[from], layout.boxes[to])), transform: `translate(${left} ${top})` }));
    layout.group.items.forEach((item, place) => {
      const [x, y, width, height] = layout.boxes[place], isGroup = item.group !== undefined, inner = layout.inner.get(place);
      const key = isGroup ? `group${item.group}` : `node${item.node}`;
      const box = draw("g", { class: `item ${isGroup ? "group" : "node"}${inner ? " opened" : ""}`, role: "button", "data-key": key, "aria-expanded": isGroup ? String(Boolean(inner)) : null, transform: `translate(${left + x} ${top + y})`,
        onclick: (event) => { event.stopPropagation(); if (isGroup) toggle(item.group); else chooseNode(item.node); } },
      draw("rect", { width, height, rx: inner ? 10 : 6 }));
      box.dataset.width = width;
      box.dataset.height = height;
      parent.append(box);
      items.push(box);
      places.push([left + x + width / 2, top + y + (inner ? 0 : height / 2)]);
      if (inner) drawGroup(parent, inner, left + x + (width - inner.width) / 2, top + y + 36, items, places);
    });
  }
  function ended(points, from, to) {
    // an edge begins and ends at the boxes as they are now
    const line = points.map((point) => [...point]);
    line[0] = [Math.min(from[0] + from[2], Math.max(from[0], line[0][0])), from[1] + from[3]];
    line[line.length - 1] = [Math.min(to[0] + to[2], Math.max(to[0], line[line.length - 1][0])), to[1]];
    return line;
  }
  function edgePath(points) {
    let path = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
    for (let index = 1; index < points.length; index += 1) {
      const [x0, y0] = points[index - 1], [x1, y1] = points[index], middle = (y0 + y1) / 2;
      path += `C${x0.toFixed(1)} ${middle.toFixed(1)} ${x1.toFixed(1)} ${middle.toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`;
    }
    return path;
  }
  const members = new Map();
  function nodesIn(group) {
    if (!members.has(group)) members.set(group, graph.groups[group].items.flatMap((item) => (item.group !== undefined ? nodesIn(item.group) : [item.node])));
    return members.get(group);
  }
  const FLAGS = { fault: ["!", "a finding is about it"], doubt: ["?", "not all of it is known"] };
  const UNSURE = { unknown: "a shape is not known", contradicted: "a shape is contradicted by a run" };
  const flags = costs ? costs.nodes.map((node) => ({ fault: node.fault, doubt: node.mark || node.outputs.map((value) => value >= 0 && UNSURE[costs.values[value].state]).find(Boolean) })) : [];
  function graphLegend() {
    const told = Object.entries(FLAGS).filter(([kind]) => flags.some((node) => node[kind]));
    byId("graph-legend").append(...told.map(([kind, [sign, words]]) => make("span", { class: "key" }, make("strong", { class: `sign ${kind}` }, sign), words)));
  }
  function relabel() {
    const whole = graphState.colour === "memory" ? now.bytes.reduce((sum, one) => sum + one, 0) : totalOf(graphState.colour);
    for (const box of byId("graph-view").querySelectorAll(".item")) {
      const isGroup = box.dataset.key.startsWith("group"), index = Number(box.dataset.key.replace(/\D+/, "")), width = Number(box.dataset.width), height = Number(box.dataset.height);
      const nodes = isGroup ? nodesIn(index) : [index];
      const share = nodes.reduce((sum, node) => sum + (nodeFigures(node)[graphState.colour] || 0), 0) / (whole || 1);
      const flag = ["fault", "doubt"].find((kind) => nodes.some((node) => flags[node][kind])), letters = Math.floor((width - 8) / 5.9);
      const group = isGroup ? graph.groups[index] : null, node = isGroup ? null : costs.nodes[index];
      const opened = box.classList.contains("opened");
      const first = isGroup ? group.name || group.title : node.op;
      const gives = isGroup ? "" : node.outputs.filter((value) => value >= 0).map((value) => shapeText(value).replace(/^\w+/, "")).join(" ");
      const second = isGroup ? plural(nodes.length, "node") : gives.replace(/, /g, "×").replace(/[[\]]/g, "") || "scalar";
      for (const old of [...box.children].slice(1)) old.remove();
      const upper = opened ? 18 : height >= 34 ? height / 2 - 3 : height / 2 + 4;
      const label = (text, y, name, most) => draw("text", { x: opened ? 12 : width / 2, y, "text-anchor": opened ? "start" : "middle", class: name }, short(text, Math.max(3, most)));
      box.append(label(first, upper, "title", Math.floor((width - 16) / 7.4)));
      const fits = first.length * 8 + second.length * 6.5 < width - 36;
      if (opened && fits) box.append(draw("text", { x: width - 12, y: upper, "text-anchor": "end" }, second));
      if (!opened && height >= 34) box.append(label(second, height / 2 + 13, "sub", letters));
      if (!opened && share > 0.004) box.append(draw("rect", { class: "share", x: 1, y: height - 4, width: Math.max(1, (width - 2) * Math.min(1, share)), height: 3, rx: 1.5 }));
      if (flag) box.append(draw("circle", { class: "flag", cx: width - 2, cy: 2, r: 8.5 }), draw("text", { class: "flag", x: width - 2, y: 6.5, "text-anchor": "middle" }, FLAGS[flag][0]));
      for (const kind of Object.keys(FLAGS)) box.classList.toggle(kind, flag === kind);
      box.classList.toggle("chosen", !isGroup && index === graphState.chosen);
      box.setAttribute("aria-label", isGroup ? `${group.title || group.name}, ${second}${flag ? `, ${FLAGS[flag][1]}` : ""}` : `${node.op} ${node.name}, ${gives}${flag ? `, ${flags[index][flag]}` : ""}`);
    }
  }
  function toggle(index) {
    if (!graphState.open.delete(index)) graphState.open.add(index);
    drawGraph(`group${index}`);
    showGroup(index);
  }
  function chooseNode(index) {
    graphState.chosen = index;
    relabel();
    showNode(index);
  }
  function openNode(index) {
    if (!graph || !homes.has(index)) return;
    for (let group = homes.get(index); group !== undefined; group = parents.get(group)) if (group !== graph.root) graphState.open.add(group);
    graphState.chosen = index;
    byId("graph").scrollIntoView();
    drawGraph(`node${index}`);
    showNode(index);
  }
  function showGroup(index) {
    const nodes = nodesIn(index), group = graph.groups[index];
    const sum = (field) => nodes.reduce((total, node) => total + (nodeFigures(node)[field] || 0), 0);
    byId("graph-detail").replaceChildren(make("h3", {}, group.title || group.name), facts([["nodes", String(nodes.length)], ["gives", inBytes(sum("memory"))], ["FLOPs", `${inFlops(sum("flops"))}, ${percent(sum("flops") / (now.flops[0] || 1))}`], ["moved", inBytes(sum("moved"))], ["time", ORDERS.time ? percent(sum("time")) : ""]]));
  }
  function showNode(index) {
    const node = costs.nodes[index], figures = nodeFigures(index);
    const values = (list) => list.filter((value) => value >= 0).map((value) => make("p", {}, make("code", {}, costs.values[value].name), make("br"), make("span", { class: "mono" }, shapeText(value)), make("br"), make("span", { class: "mono quiet" }, formulaText(value)),
      costs.values[value].state === "held" ? "" : make("span", { class: "state" }, ` ${{ unknown: "shape unknown", contradicted: "contradicted by a run", "not run": "not held against a run" }[costs.values[value].state]}`)));
    byId("graph-detail").replaceChildren(...[
      make("h3", {}, `${node.op} `, make("span", { class: "quiet" }, node.name)),
      node.fault ? make("p", { class: "fault" }, prose(node.fault)) : null,
      node.mark ? make("p", { class: "state" }, node.mark) : null,
      facts([["line", node.source || ""], ["module", node.scope.join(" › ")], ["memory", figures.memory === null ? "unknown" : `${inBytes(figures.memory)}, ${percent(figures.memory / (now.peak || 1))} of the peak`], ["FLOPs", figures.flops === null ? "unknown" : `${inFlops(figures.flops)}, ${percent(figures.flops / (now.flops[0] || 1))}`], ["moved", figures.moved === null ? "unknown" : inBytes(figures.moved)], ["time", figures.time === null ? "" : percent(figures.time)]]),
      make("p", { class: "quiet" }, "gives"), ...values(node.outputs),
      ...(node.inputs.some((value) => value >= 0) ? [make("p", { class: "quiet" }, "takes"), ...values(node.inputs)] : []),
      ...(node.weights || []).map((weight) => make("p", {}, make("code", {}, weight), make("span", { class: "quiet" }, " weight"))),
    ].filter(Boolean));
  }
  function search() {
    const wanted = byId("find").value.trim().toLowerCase();
    const hits = wanted ? costs.nodes.map((node, index) => [node, index]).filter(([node]) => `${node.name} ${node.op} ${node.source || ""} ${node.scope.join(".")}`.toLowerCase().includes(wanted)) : [];
    byId("found").replaceChildren(...hits.slice(0, 50).map(([node, index]) => make("li", {}, make("button", { type: "button", class: "linked", onclick: () => openNode(index) }, `${node.op} ${node.name}`), " ", make("span", { class: "quiet" }, node.source || node.scope.join(".")))),
      ...(hits.length > 50 ? [make("li", { class: "quiet" }, `and ${hits.length - 50} more`)] : wanted && !hits.length ? [make("li", { class: "quiet" }, "Nothing is called so.")] : []));
  }

  // ---- all of it

  mapControls();
  drawMap();
  if (costs) {
    byId("node-order").append(...Object.entries(ORDERS).map(([value, text]) => make("option", { value }, text)));
    byId("node-order").addEventListener("change", showNodes);
    byId("more-nodes").addEventListener("click", () => { nodesShown = nodesShown > 12 ? 12 : Infinity; showNodes(); });
    byId("held").textContent = heldText();
    showFormulas();
    makeSliders();
    setSizes(sizes);
  }
  if (data.times) { showTimes(); showTimesOfNodes(); }
  if (graph && costs) {
    byId("graph-colour").append(...Object.entries(ORDERS).map(([value, text]) => make("option", { value }, text)));
    byId("graph-colour").addEventListener("change", (event) => { graphState.colour = event.target.value; relabel(); });
    const zoomBy = (factor) => { graphState.zoom = Math.min(2.5, Math.max(0.2, Number(byId("graph-view").firstChild.dataset.zoom) * factor)); drawGraph(); };
    byId("zoom-in").addEventListener("click", () => zoomBy(1.25));
    byId("zoom-out").addEventListener("click", () => zoomBy(0.8));
    byId("fold").addEventListener("click", () => { graphState.open.clear(); drawGraph(); });
    byId("find").addEventListener("input", search);
    graphLegend();
    drawGraph();
  }
  let lastWidth = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== lastWidth) { lastWidth = innerWidth; later(drawMap); if (costs) { later(showTimeline); later(showCurves); } if (data.times) later(showTimes); } });
  document.documentElement.dataset.ready = "yes";
})();
