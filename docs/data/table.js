// Shows each file of data as a table: a field filters rows by words, a click on a heading sorts by its column. A cell of
// the column "case" links to what `data-case` says.
function rowsOf(text) {
  const rows = [[""]];
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const row = rows[rows.length - 1], char = text[at];
    if (quoted && char === '"' && text[at + 1] === '"') { row[row.length - 1] += '"'; at++; }
    else if (char === '"') quoted = !quoted;
    else if (!quoted && char === ",") row.push("");
    else if (!quoted && char === "\n") rows.push([""]);
    else row[row.length - 1] += char;
  }
  return rows.filter((row) => row.length > 1);
}

// Numbers before words, and empty cells last.
function compare(one, other) {
  if (!one || !other) return (one ? 0 : 1) - (other ? 0 : 1);
  const [left, right] = [parseFloat(one), parseFloat(other)];
  if (Number.isNaN(left) !== Number.isNaN(right)) return Number.isNaN(left) ? 1 : -1;
  return Number.isNaN(left) ? one.localeCompare(other) : left - right;
}

const MOST = 500; // rows that are shown at once

for (const place of document.querySelectorAll(".csv-table")) {
  fetch(place.dataset.file).then((answer) => answer.text()).then((text) => {
    const [head, ...rows] = rowsOf(text), linked = place.dataset.case ? head.indexOf("case") : -1;
    const field = place.appendChild(document.createElement("input"));
    field.placeholder = "Filter rows";
    field.setAttribute("aria-label", "Filter rows");
    const count = place.appendChild(document.createElement("p"));
    const table = place.appendChild(document.createElement("table")), body = table.createTBody();
    const cell = (line, kind, text) => { const made = line.appendChild(document.createElement(kind)); made.textContent = text; return made; };
    const draw = () => {
      const words = field.value.toLowerCase().split(/\s+/);
      const found = rows.filter((row) => words.every((word) => row.join(" ").toLowerCase().includes(word)));
      body.replaceChildren();
      for (const row of found.slice(0, MOST)) {
        const line = body.insertRow();
        for (const [column, text] of row.entries()) {
          const made = cell(line, "td", column === linked ? "" : text);
          if (column === linked) Object.assign(made.appendChild(document.createElement("a")), { textContent: text, href: place.dataset.case + text });
        }
      }
      count.textContent = found.length > MOST ? `${MOST} of ${found.length} rows; filter for others` : `${found.length} ${found.length === 1 ? "row" : "rows"}`;
    };
    const top = table.createTHead().insertRow(), headings = head.map((name) => cell(top, "th", name));
    for (const [column, heading] of headings.entries()) {
      heading.tabIndex = 0;
      const sort = () => {
        const up = heading.getAttribute("aria-sort") !== "ascending";
        for (const each of headings) each.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        rows.sort((one, other) => compare(one[column], other[column]) * (up ? 1 : -1));
        draw();
      };
      heading.addEventListener("click", sort);
      heading.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    }
    field.addEventListener("input", draw);
    draw();
  });
}
