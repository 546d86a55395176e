// The page of many answers: a list of them, and a pane for the one that is chosen. `page.py` puts this after pane.mjs,
// in one script. The data is in the page, or the server that the page comes from is asked for it again and again.

const SECONDS = 3; // between two questions
const at = (id) => document.getElementById(id);
const embedded = JSON.parse(at("data").textContent);
const readings = new Map(); // what Python says about an answer does not change
let chosen = null, listed = "";

// What the server says. The key of the page, if it has one, goes with each question.
async function fetched(path) {
  const response = await fetch(path + location.search);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

async function told(answer, what) {
  if (answer[what] !== undefined || embedded) return answer[what] ?? null;
  const path = `answers/${answer.id}/${what}`;
  if (!readings.has(path)) readings.set(path, await fetched(path));
  return readings.get(path);
}

const pane = new Pane(at("result"), (name) => told(chosen, name));

const named = (pairs) => pairs.flatMap(([name, words]) => [make("dt", name), make("dd", words)]);

async function choose(answer) {
  chosen = answer;
  for (const button of at("answers").querySelectorAll("button"))
    button.setAttribute("aria-current", button.dataset.id === String(answer.id));
  at("said").replaceChildren(...named(answer.said));
  const result = await told(answer, "read");
  if (chosen === answer) await pane.read(result);
  document.body.dataset.ready = answer.id;
}

function button(answer) {
  const made = make("button", answer.name, { type: "button", class: "answer", "data-id": answer.id });
  made.append(make("span", answer.note, { class: "faint" }));
  made.onclick = () => choose(answer).catch(complain);
  return made;
}

function complain(error) {
  at("error").textContent = error?.message ?? "";
}

// Draw the summary and the list. An answer that was chosen stays so while it is listed.
async function draw({ numbers = [], table: rows, notes = [], groups }) {
  if (listed === JSON.stringify(groups)) return;
  listed = JSON.stringify(groups);
  const boxes = make("div", "", { class: "numbers" });
  for (const [count, words, bad] of numbers) {
    const box = boxes.appendChild(make("div", "", bad && count ? { class: "bad" } : {}));
    box.append(make("b", count.toLocaleString("en")), words);
  }
  const list = make("dl");
  list.append(...named(notes));
  at("summary").replaceChildren(boxes, ...(rows ? [table(rows[0], rows.slice(1))] : []), list);
  const all = groups.flatMap((group) => group.answers);
  at("answers").replaceChildren(...groups.flatMap((group) => [make("h2", group.name), ...group.answers.map(button)]));
  document.querySelector("main").classList.toggle("empty", !all.length);
  const next = all.find((each) => each.id === chosen?.id) ?? all[0];
  if (next && next.id !== chosen?.id) await choose(next);
  else if (next) document.querySelector(`[data-id="${next.id}"]`).setAttribute("aria-current", true);
}

async function live() {
  try {
    if (!document.hidden) await draw(await fetched("answers"));
    complain(null);
  } catch (error) {
    complain(error);
  }
  setTimeout(live, 1000 * SECONDS);
}

if (embedded) draw(embedded).catch(complain);
else live();
