// The whole state of the page as one link: JSON, compressed, in the fragment, which a browser sends to nobody.

async function through(stream, bytes) {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

export async function toFragment(state) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(state)));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return "#" + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// A case of the suite as the state of the page: `#case=ID`. The site has the files of cases beside the playground.
export async function ofCase(fragment) {
  const id = fragment.slice("#case=".length), file = (id.includes("-made-") ? "made-" : "") + id.split("-")[0];
  const [lines, tools] = await Promise.all([`cases/${file}.jsonl`, "tools.json"].map((path) =>
    fetch(`suite/${path}`).then((answer) => answer.ok ? answer.text() : "")));
  const line = lines.split("\n").find((each) => each && JSON.parse(each).id === id);
  if (!line) return null;
  const { family, text, prompt, expect, why, ...known } = JSON.parse(line);
  return { format: family, output: text, prefix: prompt ?? "", tools: known.tools ? JSON.stringify(JSON.parse(tools)[known.tools]) : "",
    expected: JSON.stringify({ why, finish_reason: known.finish_reason, ...expect }, null, 2), view: "why" };
}

// The state in a fragment, or null: a link may be cut off or of another version.
export async function fromFragment(fragment) {
  if (fragment.startsWith("#case=")) return ofCase(fragment);
  try {
    const text = atob(fragment.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
    const state = JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes)));
    return state && typeof state === "object" ? state : null;
  } catch {
    return null;
  }
}
