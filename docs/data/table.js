// Shows each file of data as a table with a filter: rows that hold all words of the field.
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

for (const place of document.querySelectorAll(".csv-table")) {
  fetch(place.dataset.file).then((answer) => answer.text()).then((text) => {
    const [head, ...rows] = rowsOf(text);
    const field = place.appendChild(document.createElement("input"));
    field.placeholder = "hermes gbnf";
    field.setAttribute("aria-label", "Filter");
    const table = place.appendChild(document.createElement("table"));
    const add = (cells, kind) => {
      const line = table.insertRow();
      for (const cell of cells) line.appendChild(document.createElement(kind)).textContent = cell;
      return line;
    };
    add(head, "th");
    const lines = rows.map((row) => [add(row, "td"), row.join(" ").toLowerCase()]);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      for (const [line, all] of lines) line.hidden = !words.every((word) => all.includes(word));
    });
  });
}
