/* SPDX-License-Identifier: Apache-2.0 */
"use strict";
(() => {
  const runs = JSON.parse(document.getElementById("data").textContent).runs;
  const titles = {
    "loss": "Loss",
    "learning_rate": "Learning rate",
    "examples/sec": "Examples per second",
    "global_step/sec": "Steps per second",
    "input_wait_fraction": "Share of time waiting for input",
    "memory/resident_bytes": "Memory of the process (bytes)",
    "gradient_norm": "Norm of the gradient"
  };
  const titleOf = (tag) => {
    if (Object.hasOwn(titles, tag)) return titles[tag];
    const memory = /^memory\/(.+)_bytes$/.exec(tag), use = /^device_use\/(.+)$/.exec(tag);
    return memory ? "Memory of " + memory[1] + " (bytes)" : use ? "Share of time " + use[1] + " computes" : tag;
  };
  const last = ["learning_rate", "examples/sec", "global_step/sec", "input_wait_fraction", "gradient_norm"];
  // Curves that no smoothing is to change.
  const isSteady = (tag) => tag === "learning_rate" || tag.startsWith("memory/");
  const size = {width: 460, height: 250, left: 58, right: 12, top: 10, bottom: 38};
  const several = runs.length > 1;
  const state = {smoothing: 0, logarithmic: false};

  const make = (name, attributes, parent, text) => {
    const isHtml = /^(div|h4|span|i|b)$/.test(name);
    const element =
        isHtml ? document.createElement(name) : document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  };

  // The series of a tag: those of each run, training before evaluation.
  const seriesOf = (tag) => {
    const all = [];
    runs.forEach((run, index) => {
      for (const kind of ["training", "evaluation"]) {
        const curve = run[kind][tag];
        if (!curve) continue;
        const color = several ? index % 8 : kind === "training" ? 0 : 1;
        const points = curve[0].map((step, i) => ({step, value: Number(curve[1][i])}));
        points.sort((a, b) => a.step - b.step);
        all.push({
          name: several ? run.name + ", " + kind : kind,
          kind,
          color,
          points,
          isNoisy: kind === "training" && !isSteady(tag)
        });
      }
    });
    return all;
  };

  // A running mean with a memory of `weight`, as TensorBoard has it: the first points count fully.
  const smoothed = (points, weight) => {
    let mean = 0, norm = 0;
    return points.map((point) => {
      if (!Number.isFinite(point.value)) return point;
      mean = mean * weight + (1 - weight) * point.value;
      norm = norm * weight + (1 - weight);
      return {step: point.step, value: mean / norm};
    });
  };

  const niceStep = (span, count) => {
    const rough = span / count, power = 10 ** Math.floor(Math.log10(rough)), part = rough / power;
    return (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10) * power;
  };
  const linearTicks = (low, high, count) => {
    const step = niceStep(high - low || 1, count), ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(i * step);
    return ticks;
  };
  const logarithmicTicks = (low, high) => {
    const decades = Math.log10(high / low), ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high);
         power += Math.max(1, Math.ceil(decades / 6)))
      for (const part of decades < 2 ? [1, 2, 5] : [1])
        if (part * 10 ** power >= low * (1 - 1e-9) && part * 10 ** power <= high * (1 + 1e-9))
          ticks.push(part * 10 ** power);
    return ticks.length > 1 ? ticks : linearTicks(low, high, 4).filter((tick) => tick > 0);
  };
  const digits = (spacing) => Math.max(0, Math.min(6, Math.ceil(-Math.log10(spacing || 1) - 1e-9)));
  // `largest`: of the axis, which chooses the unit of all its numbers.
  const tickText = (value, spacing, largest) => {
    if (value === 0) return "0";
    for (const [unit, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (largest >= (unit > 1e3 ? unit : 1e4)) return (value / unit).toFixed(digits(spacing / unit)) + name;
    if (largest < 1e-3) return value.toExponential(1).replace("e-", "e−");
    if (largest >= 1e3) return value.toLocaleString("en", {maximumFractionDigits: digits(spacing)});
    return value.toFixed(digits(spacing));
  };
  const valueText = (value) => Number.isFinite(value) ?
      (Number.isInteger(value) && Math.abs(value) < 1e15 ? value.toLocaleString("en") :
                                                           String(Number(value.toPrecision(5)))) :
      String(value);

  // Where numbers lie in the picture.
  const scaleOf = (series) => {
    const usable = (value) => Number.isFinite(value) && (!state.logarithmic || value > 0);
    const values = series.flatMap((one) => one.points.map((point) => point.value)).filter(usable);
    const steps = series.flatMap((one) => one.points.map((point) => point.step));
    const least = (list, start) => list.reduce((a, b) => Math.min(a, b), start),
          most = (list, start) => list.reduce((a, b) => Math.max(a, b), start);
    let low = least(values, Infinity), high = most(values, -Infinity);
    if (!values.length) [low, high] = state.logarithmic ? [0.1, 1] : [0, 1];
    if (low === high)
      [low, high] = state.logarithmic ? [low / 2, high * 2] :
                                        [low - (Math.abs(low) * 0.1 || 0.5), high + (Math.abs(high) * 0.1 || 0.5)];
    const margin = state.logarithmic ? 1 : (high - low) * 0.04;
    if (!state.logarithmic) [low, high] = [low >= 0 && low - margin < 0 ? 0 : low - margin, high + margin];
    let first = least(steps, Infinity), end = most(steps, -Infinity);
    if (first === end) [first, end] = [first - 1, end + 1];
    if (first > 0 && first < (end - first) * 0.1) first = 0;
    const across = size.width - size.left - size.right, down = size.height - size.top - size.bottom;
    const place = state.logarithmic ? (value) => Math.log(value / low) / Math.log(high / low) :
                                      (value) => (value - low) / (high - low);
    return {
      low,
      high,
      first,
      end,
      usable,
      x: (step) => size.left + across * (step - first) / (end - first),
      y: (value) => size.top + down * (1 - place(value)),
      step: (x) => first + (x - size.left) / across * (end - first)
    };
  };

  const pathOf = (points, scale) => {
    let path = "", isDown = false;
    for (const point of points) {
      if (!scale.usable(point.value)) {
        isDown = false;
        continue;
      }
      path += (isDown ? "L" : "M") + scale.x(point.step).toFixed(1) + " " + scale.y(point.value).toFixed(1);
      isDown = true;
    }
    return path;
  };

  const drawAxes = (svg, scale) => {
    const bottom = size.height - size.bottom, right = size.width - size.right;
    const ticks = state.logarithmic ? logarithmicTicks(scale.low, scale.high) : linearTicks(scale.low, scale.high, 4);
    const gaps = ticks.slice(1).map((tick, i) => tick - ticks[i]),
          isEven = gaps.every((gap) => Math.abs(gap / gaps[0] - 1) < 1e-6);
    for (const tick of ticks) {
      const spacing = isEven && gaps.length ? gaps[0] : Math.abs(tick), y = scale.y(tick);
      const largest = isEven ? Math.max(...ticks.map(Math.abs)) : Math.abs(tick);
      make("line", {class: "grid", x1: size.left, x2: right, y1: y, y2: y}, svg);
      make("text", {x: size.left - 7, y: y + 4, "text-anchor": "end"}, svg, tickText(tick, spacing, largest));
    }
    const steps = linearTicks(scale.first, scale.end, 5).filter((tick) => Number.isInteger(tick));
    for (const tick of steps) {
      make("line", {class: "axis", x1: scale.x(tick), x2: scale.x(tick), y1: bottom, y2: bottom + 4}, svg);
      make(
          "text", {x: scale.x(tick), y: bottom + 17, "text-anchor": "middle"}, svg,
          tickText(tick, steps[1] - steps[0] || 1, scale.end));
    }
    make("line", {class: "axis", x1: size.left, x2: right, y1: bottom, y2: bottom}, svg);
    make("text", {x: (size.left + right) / 2, y: size.height - 4, "text-anchor": "middle"}, svg, "step");
  };

  const drawSeries = (svg, one, scale) => {
    const isSmooth = one.isNoisy && state.smoothing > 0 && one.points.length > 2;
    const color = " s" + one.color;
    if (isSmooth) make("path", {class: "curve raw" + color, d: pathOf(one.points, scale)}, svg);
    one.shown = isSmooth ? smoothed(one.points, state.smoothing) : one.points;
    make("path", {class: "curve " + one.kind + color, d: pathOf(one.shown, scale)}, svg);
    if (one.points.length > 60 || (one.kind === "training" && one.points.length > 1)) return;
    for (const point of one.points)
      if (scale.usable(point.value))
        make("circle", {class: "dot" + color, cx: scale.x(point.step), cy: scale.y(point.value), r: 2.6}, svg);
  };

  const nearest = (points, step) => {
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle].step < step)
        low = middle;
      else
        high = middle;
    }
    return Math.abs(points[low].step - step) <= Math.abs(points[high].step - step) ? low : high;
  };

  const showValues = (chart, step) => {
    const {svg, tip, series, scale} = chart;
    const anchor = series.map((one) => one.points[nearest(one.points, step)].step)
                       .reduce((a, b) => Math.abs(b - step) < Math.abs(a - step) ? b : a);
    chart.step = anchor;
    chart.marks.replaceChildren();
    make(
        "line", {class: "guide", x1: scale.x(anchor), x2: scale.x(anchor), y1: size.top, y2: size.height - size.bottom},
        chart.marks);
    tip.replaceChildren(make("b", {}, null, "step " + anchor.toLocaleString("en")));
    for (const one of series) {
      const i = nearest(one.points, anchor), point = one.points[i], shown = one.shown[i];
      const line = make("div", {class: "s" + one.color}, tip), label = make("span", {}, line);
      make("i", {}, label);
      label.append(one.name + (point.step === anchor ? "" : " at " + point.step.toLocaleString("en")));
      make(
          "b", {}, line,
          valueText(point.value) +
              (shown.value === point.value || !Number.isFinite(point.value) ?
                   "" :
                   " (smooth " + valueText(shown.value) + ")"));
      if (scale.usable(shown.value))
        make(
            "circle", {class: "dot s" + one.color, cx: scale.x(shown.step), cy: scale.y(shown.value), r: 3.4},
            chart.marks);
    }
    tip.hidden = false;
    const box = svg.getBoundingClientRect(), factor = box.width / size.width, x = scale.x(anchor) * factor;
    const left = x + 12 + tip.offsetWidth > box.width ? x - 12 - tip.offsetWidth : x + 12;
    tip.style.left = Math.max(0, Math.min(left, box.width - tip.offsetWidth)) + "px";
    tip.style.top = box.top - tip.parentElement.getBoundingClientRect().top + 4 + "px";
  };
  const hideValues = (chart) => {
    chart.tip.hidden = true;
    chart.marks.replaceChildren();
  };

  const draw = (chart) => {
    chart.svg.replaceChildren();
    chart.scale = scaleOf(chart.series);
    drawAxes(chart.svg, chart.scale);
    for (const one of chart.series) drawSeries(chart.svg, one, chart.scale);
    chart.marks = make("g", {}, chart.svg);
    hideValues(chart);
  };

  const listen = (chart) => {
    const {svg} = chart;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      showValues(chart, chart.scale.step((event.clientX - box.left) / box.width * size.width));
    });
    svg.addEventListener("pointerleave", () => hideValues(chart));
    svg.addEventListener("blur", () => hideValues(chart));
    svg.addEventListener("keydown", (event) => {
      const direction = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!direction) return;
      event.preventDefault();
      const points = chart.series[0].points,
            at = chart.tip.hidden ? points.length - 1 : nearest(points, chart.step) + direction;
      showValues(chart, points[Math.max(0, Math.min(points.length - 1, at))].step);
    });
  };

  const addChart = (tag, parent) => {
    const series = seriesOf(tag), box = make("div", {class: "chart"}, parent), title = titleOf(tag);
    make("h4", {}, box, title);
    const words =
        series.map((one) => one.name + " ends at " + valueText(one.points[one.points.length - 1].value)).join("; ");
    const svg = make(
        "svg", {
          viewBox: "0 0 " + size.width + " " + size.height,
          role: "img",
          tabindex: "0",
          "aria-label": title + " by step: " + words
        },
        box);
    const chart = {series, svg, tip: make("div", {class: "tip"}, box)};
    listen(chart);
    draw(chart);
    return chart;
  };

  const addLegend = (parent) => {
    const entries = several ? runs.map((run, i) => [run.name, i % 8, "training"]) :
                              [["training", 0, "training"], ["evaluation", 1, "evaluation"]];
    if (several) entries.push(["training", 7, "training"], ["evaluation", 7, "evaluation"]);
    for (const [name, color, kind] of entries) {
      if (kind === "evaluation" && !runs.some((run) => Object.keys(run.evaluation).length)) continue;
      const entry = make("span", {}, parent), svg = make("svg", {viewBox: "0 0 30 12", "aria-hidden": "true"}, entry);
      make("line", {class: "curve " + kind + " s" + color, x1: 1, x2: 29, y1: 6, y2: 6}, svg);
      entry.append(name);
    }
  };

  const holder = document.getElementById("charts");
  if (!holder) return;
  const rank = (tag) => tag === "loss"   ? -1 :
      /^(memory|device_use)\//.test(tag) ? last.length + 1 :
                                           last.indexOf(tag) + 1;
  const tags = [...new Set(runs.flatMap((run) => [...Object.keys(run.training), ...Object.keys(run.evaluation)]))];
  tags.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  addLegend(document.getElementById("legend"));
  const charts = tags.map((tag) => addChart(tag, holder));
  const slider = document.getElementById("smoothing"), box = document.getElementById("logarithmic");
  const smooth = () => {
    state.smoothing = Number(slider.value);
    document.getElementById("smoothed").textContent = state.smoothing.toFixed(2);
    charts.forEach(draw);
  };
  slider.addEventListener("input", smooth);
  slider.value = charts.some((chart) => chart.series.some((one) => one.isNoisy && one.points.length >= 40)) ? 0.6 : 0;
  smooth();
  box.addEventListener("change", () => {
    state.logarithmic = box.checked;
    charts.forEach(draw);
  });
})();
