// Pages of the site in Chromium, at two widths, and some of them dark as well: node playground/screenshots.mjs site
// Fails if a page is wider than the window, or if a symbol has no font. Writes playground/screenshots/.
import { createServer } from "node:http";
import { mkdir, readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const ROOT = process.argv[2] ?? "site";
const SHOTS = new URL("screenshots/", import.meta.url).pathname;
const PAGES = ["", "start/tutorial/", "guides/why-was-my-call-not-parsed/", "guides/write-a-format/", "reference/api/",
  "reference/cli/", "reference/events/", "anomalies/", "reference/anomalies/repaired_json/", "reference/errors/",
  "specs/", "specs/hermes/", "specs/gpt_oss/", "speed/", "data/", "scoreboard/", "conformance/", "architecture/",
  "export/", "serve/", "vllm/", "bulk/", "deviations-judged/", "reference/vllm-tables/"];
const WIDTHS = [1280, 390];
const SCHEMES = ["light", "dark"];
const KEPT = ["", "start/tutorial/", "specs/hermes/", "anomalies/", "speed/", "reference/api/"]; // as pictures
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript",
  ".svg": "image/svg+xml", ".json": "application/json", ".csv": "text/csv", ".woff": "font/woff", ".wasm": "application/wasm" };

const server = createServer(async (request, response) => {
  let path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
  if (path.endsWith("/")) path += "index.html";
  try {
    const body = await readFile(join(ROOT, path));
    response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const home = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
await mkdir(SHOTS, { recursive: true });
const faults = [];
let views = 0;

// What the search of the site finds by the name of a model: the page of its format.
const MODELS = { "Qwen 3": "specs/hermes/", "DeepSeek V3.1": "specs/deepseek_v31/", "gpt-oss-20b": "specs/gpt_oss/" };
const index = JSON.parse(await readFile(join(ROOT, "search/search_index.json")));
for (const [model, place] of Object.entries(MODELS)) {
  const found = index.docs.some((each) => each.location.startsWith(place) && `${each.title} ${each.text}`.includes(model));
  if (!found) faults.push(`the search finds no page for ${model}`);
}

for (const width of WIDTHS) {
  for (const colorScheme of SCHEMES) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const page = await context.newPage();
    for (const name of colorScheme === "light" ? PAGES : KEPT) { // colors change no width
      views += 1;
      const answer = await page.goto(home + name, { waitUntil: "load" });
      if (answer.status() !== 200) faults.push(`${name}: status ${answer.status()}`);
      await page.waitForTimeout(150);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wide > 0) {
        const widest = await page.evaluate(() => [...document.querySelectorAll("main *")]
          .filter((each) => each.getBoundingClientRect().right > window.innerWidth + 1)
          .slice(0, 3).map((each) => `${each.tagName} ${each.textContent.trim().slice(0, 40)}`));
        faults.push(`${name || "home"} at ${width}: ${wide} pixels wider than the window: ${widest.join("; ")}`);
      }
      const shown = await page.evaluate(async () => (await document.fonts.load("16px 'Toolgram Symbols'", "\u2424")).length);
      if (!shown) faults.push(`${name || "home"}: no font for the symbol of a line end`);
      if (KEPT.includes(name)) {
        await page.screenshot({ path: join(SHOTS, `${name.replaceAll("/", "-") || "home-"}${width}-${colorScheme}.png`) });
      }
    }
    await context.close();
  }
}
await browser.close();
server.close();
for (const fault of new Set(faults)) console.error(fault);
console.log(`${views} views of ${PAGES.length} pages, ${new Set(faults).size} faults`);
process.exitCode = faults.length ? 1 : 0;
