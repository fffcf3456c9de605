// A question, and a second one streamed, with OpenAI's JavaScript SDK. First: npm install
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:1234/v1",
  apiKey: process.env.OPENAI_API_KEY ?? "none",
});

const messages = [{ role: "user", content: "Why is the sky blue?" }];
const answer = await client.chat.completions.create({
  model: "default", // whichever is loaded answers
  messages,
  max_tokens: 100,
});
console.log(answer.choices[0].message.content);

messages.push(answer.choices[0].message);
messages.push({ role: "user", content: "And in the evening?" });
const stream = await client.chat.completions.create({
  model: "default",
  messages,
  max_tokens: 100,
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
}
process.stdout.write("\n");
