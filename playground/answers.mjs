// Pages of answers in a real Chromium: node playground/answers.mjs FOLDER NAME=ADDRESS ...
// Each page shows an answer with every character in the colour of its event, and its views; at two widths, light and
// dark, nothing is wider than the window. Writes pictures into the folder.

import { strict as assert } from "node:assert";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [folder, ...pages] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"] });
mkdirSync(folder, { recursive: true });
try {
  for (const [name, address] of pages.map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)])) {
    for (const width of [1280, 390]) {
      for (const colorScheme of ["light", "dark"]) {
        const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
        const page = await context.newPage(), problems = [], asked = [];
        page.on("pageerror", (error) => problems.push(error.message));
        page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
        page.on("request", (request) => asked.push(request.url()));
        await page.goto(address);
        await page.waitForSelector("body[data-ready]", { timeout: 20000 });
        const buttons = await page.$$("#answers button");
        for (const button of buttons) {
          await button.click();
          await page.waitForFunction((id) => document.body.dataset.ready === id, await button.getAttribute("data-id"));
          await page.click("#tab-text");
          await page.waitForSelector("#view .text :is(.tool_call_start, .tool_call_delta, .malformed, .content)");
        }
        const shown = join(folder, `${name}-${width}-${colorScheme}`);
        await page.screenshot({ path: `${shown}.png`, fullPage: true });
        for (const [tab, wanted] of [["events", "table"], ["message", "pre"], ["why", ":text('Anomalies')"]]) {
          await page.click(`#tab-${tab}`);
          await page.waitForSelector(`#view ${wanted}`);
        }
        await page.screenshot({ path: `${shown}-why.png`, fullPage: true });
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} at ${width}: too wide`);
        assert.deepEqual(problems, []);
        const home = new URL(address).origin;
        assert.deepEqual(asked.filter((each) => !each.startsWith("data:") && new URL(each).origin !== home), []);
        console.log(`ok   ${name} at ${width}, ${colorScheme}: ${buttons.length} answers`);
        await context.close();
      }
    }
  }
} finally {
  await browser.close();
}
