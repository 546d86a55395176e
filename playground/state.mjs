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

// The state in a fragment, or null: a link may be cut off or of another version.
export async function fromFragment(fragment) {
  try {
    const text = atob(fragment.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
    const state = JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes)));
    return state && typeof state === "object" ? state : null;
  } catch {
    return null;
  }
}
