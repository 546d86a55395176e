// The page: what is typed goes to Python in the worker, and what comes back is shown in one of the views.

import { drawn, light } from "./drawing.mjs";
import { fromFragment, toFragment } from "./state.mjs";

const at = (id) => document.getElementById(id);
const FIELDS = ["format", "output", "template", "tools", "eos", "prefix", "strict", "size", "expected"];
const VIEWS = { text: "Text", events: "Events", diagram: "Diagram", message: "Message", why: "Why", grammar: "Grammar", files: "Files" };
const KINDS = { content: "content", reasoning: "reasoning", tool_call_start: "name of a call", tool_call_delta: "arguments",
  dropped: "marker, dropped", malformed: "malformed", held: "held back", unread: "not read yet" };
const TOOLS = `[{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
  "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}]`;
let shipped = [], targets = [], result = null, view = "text", level = "path", target = "gbnf", turn = 0;

// --- Python ---------------------------------------------------------------------------------------------------------

const worker = new Worker("worker.mjs", { type: "module" });
const waiting = new Map();
const ready = new Promise((resolve, reject) => {
  worker.onerror = (event) => reject(new Error(event.message || "Python cannot be started in this browser"));
  worker.onmessage = ({ data }) => {
    if (data.ready) resolve();
    else if (data.progress !== undefined) progress(data.progress, data.doing);
    else waiting.get(data.id)?.(data.answer);
  };
});

function progress(value, doing) {
  at("bar").value = value;
  at("doing").textContent = doing;
}

async function ask(name, request = {}) {
  await ready;
  const id = ++turn;
  const answer = await new Promise((resolve) => { waiting.set(id, resolve); worker.postMessage({ id, name, request }); });
  waiting.delete(id);
  if (answer.error) throw new Error(answer.error);
  return answer;
}

// --- elements -------------------------------------------------------------------------------------------------------

function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function table(head, rows) {
  const made = make("table");
  for (const [kind, cells] of [["th", head], ...rows.map((row) => ["td", row])]) {
    const line = made.appendChild(make("tr"));
    for (const cell of cells) {
      if (cell instanceof Node) line.appendChild(make(kind)).appendChild(cell);
      else line.appendChild(make(kind, String(cell)));
    }
  }
  return made;
}

const json = (value) => make("pre", JSON.stringify(value, null, 2));
const heading = (text) => make("h2", text, { style: "font-size:1rem;margin:.6rem 0 .2rem" });
const request = () => Object.fromEntries(FIELDS.map((name) => [name, value(name)]));

function value(name) {
  const field = at(name);
  if (field.type === "checkbox") return field.checked;
  if (field.type === "number") return Number(field.value) || 1;
  return name === "prefix" && field.value === "" ? null : field.value;
}

// --- the views ------------------------------------------------------------------------------------------------------

const SHOW = {
  text(panel, steps) {
    const legend = panel.appendChild(make("p", "", { class: "legend" }));
    for (const [kind, words] of Object.entries(KINDS)) legend.appendChild(make("span", words, { class: kind }));
    const text = panel.appendChild(make("div", "", { class: "text" }));
    let told = 0;
    for (const { type, source } of steps.flatMap((step) => step.events)) {
      told += source.length;
      if (source) text.appendChild(make("span", source, { class: type, title: KINDS[type] ?? type }));
    }
    const read = steps.reduce((sum, step) => sum + step.delta.length, 0), all = at("output").value;
    if (read > told) text.appendChild(make("span", all.slice(told, read), { class: "held", title: KINDS.held }));
    text.appendChild(make("span", all.slice(Math.max(read, told)), { class: "unread", title: KINDS.unread }));
  },
  events(panel, steps) {
    const rows = steps.flatMap((step, index) => step.events.map((event) => [index + 1, event.type,
      event.name ?? event.arguments ?? event.text ?? "", event.status ?? event.why ?? event.id ?? ""]));
    panel.appendChild(table(["delta", "event", "says", ""], rows.reverse()));
    panel.appendChild(make("a", "What each event means", { href: "../reference/events/" }));
  },
  async diagram(panel, steps) {
    const choose = panel.appendChild(make("button", level === "path" ? "Show the whole machine" : "Show the happy path", { type: "button" }));
    choose.onclick = () => { level = level === "path" ? "whole" : "path"; show(); };
    const { mermaid, boxes } = await ask("diagram", { ...request(), level });
    const svg = drawn(mermaid);
    panel.className = level;
    panel.appendChild(make("div")).appendChild(svg);
    for (const state of [result.start, ...steps.map((step) => step.state)]) light(svg, boxes[state]);
  },
  message(panel) {
    for (const [title, name] of [["OpenAI", "openai"], ["Anthropic", "anthropic"], ["toolgram", "message"]])
      panel.append(heading(title), json(result[name]));
  },
  async why(panel) {
    const told = await ask("explain", request());
    panel.append(make("p", told.verdict), heading("Anomalies"));
    if (!result.anomalies.length) panel.append(make("p", "None: the output is as the format has it.", { class: "faint" }));
    else panel.append(table(["kind", "at", "text", "what it means"], result.anomalies.map((each) => [make("a", each.kind, { href: `../reference/anomalies/${each.kind}/` }), each.start, each.text, each.why || each.meaning])));
    if (at("expected").value) panel.append(heading("Expected"), make("pre", at("expected").value), heading("Read"), json(result.message));
    if (told.held.length) panel.append(heading("Held back until it was certain"), table(["from", "text", "outcome", "why"], told.held.map((each) => [each.start, each.text, each.outcome, each.why])));
    const better = told.alternatives.filter((each) => each.better);
    if (better.length) panel.append(heading("Formats that read more of it"), table(["format", "calls"], better.map((each) => [each.name, each.calls])));
  },
  async grammar(panel) {
    const choose = panel.appendChild(make("select", "", { "aria-label": "Target" }));
    for (const name of targets) choose.appendChild(make("option", name));
    choose.value = target;
    choose.onchange = () => { target = choose.value; show(); };
    const made = await ask("export", { ...request(), target });
    for (const note of made.notes) panel.appendChild(make("p", note, { class: "faint" }));
    panel.appendChild(make("pre", made.text));
  },
  async files(panel) {
    const made = await ask("files", request());
    if (made.report) panel.append(heading("Report"), make("pre", made.report));
    for (const ending of ["lark", "yaml"]) {
      const link = make("a", `Download ${made.name}.${ending}`, { download: `${made.name}.${ending}`,
        href: URL.createObjectURL(new Blob([made[ending]], { type: "text/plain" })) });
      panel.append(make("p"), link, make("pre", made[ending]));
    }
  },
};

let shown = 0;

async function show() {
  if (!result) return;
  const steps = result.steps.slice(0, Number(at("slider").value)), turn = ++shown;
  at("count").textContent = `${steps.length} of ${result.steps.length}`;
  at("state").textContent = steps.at(-1)?.state ?? result.start;
  for (const tab of at("tabs").children) {
    const chosen = tab.dataset.view === view;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
  }
  at("view").setAttribute("aria-labelledby", `tab-${view}`);
  const panel = make("div");
  try {
    await SHOW[view](panel, steps);
  } catch (error) {
    panel.append(make("p", error.message, { class: "faint" }));
  }
  if (turn === shown) at("view").replaceChildren(panel);
}

// --- what is typed --------------------------------------------------------------------------------------------------

let reading = 0;

async function read(slide = null) {
  const mine = ++reading;
  document.body.dataset.busy = "1";
  try {
    const made = await ask("read", request());
    if (mine !== reading) return;
    result = made;
    at("error").textContent = "";
    at("slider").max = result.steps.length;
    at("slider").value = slide ?? result.steps.length;
    await show();
  } catch (error) {
    if (mine === reading) at("error").textContent = error.message;
  }
  if (mine === reading) { delete document.body.dataset.busy; await keep(); }
}

async function keep() {
  history.replaceState(null, "", await toFragment({ ...request(), view, level, target, slide: at("slider").value }));
}

function example() {
  const chosen = shipped.find((each) => each.name === at("format").value);
  at("models").textContent = chosen ? chosen.models.join(", ") : "";
  return chosen?.example ?? "";
}

function tabs() {
  for (const [name, words] of Object.entries(VIEWS)) {
    const tab = at("tabs").appendChild(make("button", words, { role: "tab", type: "button", id: `tab-${name}`, "aria-controls": "view", "data-view": name }));
    tab.onclick = () => { view = name; show().then(keep); };
  }
  at("tabs").onkeydown = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const all = [...at("tabs").children], next = all[(all.findIndex((tab) => tab.dataset.view === view) + move + all.length) % all.length];
    next.click();
    next.focus();
  };
}

async function start() {
  tabs();
  at("tools").value = TOOLS;
  const state = location.hash.length > 1 ? await fromFragment(location.hash) : null;
  ({ formats: shipped, targets } = await ask("formats"));
  for (const each of shipped) at("format").appendChild(make("option", each.name, { value: each.name }));
  at("format").value = shipped.some((each) => each.name === "hermes") ? "hermes" : shipped[0].name;
  for (const name of FIELDS) {
    if (state?.[name] === undefined || state[name] === null) continue;
    if (at(name).type === "checkbox") at(name).checked = Boolean(state[name]);
    else at(name).value = state[name];
  }
  if (state) {
    view = state.view in VIEWS ? state.view : "text";
    level = state.level === "whole" ? "whole" : "path";
    target = targets.includes(state.target) ? state.target : target;
    at("more").open = Boolean(state.template);
    at("report").open = Boolean(state.expected);
  }
  const own = example();
  if (!state) at("output").value = own;
  await read(state?.slide ?? null);
  at("loading").hidden = true;
  document.body.dataset.ready = "1";
}

at("format").onchange = () => { at("output").value = example(); at("template").value = ""; read(); };
for (const name of FIELDS.filter((name) => name !== "format")) at(name).oninput = () => read();
at("recognise").onclick = async () => {
  const found = await ask("recognised", request());
  if (found.name) {
    at("format").value = found.name;
    at("template").value = "";
  } else view = "why";
  at("models").textContent = found.why;
  await read();
};
at("slider").oninput = () => show().then(keep);
at("copy").onclick = async () => {
  await keep();
  await navigator.clipboard.writeText(location.href).catch(() => {});
  at("copy").textContent = "Copied";
  setTimeout(() => { at("copy").textContent = "Copy link"; }, 1500);
};
start().catch((error) => { progress(0, ""); at("error").textContent = error.message; });
