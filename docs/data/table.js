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

for (const place of document.querySelectorAll(".csv-table")) {
  fetch(place.dataset.file).then((answer) => answer.text()).then((text) => {
    const [head, ...rows] = rowsOf(text);
    const field = place.appendChild(document.createElement("input"));
    field.placeholder = "Filter rows";
    field.setAttribute("aria-label", "Filter rows");
    const table = place.appendChild(document.createElement("table"));
    const add = (cells, kind) => {
      const line = table.insertRow();
      for (const cell of cells) line.appendChild(document.createElement(kind)).textContent = cell;
      return line;
    };
    const headings = add(head, "th").cells;
    const lines = rows.map((row) => [add(row, "td"), row]);
    const linked = place.dataset.case ? head.indexOf("case") : -1;
    for (const [line, row] of linked < 0 ? [] : lines) {
      const link = document.createElement("a");
      link.textContent = row[linked];
      link.href = place.dataset.case + row[linked];
      line.cells[linked].replaceChildren(link);
    }
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      for (const [line, row] of lines) line.hidden = !words.every((word) => row.join(" ").toLowerCase().includes(word));
    });
    for (const [column, heading] of [...headings].entries()) {
      heading.tabIndex = 0;
      const sort = () => {
        const up = heading.getAttribute("aria-sort") !== "ascending";
        for (const each of headings) each.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const sorted = [...lines].sort(([, one], [, other]) => compare(one[column], other[column]) * (up ? 1 : -1));
        for (const [line] of sorted) line.parentNode.append(line);
      };
      heading.addEventListener("click", sort);
      heading.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    }
  });
}
