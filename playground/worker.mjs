// Python in a worker, so that the page stays quick. Messages in: {id, name, request}; out: {id, answer} or {progress}.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const sizes = await (await fetch("sizes.json")).json();
const wanted = ["pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", "packages.zip"];
const total = wanted.reduce((sum, name) => sum + sizes[name], 0);
let read = 0;

// Counts the bytes that come.
const load = self.fetch.bind(self);
self.fetch = async (...request) => {
  const response = await load(...request);
  if (!response.body || !wanted.some((name) => response.url.endsWith(name))) return response;
  const counting = new TransformStream({
    transform(chunk, out) {
      read += chunk.byteLength;
      self.postMessage({ progress: (80 * read) / total, doing: "Loading Python ..." });
      out.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(counting), { headers: response.headers, status: response.status });
};

const packages = fetch("packages.zip").then((response) => response.arrayBuffer());
const python = await loadPyodide({ indexURL: new URL("pyodide/", self.location.href).href });
self.postMessage({ progress: 85, doing: "Unpacking toolgram ..." });
const site = python.runPython("import site; site.getsitepackages()[0]");
python.unpackArchive(await packages, "zip", { extractDir: site });
self.postMessage({ progress: 92, doing: "Starting ..." });
const answer = python.runPython("import bridge; bridge.answer");

self.onmessage = ({ data: { id, name, request } }) => {
  let reply;
  try {
    reply = JSON.parse(answer(name, JSON.stringify(request)));
  } catch (error) {
    reply = { error: String(error).trim().split("\n").at(-1) };
  }
  self.postMessage({ id, answer: reply });
};
self.postMessage({ ready: true });
