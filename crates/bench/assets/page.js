"use strict";
// Draws a report, or a run as it goes on. All figures come from the JSON in the page (or, live, from
// data.json); their names, units and help texts are those of the metrics' table.
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  let errors = 0;
  addEventListener("error", () => { root.dataset.errors = ++errors; });
  root.dataset.errors = 0;

  // ---- small things
  const el = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") made.className = value; else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };
  const svg = (tag, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const color = name => getComputedStyle(root).getPropertyValue(name).trim();
  const runColor = i => color("--c" + i % 8);
  const digits = (value, most) => value.toLocaleString("en-US", { maximumFractionDigits: most });
  const number = value => {
    if (value == null || !isFinite(value)) return "–";
    const size = Math.abs(value);
    return digits(value, size >= 100 || size === 0 ? 0 : size >= 1 ? 2 : 4);
  };
  const short = value => {
    const size = Math.abs(value);
    if (size >= 1e9) return digits(value / 1e9, 1) + " G";
    if (size >= 1e6) return digits(value / 1e6, 1) + " M";
    if (size >= 1e4) return digits(value / 1e3, 1) + " k";
    return digits(value, size >= 10 ? 0 : 3);
  };
  const bytes = value => {
    if (value == null || !isFinite(value)) return "–";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (Math.abs(value) >= 1024 && unit < 4) { value /= 1024; unit++; }
    return digits(value, Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2) + " " + units[unit];
  };
  const time = value => {
    if (value == null || !isFinite(value)) return "–";
    if (value >= 1) return digits(value, 2) + " s";
    return value >= 1e-3 ? digits(value * 1e3, 1) + " ms" : digits(value * 1e6, 0) + " µs";
  };
  const percent = value => value == null ? "–" : digits(value, 1) + " %";

  // ---- data by name
  const column = (run, name) => {
    run.index ??= new Map(run.columns.map((c, i) => [c.name, i]));
    const at = run.index.get(name);
    return at === undefined ? null : run.rows.map(row => row[at]);
  };
  const rate = (run, name) => {
    const values = column(run, name), times = column(run, "weir_bench_elapsed_seconds");
    if (!values) return null;
    // A rate needs two looks: of the first second there is none.
    return values.map((value, i) => {
      const passed = i ? times[i] - times[i - 1] : 0;
      return i && passed > 0 && value != null ? Math.max(0, value - values[i - 1]) / passed : null;
    });
  };
  // Seconds count from the first measured one; what comes before is the warm-up.
  const seconds = run => {
    const times = column(run, "weir_bench_elapsed_seconds");
    const warm = column(run, "weir_bench_warm_up_state");
    if (!warm) { run.warm = 0; return times; }
    const first = warm.findIndex(value => !value);
    const zero = first > 0 ? times[first - 1] : first === 0 ? 0 : times[times.length - 1] ?? 0;
    run.warm = first > 0 ? first : first < 0 ? times.length : 0;
    return times.map(value => value - zero);
  };
  const measured = (run, values) => {
    seconds(run);
    const from = run.warm < values.length ? run.warm : 0;
    return values.slice(from).filter(value => value != null);
  };

  // ---- line charts
  const charts = [], redraws = [];
  const axis = (format, log) => ({
    stroke: () => color("--soft"), grid: { stroke: () => color("--grid"), width: 1 },
    ticks: { show: false }, font: "11px system-ui, sans-serif", size: 58, gap: 4,
    values: (u, marks) => marks.map(mark => mark == null ? "" : format(mark)),
    // Round numbers in the unit that is shown.
    ...(format === bytes ? { incrs: Array.from({ length: 46 }, (_, i) => 2 ** i) } : {}),
    ...(log ? { filter: (u, marks) => marks.map(m => Math.log10(m) % 1 ? null : m) } : {}),
  });
  const shade = u => {
    if (!(u.data[0][0] < 0)) return;
    const [left, right] = [u.valToPos(u.scales.x.min, "x", true), u.valToPos(0, "x", true)];
    if (right <= left) return;
    u.ctx.save();
    u.ctx.fillStyle = color("--shade");
    u.ctx.fillRect(left, u.bbox.top, Math.min(right, u.bbox.left + u.bbox.width) - left, u.bbox.height);
    u.ctx.restore();
  };
  // lines: [{label, values: run => array, color, dash, fill}]; stacked ones are summed up from below.
  const chart = (where, title, hint, runOf, lines, { format = number, tick = format, stacked, log, wide,
    min } = {}) => {
    const holder = el("div");
    where.append(el("section", { class: wide ? "card wide" : "card" }, el("h2", {}, title),
      el("p", { class: "hint" }, hint), holder));
    const data = () => {
      const run = runOf();
      const values = lines.map(line => line.values(run) || run.rows.map(() => null));
      if (!stacked) return { raw: values, drawn: [seconds(lines[0].run || run), ...values] };
      const sums = [];
      values.forEach((column, i) => {
        sums.push(column.map((v, at) => v == null ? null : v + (i ? sums[i - 1][at] ?? 0 : 0)));
      });
      // From the top down, so that each layer covers the rest of the one above it.
      return { raw: values.slice().reverse(), drawn: [seconds(run), ...sums.reverse()] };
    };
    let now = data();
    const order = stacked ? lines.slice().reverse() : lines;
    const width = () => Math.max(220, holder.clientWidth);
    const options = {
      width: width(), height: wide ? 300 : 230, padding: [10, 12, 0, 0],
      cursor: { sync: { key: "weir" }, points: { size: 6 }, drag: { x: true, y: false } },
      legend: { live: true },
      scales: {
        x: { time: false },
        y: log ? { distr: 3 } : { range: (u, low, high) => [min ?? 0, high > 0 ? high * 1.06 : 1] },
      },
      axes: [{ ...axis(value => digits(value, 0) + " s"), size: 30,
        incrs: [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200] }, axis(tick, log)],
      hooks: { drawClear: [shade] },
      series: [
        { label: "time", value: (u, v) => digits(v ?? now.drawn[0].at(-1) ?? 0, 0) + " s" },
        ...order.map((line, i) => ({
          label: line.label, width: line.width || 1.6, dash: line.dash, spanGaps: false,
          stroke: () => color(line.color), points: { show: false },
          fill: stacked ? () => color(line.color) : undefined,
          value: (u, v, s, at) => {
            if (at == null) at = now.raw[i].length - 1;
            return format(now.raw[i][at]);
          },
        })),
      ],
    };
    const made = new uPlot(options, now.drawn, holder);
    new ResizeObserver(() => {
      if (made.width !== width()) made.setSize({ width: width(), height: made.height });
    }).observe(holder);
    charts.push({ made, refresh: () => { now = data(); made.setData(now.drawn); } });
  };
  // The same line of several runs, on one axis of time.
  const compare = (where, title, hint, runs, values, options) => {
    const times = [...new Set(runs.flatMap(run => seconds(run).map(s => Math.round(s))))]
      .sort((a, b) => a - b);
    const lines = runs.map((run, i) => {
      const own = new Map(seconds(run).map((s, at) => [Math.round(s), at]));
      return { label: run.name, color: "--c" + i % 8, dash: i >= 8 ? [6, 3] : undefined,
        values: () => { const v = values(run); return times.map(s => own.has(s) ? v[own.get(s)] : null); } };
    });
    const joint = { columns: [{ name: "weir_bench_elapsed_seconds" }], rows: times.map(s => [s]) };
    chart(where, title, hint, () => joint, lines, { ...options, wide: true });
  };

  // ---- box plots
  const quantile = (sorted, q) => {
    const at = (sorted.length - 1) * q, low = Math.floor(at);
    return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (at - low);
  };
  const boxes = (where, title, hint, groups, format) => {
    const holder = el("div");
    where.append(el("section", { class: "card wide" }, el("h2", {}, title),
      el("p", { class: "hint" }, hint), holder));
    const draw = () => {
      const width = Math.max(280, holder.clientWidth), row = 46, pad = 12;
      // Round numbers on the axis.
      const most = Math.max(...groups.flatMap(g => g.values), 1) * 1.02;
      const power = 10 ** Math.floor(Math.log10(most / 4));
      const step = [1, 2, 2.5, 5, 10].map(s => s * power).find(s => 5 * s >= most) ?? most / 4;
      const ticks = Math.ceil(most / step), high = ticks * step;
      const x = value => pad + (width - 2 * pad) * value / high;
      const height = groups.length * row + 34;
      const made = svg("svg", { width, height, role: "img", "aria-label": title });
      for (let i = 0; i <= ticks; i++) {
        const value = i * step, anchor = i === 0 ? "start" : i === ticks ? "end" : "middle";
        made.append(svg("line", { x1: x(value), x2: x(value), y1: 4, y2: height - 24, stroke: color("--grid") }));
        made.append(svg("text", { x: x(value), y: height - 8, "text-anchor": anchor, class: "axis" },
          format(value)));
      }
      groups.forEach((group, i) => {
        const sorted = group.values.slice().sort((a, b) => a - b);
        if (!sorted.length) return;
        const [q1, q2, q3] = [.25, .5, .75].map(q => quantile(sorted, q));
        const reach = 1.5 * (q3 - q1), middle = i * row + 30;
        const low = sorted.find(v => v >= q1 - reach), top = sorted.findLast(v => v <= q3 + reach);
        const ink = color(group.color);
        made.append(svg("text", { x: pad, y: i * row + 15 }, group.name + "  ·  median " + format(q2)));
        made.append(svg("line", { x1: x(low), x2: x(q1), y1: middle, y2: middle, stroke: ink }));
        made.append(svg("line", { x1: x(q3), x2: x(top), y1: middle, y2: middle, stroke: ink }));
        for (const end of [low, top]) {
          made.append(svg("line", { x1: x(end), x2: x(end), y1: middle - 6, y2: middle + 6, stroke: ink }));
        }
        made.append(svg("rect", { x: x(q1), y: middle - 9, width: Math.max(1.5, x(q3) - x(q1)), height: 18,
          fill: ink, "fill-opacity": .28, stroke: ink, rx: 2 }));
        made.append(svg("line", { x1: x(q2), x2: x(q2), y1: middle - 9, y2: middle + 9, stroke: ink,
          "stroke-width": 2.5 }));
        const out = sorted.filter(v => v < low || v > top);
        // Hundreds of them say no more than a sample does.
        const every = Math.ceil(out.length / 150);
        out.forEach((v, at) => {
          if (at % every === 0) made.append(svg("circle", { cx: x(v), cy: middle, r: 2, fill: ink,
            "fill-opacity": .6 }));
        });
      });
      holder.replaceChildren(made);
    };
    draw();
    redraws.push(draw);
    new ResizeObserver(draw).observe(holder);
  };

  // ---- the page
  const table = (where, given) => {
    const isNumber = given.head.map((_, i) => given.rows.every(row => /^[-–+~]?[\d.,]*\s?\S*$/.test(row[i] ?? "")
      && /\d|–|^$/.test(row[i] ?? "")) && i > 0);
    const head = el("tr", {}, ...given.head.map((h, i) => el("th", isNumber[i] ? { class: "n" } : {}, h)));
    const rows = given.rows.map((row, at) => el("tr", given.best === at ? { class: "best" } : {},
      ...row.map((cell, i) => el("td", isNumber[i] ? { class: "n" } : cell.length > 28 ? { class: "long" } : {},
        cell))));
    const body = el("div", { class: "scroll" },
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
    // A long one is opened by a click, so that the charts below it are found.
    const folded = rows.length > 40
      ? el("details", {}, el("summary", { class: "hint" }, rows.length + " rows"), body) : body;
    where.append(el("section", { class: "card wide" }, el("h2", {}, given.title),
      ...(given.hint ? [el("p", { class: "hint" }, given.hint)] : []), folded));
  };
  const tps = run => column(run, "weir_bench_rate_transactions");
  const commits = run => {
    let sum = 0;
    return tps(run)?.map(value => sum += value ?? 0);
  };
  const age = run => {
    const [a, limit] = ["age", "age_limit"].map(n => column(run, `weir_checkpoint_${n}_bytes`));
    return a && a.map((v, i) => limit[i] ? 100 * v / limit[i] : null);
  };
  const details = (where, runOf, wide) => {
    const line = (label, color, values, more) => ({ label, color, values, ...more });
    const is = name => run => column(run, name), per = name => run => rate(run, name);
    if (wide) {
      chart(where, "Throughput", "Transactions a second, each second by itself. Shaded: warm-up.", runOf,
        [line("transactions/s", "--c0", tps)], { format: number, tick: short, wide: true });
    }
    chart(where, "Checkpoint age", "Redo that recovery would have to read, and the age that is never passed.",
      runOf, [line("age", "--c0", is("weir_checkpoint_age_bytes")),
        line("limit", "--c7", is("weir_checkpoint_age_limit_bytes"), { dash: [5, 4] })], { format: bytes });
    chart(where, "Page writes by cause", "Pages written a second: because of their age, because frames were "
      + "wanted, because nothing else was to be done, because the store was closed.", runOf,
      [line("deadline", "--c0", per("weir_pool_writes_deadline_pages")),
        line("free frames", "--c1", per("weir_pool_writes_free_frames_pages")),
        line("idle", "--c2", per("weir_pool_writes_idle_pages")),
        line("shutdown", "--c3", per("weir_pool_writes_shutdown_pages"))], { tick: short, stacked: true });
    chart(where, "Latency", "How long a transaction took, percentiles of each second. Logarithmic.", runOf,
      [["p50", "--c2"], ["p90", "--c6"], ["p99", "--c0"], ["p999", "--c1"], ["max", "--c7"]].map(([q, c]) =>
        line(q === "p999" ? "p99.9" : q, c, run =>
          column(run, `weir_bench_latency_${q}_seconds`)?.map(v => v > 0 ? v : null))),
      { format: time, log: true });
    chart(where, "Pool content", "Pages in memory: changed and not yet written, as on disk, free.", runOf,
      [line("dirty", "--c1", is("weir_pool_dirty_pages")), line("clean", "--c0", is("weir_pool_clean_pages")),
        line("free", "--c6", is("weir_pool_free_pages"))], { tick: short, stacked: true });
    chart(where, "Log writes an hour", "Redo at the rate of each second, as it would add up in an hour.", runOf,
      [line("redo/h", "--c4", run => rate(run, "weir_redo_bytes")?.map(v => v == null ? null : v * 3600)),
        line("log size", "--c7", is("weir_log_capacity_bytes"), { dash: [5, 4] })], { format: bytes });
    chart(where, "Device writes", "Bytes a second that reached the disk: pages, their doublewrite copies, log.",
      runOf, [line("written", "--c0", per("weir_device_write_bytes")),
        line("log", "--c4", per("weir_log_bytes_written_bytes")),
        line("read", "--c2", per("weir_device_read_bytes"))], { format: bytes });
  };

  const main = document.querySelector("main");
  const runs = page.runs;
  const live = page.live ? el("span", { class: "live" }, "live") : "";
  main.append(el("header", {}, el("h1", {}, page.title, live), el("p", { class: "sub" }, page.subtitle)));
  for (const note of page.notes) main.append(el("p", { class: "verdict" }, note));
  const tiles = el("div", { class: "tiles" });
  main.append(tiles);
  const showTiles = () => tiles.replaceChildren(...page.tiles.map(([value, label]) =>
    el("div", { class: "tile" }, el("b", {}, value), el("span", {}, label))));
  showTiles();
  const top = el("div", { class: "grid" });
  main.append(top);
  for (const given of page.tables) table(top, given);
  let shown = 0;
  const has = run => run.rows.length > 0;
  // Runs in groups are of other programs: a chart and a box plot for each group, nothing in detail.
  const drawGroups = grouped => {
    for (const group of new Set(grouped.map(run => run.group))) {
      const drawn = grouped.filter(run => run.group === group);
      compare(top, group, "A second, each second by itself.", drawn, tps, { tick: short });
      boxes(top, group + ", compared", "Box: half of all measured seconds. Line: the median. Whiskers: up to "
        + "1.5 boxes away; dots beyond.", drawn.map((run, i) => ({ name: run.name,
        values: measured(run, tps(run)), color: "--c" + i % 8 })), short);
    }
  };
  const draw = () => {
    drawGroups(runs.filter(run => run.group && has(run)));
    const drawn = runs.filter(run => !run.group && has(run));
    if (drawn.length > 1) {
      compare(top, "Throughput", "Transactions a second of each run, from its first measured second.",
        drawn, tps, { tick: short });
      compare(top, "Transactions since the start", "All of them up to each second: which run was ahead, and when.",
        drawn, commits, { tick: short });
      compare(top, "Checkpoint age", "As percentage of the limit of the log that each run had.",
        drawn, age, { format: percent });
    }
    if (page.boxes.length || drawn.length > 1) {
      const groups = page.boxes.length ? page.boxes.map((b, i) => ({ ...b, color: "--c" + i % 8 }))
        : drawn.map((run, i) => ({ name: run.name, values: measured(run, tps(run)), color: "--c" + i % 8 }));
      boxes(top, "Throughput, compared", "Box: half of all measured seconds. Line: the median. Whiskers: up to "
        + "1.5 boxes away; dots beyond.", groups, short);
    }
    if (!drawn.length) return;
    const chosen = el("div", { class: "runs", role: "group", "aria-label": "run" });
    if (drawn.length > 1) {
      chosen.append(el("span", { class: "hint" }, "In detail:"));
      drawn.forEach((run, i) => {
        const button = el("button", { "aria-pressed": i === shown }, run.name);
        button.onclick = () => {
          shown = i;
          chosen.querySelectorAll("button").forEach((b, at) => b.setAttribute("aria-pressed", at === i));
          charts.forEach(c => c.refresh());
        };
        chosen.append(button);
      });
      main.append(chosen);
    }
    const detail = el("div", { class: "grid detail" });
    main.append(detail);
    details(detail, () => drawn[Math.min(shown, drawn.length - 1)], true);
  };
  const about = () => {
    const list = el("dl");
    for (const [key, value] of page.about) list.append(el("dt", {}, key), el("dd", {}, value));
    main.append(el("div", { class: "grid", style: "margin-top:14px" }, el("section", { class: "card wide" },
      el("h2", {}, "How it was run"), ...(page.command ? [el("pre", {}, page.command)] : []), list)));
  };

  if (page.live) {
    const run = runs[0];
    let begun = false;
    // Until there is something to draw: a large table may take minutes to load.
    const waiting = el("p", { class: "verdict" }, "Nothing was measured yet: the run is being prepared, or "
      + "has just begun.");
    tiles.before(waiting);
    const look = async () => {
      try {
        const answer = await fetch("data.json?from=" + run.rows.length, { cache: "no-store" });
        const got = await answer.json();
        if (got.from !== run.rows.length) run.rows.length = 0;
        run.columns = got.columns; run.index = undefined;
        if (got.from === run.rows.length) run.rows.push(...got.rows);
        page.tiles = got.tiles;
        showTiles();
        live.className = "live"; live.textContent = got.ended ? "ended" : "live";
        if (!begun && run.rows.length > 1) { begun = true; waiting.remove(); draw(); about(); finish(); }
        else if (begun) charts.forEach(c => c.refresh());
        if (got.ended) {
          waiting.textContent = "The run ended before there was anything to draw.";
          return;
        }
      } catch (problem) {
        live.className = "live off"; live.textContent = "no answer";
      }
      setTimeout(look, 1000);
    };
    look();
  } else {
    draw();
    about();
  }

  // What is painted follows the colour scheme of the reader.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    charts.forEach(c => c.made.redraw());
    redraws.forEach(draw => draw());
  });

  // For the tests: how many charts there are, and how many of them have something painted.
  const finish = () => setTimeout(() => {
    const painted = [...document.querySelectorAll("canvas")].filter(canvas => {
      const { width, height } = canvas;
      return width && height && canvas.getContext("2d").getImageData(0, 0, width, height).data.some(v => v);
    });
    root.dataset.width = innerWidth;
    root.dataset.charts = charts.length;
    root.dataset.painted = painted.length;
    root.dataset.overflow = Math.max(0, root.scrollWidth - root.clientWidth);
  }, 300);
  if (!page.live) finish();
})();
