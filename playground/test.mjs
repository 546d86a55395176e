// The built playground in a real Chromium, without a network: `make test-site`.
//     node playground/test.mjs site/playground [folder for screenshots]

import { strict as assert } from "node:assert";
import { createReadStream, existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const [folder, pictures = "playground/screenshots"] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".mjs": "text/javascript", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
const FIRST_RESULT = Number(process.env.FIRST_RESULT ?? 6000); // milliseconds; more where others use the machine
const TEMPLATE = `{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{%- for t in m.tool_calls or [] %}
[[CALL]]{"name": "{{ t.function.name }}", "arguments": {{ t.function.arguments | tojson }}}[[/CALL]]{%- endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}`;

const server = createServer((request, response) => {
  const path = join(folder, normalize(new URL(request.url, "http://x").pathname).replace(/\/$/, "/index.html"));
  if (!existsSync(path)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" });
  createReadStream(path).pipe(response);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const here = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"] });
mkdirSync(pictures, { recursive: true });
let passed = 0;
const outside = [];

async function open(options = {}, hash = "") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.route("**", (route) => {
    if (/^(data|blob):/.test(route.request().url()) || route.request().url().startsWith(here)) return route.continue();
    outside.push(route.request().url());
    return route.abort();
  });
  const page = await context.newPage(), problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
  const begun = Date.now();
  await page.goto(here + hash);
  await page.waitForSelector("body[data-ready]", { timeout: 60000 });
  return { page, problems, took: Date.now() - begun };
}
const settled = (page) => page.waitForFunction(() => document.body.dataset.busy === undefined);
const tab = async (page, name, wanted) => { await page.click(`#tab-${name}`); await page.waitForSelector(`#view ${wanted}`); };
async function check(name, run) { await run(); passed += 1; console.log(`ok   ${name}`); }

try {
  const { page, problems, took } = await open();
  const names = await page.$$eval("#format option", (all) => all.map((each) => each.value));
  await check(`first result in ${took} ms, under ${FIRST_RESULT}`, () => assert.ok(took < FIRST_RESULT, `${took} ms`));
  await check("the example of hermes: every character is coloured", async () => {
    const text = await page.$eval("#view .text", (all) => all.textContent);
    assert.equal(text, await page.inputValue("#output"));
    assert.ok(await page.$("#view .tool_call_start"));
    await page.screenshot({ path: join(pictures, "desktop.png") });
  });
  await check(`the examples of all ${names.length} formats have calls, and a diagram with a lit box`, async () => {
    for (const name of names) {
      await page.selectOption("#format", name);
      await settled(page);
      await tab(page, "message", "pre");
      const message = JSON.parse(await page.$eval("#view pre", (all) => all.textContent));
      assert.ok(message.tool_calls.length > 0, name);
      await tab(page, "diagram", "svg .lit");
      assert.equal(await page.textContent("#error"), "");
    }
  });
  await page.selectOption("#format", "hermes");
  await settled(page);
  await check("the slider moves over the deltas, and the machine with it", async () => {
    await tab(page, "diagram", "svg .lit");
    await page.focus("#slider");
    await page.keyboard.press("Home");
    await page.waitForFunction(() => document.getElementById("count").textContent.startsWith("0 of"));
    const seen = new Set(), steps = Number(await page.getAttribute("#slider", "max"));
    for (let step = 0; step < steps; step += 1) {
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction((number) => document.getElementById("count").textContent.startsWith(`${number} of`), step + 1);
      await page.waitForSelector("#view svg .lit");
      seen.add(await page.getAttribute("#view svg .lit", "data-id"));
    }
    assert.ok(seen.has("of_arguments") && seen.has("of_content"), [...seen].join());
    await page.screenshot({ path: join(pictures, "diagram.png") });
    await page.click("#view button");
    await page.waitForSelector("#view .whole svg .lit");
  });
  await check("held text is shown as held", async () => {
    await page.fill("#output", "Look: <tool_call>\n{\"na");
    await settled(page);
    await tab(page, "text", ".text");
    await page.$eval("#slider", (slider) => { slider.value = slider.max - 1; slider.dispatchEvent(new Event("input")); });
    await page.waitForFunction(() => document.querySelector("#view .text .held")?.textContent.includes("<tool_call>"));
  });
  await check("anomalies are explained", async () => {
    await page.fill("#output", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris",}}\n</tool_call>');
    await settled(page);
    await tab(page, "why", "table");
    assert.match(await page.textContent("#view"), /repaired_json/);
  });
  await check("a grammar for the tools in every target", async () => {
    await tab(page, "grammar", "pre");
    for (const target of await page.$$eval("#view option", (all) => all.map((each) => each.value))) {
      await page.selectOption("#view select", target);
      await page.waitForFunction((name) => document.querySelector("#view select")?.value === name && document.querySelector("#view pre")?.textContent.includes("get_weather"), target, { timeout: 20000 });
    }
  });
  await check("a format is derived from a chat template, and its files can be downloaded", async () => {
    await page.click("#more summary");
    await page.fill("#eos", "<|im_end|>");
    await page.fill("#template", TEMPLATE);
    await page.fill("#output", 'Hi.\n[[CALL]]{"name": "get_weather", "arguments": {"city": "Oslo"}}[[/CALL]]');
    await settled(page);
    assert.equal(await page.textContent("#error"), "");
    await tab(page, "message", "pre");
    assert.match(await page.textContent("#view"), /Oslo/);
    await tab(page, "files", "a[download$='.lark']");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#view a[download$='.yaml']")]);
    assert.match(readFileSync(await download.path(), "utf8"), /machine:/);
    await page.screenshot({ path: join(pictures, "derived.png") });
  });
  await check("a link holds the whole state", async () => {
    await page.click("#copy");
    const link = await page.evaluate(() => location.hash);
    const other = await open({}, link);
    assert.equal(await other.page.inputValue("#template"), TEMPLATE);
    assert.match(await other.page.textContent("#view"), /machine:/);
    assert.deepEqual(other.problems, []);
    await other.page.context().close();
    const broken = await open({}, "#not-a-state");
    assert.equal(await broken.page.textContent("#error"), "");
    await broken.page.context().close();
  });
  await check("mistakes are told and do not end the page", async () => {
    await page.fill("#tools", "{");
    await settled(page);
    assert.match(await page.textContent("#error"), /not JSON/);
    await page.fill("#tools", "");
    await settled(page);
    assert.equal(await page.textContent("#error"), "");
  });
  await check("tabs by keyboard", async () => {
    await page.focus("#tab-files");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector("#view .text");
    assert.equal(await page.evaluate(() => document.activeElement.id), "tab-text");
  });
  await check("nothing is printed as a warning or an error", () => assert.deepEqual(problems, []));
  for (const [name, options] of [["phone", { viewport: { width: 390, height: 844 }, hasTouch: true }], ["dark", { colorScheme: "dark" }],
    ["phone-dark", { viewport: { width: 390, height: 844 }, colorScheme: "dark" }]]) {
    await check(`${name}: nothing is wider than the screen`, async () => {
      const seen = await open(options);
      assert.ok(await seen.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      await seen.page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
      await seen.page.context().close();
    });
  }
  await check("no request left the machine", () => assert.deepEqual(outside, []));
  console.log(`${passed} passed, 0 failed`);
} finally {
  await browser.close();
  server.close();
}
