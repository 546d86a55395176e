// The page: what is typed goes to Python in the worker, and what comes back is shown in one of the views.

import { drawn, light } from "./drawing.mjs";
import { Pane, heading, make } from "./pane.mjs";
import { fromFragment, toFragment } from "./state.mjs";

const at = (id) => document.getElementById(id);
const FIELDS = ["format", "output", "template", "tools", "eos", "prefix", "strict", "size", "expected"];
const TOOLS = `[{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
  "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}]`;
let shipped = [], targets = [], level = "path", target = "gbnf", turn = 0;

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

// --- what is typed --------------------------------------------------------------------------------------------------

const request = () => Object.fromEntries(FIELDS.map((name) => [name, value(name)]));

function value(name) {
  const field = at(name);
  if (field.type === "checkbox") return field.checked;
  if (field.type === "number") return Number(field.value) || 1;
  return name === "prefix" && field.value === "" ? null : field.value;
}

// --- the views beside those of every text ----------------------------------------------------------------------------

const MORE = {
  diagram: ["Diagram", async (panel, steps, pane) => {
    const choose = panel.appendChild(make("button", level === "path" ? "Show the whole machine" : "Show the happy path", { type: "button" }));
    choose.onclick = () => { level = level === "path" ? "whole" : "path"; pane.show(); };
    const { mermaid, boxes } = await ask("diagram", { ...request(), level });
    const svg = drawn(mermaid);
    panel.className = level;
    panel.appendChild(make("div")).appendChild(svg);
    for (const state of [pane.result.start, ...steps.map((step) => step.state)]) light(svg, boxes[state]);
  }],
  grammar: ["Grammar", async (panel, steps, pane) => {
    const choose = panel.appendChild(make("select", "", { "aria-label": "Target" }));
    for (const name of targets) choose.appendChild(make("option", name));
    choose.value = target;
    choose.onchange = () => { target = choose.value; pane.show(); };
    const made = await ask("export", { ...request(), target });
    for (const note of made.notes) panel.appendChild(make("p", note, { class: "faint" }));
    panel.appendChild(make("pre", made.text));
  }],
  files: ["Files", async (panel) => {
    const made = await ask("files", request());
    if (made.report) panel.append(heading("Report"), make("pre", made.report));
    for (const ending of ["lark", "yaml"]) {
      const link = make("a", `Download ${made.name}.${ending}`, { download: `${made.name}.${ending}`,
        href: URL.createObjectURL(new Blob([made[ending]], { type: "text/plain" })) });
      panel.append(make("p"), link, make("pre", made[ending]));
    }
  }],
};

const pane = new Pane(at("result"), (name) => ask(name, request()), { more: MORE, docs: "../", changed: () => keep() });

// --- reading ---------------------------------------------------------------------------------------------------------

let reading = 0;

async function read(slide = null) {
  const mine = ++reading;
  document.body.dataset.busy = "1";
  try {
    const made = await ask("read", request());
    if (mine !== reading) return;
    at("error").textContent = "";
    await pane.read({ ...made, expected: at("expected").value }, slide);
  } catch (error) {
    if (mine === reading) at("error").textContent = error.message;
  }
  if (mine === reading) { delete document.body.dataset.busy; await keep(); }
}

async function keep() {
  history.replaceState(null, "", await toFragment({ ...request(), view: pane.view, level, target, slide: pane.slider.value }));
}

function example() {
  const chosen = shipped.find((each) => each.name === at("format").value);
  at("models").textContent = chosen ? chosen.models.join(", ") : "";
  return chosen?.example ?? "";
}

async function start() {
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
    pane.view = state.view in pane.views ? state.view : "text";
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
  } else pane.view = "why";
  at("models").textContent = found.why;
  await read();
};
at("copy").onclick = async () => {
  await keep();
  await navigator.clipboard.writeText(location.href).catch(() => {});
  at("copy").textContent = "Copied";
  setTimeout(() => { at("copy").textContent = "Copy link"; }, 1500);
};
start().catch((error) => { progress(0, ""); at("error").textContent = error.message; });
