// The Vercel AI SDK through `toolgram serve`: `node vercel_ai_sdk.mjs URL`, after `npm install` here.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, tool } from "ai";
import { z } from "zod";

const provider = createOpenAICompatible({ name: "toolgram", baseURL: `${process.argv[2]}/v1` });
const request = {
  model: provider("m"),
  prompt: "What is 1 + 2?",
  tools: { add: tool({ inputSchema: z.object({ a: z.number(), b: z.number() }) }) },
};

const { toolCalls } = await generateText(request);
for (const call of toolCalls) console.log("whole:", call.toolName, JSON.stringify(call.input));
for (const call of await streamText(request).toolCalls) {
  console.log("streamed:", call.toolName, JSON.stringify(call.input));
}
