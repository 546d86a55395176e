// One text that a model wrote: each character in the colour of its event, the events, the message, and why.
// The playground, the page of a gateway and the page of an audit show a text with this, in the style of style.css.

const KINDS = { content: "content", reasoning: "reasoning", tool_call_start: "name of a call", tool_call_delta: "arguments",
  dropped: "marker, dropped", malformed: "malformed", held: "held back", unread: "not read yet" };

export function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export function table(head, rows) {
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

export const json = (value) => make("pre", JSON.stringify(value, null, 2));
export const heading = (text) => make("h2", text);

// --- the views: each fills a panel with what was read by some step ---------------------------------------------------

function text(panel, steps, { result }) {
  const legend = panel.appendChild(make("p", "", { class: "legend" }));
  for (const [kind, words] of Object.entries(KINDS)) legend.appendChild(make("span", words, { class: kind }));
  const shown = panel.appendChild(make("div", "", { class: "text" }));
  const all = result.steps.map((step) => step.delta).join("");
  let told = 0;
  for (const { type, source } of steps.flatMap((step) => step.events)) {
    told += source.length;
    if (source) shown.appendChild(make("span", source, { class: type, title: KINDS[type] ?? type }));
  }
  const read = steps.reduce((sum, step) => sum + step.delta.length, 0);
  if (read > told) shown.appendChild(make("span", all.slice(told, read), { class: "held", title: KINDS.held }));
  shown.appendChild(make("span", all.slice(Math.max(read, told)), { class: "unread", title: KINDS.unread }));
}

function events(panel, steps, { docs }) {
  const rows = steps.flatMap((step, index) => step.events.map((event) => [index + 1, event.type,
    event.name ?? event.arguments ?? event.text ?? "", event.status ?? event.why ?? event.id ?? ""]));
  panel.appendChild(table(["delta", "event", "says", ""], rows.reverse()));
  if (docs) panel.appendChild(make("a", "What each event means", { href: `${docs}reference/events/` }));
}

function message(panel, steps, { result }) {
  for (const [title, name] of [["OpenAI", "openai"], ["Anthropic", "anthropic"], ["toolgram", "message"]])
    panel.append(heading(title), json(result[name]));
}

async function why(panel, steps, { result, docs, ask }) {
  const told = await ask("explain");
  if (told) panel.append(make("p", told.verdict));
  panel.append(heading("Anomalies"));
  const kind = (each) => docs ? make("a", each.kind, { href: `${docs}${each.page}` }) : each.kind;
  if (!result.anomalies.length) panel.append(make("p", "None: the output is as the format has it.", { class: "faint" }));
  else panel.append(table(["kind", "at", "text", "what it means"],
    result.anomalies.map((each) => [kind(each), each.start, each.text, each.said])));
  if (result.expected) panel.append(heading("Expected"), make("pre", result.expected), heading("Read"), json(result.message));
  if (told?.held.length) panel.append(heading("Held back until it was certain"), table(["from", "text", "outcome", "why"],
    told.held.map((each) => [each.start, each.text, each.outcome, each.why])));
  const better = told?.alternatives.filter((each) => each.better) ?? [];
  if (better.length) panel.append(heading("Formats that read more of it"),
    table(["format", "calls"], better.map((each) => [each.name, each.calls])));
}

const VIEWS = { text: ["Text", text], events: ["Events", events], message: ["Message", message], why: ["Why", why] };

// --- the pane --------------------------------------------------------------------------------------------------------

// `ask` returns what Python says about the text that is shown, or null; `more` has further views. `docs` is the address
// of the documentation, if it is there, and `changed` is called if a person looks at something else.
export class Pane {
  constructor(root, ask, { more = {}, docs = null, changed = () => {} } = {}) {
    this.ask = ask;
    this.docs = docs;
    this.views = { ...VIEWS, ...more };
    this.view = "text";
    this.result = null;
    this.turn = 0;
    this.slider = make("input", "", { id: "slider", type: "range", min: 0, value: 0 });
    this.count = make("output", "", { id: "count" });
    this.state = make("code", "", { id: "state" });
    this.tabs = make("div", "", { role: "tablist", "aria-label": "Views", id: "tabs" });
    this.panel = make("div", "", { id: "view", role: "tabpanel", tabindex: 0 });
    this.line = make("div", "", { class: "row slide" });
    const label = this.line.appendChild(make("label", "Deltas read: ", { for: "slider" }));
    label.append(this.count);
    this.line.append(this.slider);
    this.line.appendChild(make("span", "state ")).append(this.state);
    root.append(this.line, this.tabs, this.panel);
    this.slider.oninput = () => this.show().then(changed);
    for (const [name, [words]] of Object.entries(this.views)) {
      const tab = make("button", words, { role: "tab", type: "button", id: `tab-${name}`, "aria-controls": "view", "data-view": name });
      tab.onclick = () => { this.view = name; this.show().then(changed); };
      this.tabs.append(tab);
    }
    this.tabs.onkeydown = (event) => this.move({ ArrowRight: 1, ArrowLeft: -1 }[event.key]);
  }

  // Go to the next tab, or to the one before it.
  move(step) {
    if (!step) return;
    const all = [...this.tabs.children], here = all.findIndex((tab) => tab.dataset.view === this.view);
    const next = all[(here + step + all.length) % all.length];
    next.click();
    next.focus();
  }

  // Show a text as it was read, up to a delta; up to its end if none is named.
  read(result, slide = null) {
    this.result = result;
    this.slider.max = result.steps.length;
    this.slider.value = slide ?? result.steps.length;
    this.line.hidden = result.steps.length <= 2; // one delta, and the end
    return this.show();
  }

  async show() {
    if (!this.result) return;
    const { steps, start } = this.result, turn = ++this.turn;
    const read = steps.slice(0, Number(this.slider.value));
    this.count.textContent = `${read.length} of ${steps.length}`;
    this.state.textContent = read.at(-1)?.state ?? start;
    for (const tab of this.tabs.children) {
      const chosen = tab.dataset.view === this.view;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${this.view}`);
    const panel = make("div");
    try {
      await this.views[this.view][1](panel, read, this);
    } catch (error) {
      panel.append(make("p", error.message, { class: "faint" }));
    }
    if (turn === this.turn) this.panel.replaceChildren(panel);
  }
}
