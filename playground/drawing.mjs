// A diagram, laid out in the page by the engine that draws those of the documentation.

const COLOURS = { bg: "#fff", fg: "#172D4A", muted: "#596579", line: "#000", surface: "#E5EFFA", "surface-alt": "#F0F4FA",
  border: "#4472C4", accent: "#4472C4", font: "Noto Sans, Helvetica, Arial, sans-serif",
  "font-mono": "Noto Sans, Helvetica, Arial, sans-serif", radius: "4px" };

// The SVG element of a Mermaid text.
export function drawn(mermaid) {
  const reply = JSON.parse(renderRequest(mermaid, {}));
  if (reply.error) throw new Error(reply.error.message);
  const svg = new DOMParser().parseFromString(reply.result.svg, "image/svg+xml").documentElement;
  for (const [name, value] of Object.entries(COLOURS)) svg.style.setProperty(`--pele-${name}`, value);
  return document.importNode(svg, true);
}

// Light the box of a state, and no other. A state that is no box leaves the box before it lit.
export function light(svg, box) {
  const node = box && svg.querySelector(`[data-id="${CSS.escape(box)}"]`);
  if (!node) return;
  svg.querySelectorAll(".lit").forEach((each) => each.classList.remove("lit"));
  node.classList.add("lit");
}
