// Calls providers through their official SDKs. Standard input has one call per line, as JSON: the API, the base URL up
// to the provider's name, the key, the prompt, sources to pass as documents, and whether to stream. Standard output
// gets what the SDK made of the response; the Go tests that run this program compare it.
import { createInterface } from 'node:readline';

import Anthropic from '@anthropic-ai/sdk';
import { ApiError, GoogleGenAI } from '@google/genai';
import cohere from 'cohere-ai';
import OpenAI from 'openai';

const tool = 'count_nests';
const parameters = { type: 'object', properties: {} };

async function askResponses(c, said) {
  const client = new OpenAI({ baseURL: `${c.base}/openai/v1`, apiKey: c.key });
  const { data, response } = await client.responses
    .create({
      model: 'gpt-5',
      input: c.prompt,
      include: ['file_search_call.results', 'web_search_call.action.sources'],
      tools: [{ type: 'function', name: tool, parameters, strict: false }, { type: 'web_search' }],
      stream: c.stream,
    })
    .withResponse();
  said.answer = response.headers.get('ibid-answer');
  if (!c.stream) {
    said.text = data.output_text;
    for (const item of data.output) readItem(item, said);
    return readState(data, said);
  }
  for await (const e of data) {
    if (e.type === 'response.output_text.delta') said.text += e.delta;
    if (e.type === 'response.output_text.annotation.added') said.citations.push(e.annotation);
    if (e.type === 'response.output_item.done' && e.item.type === 'function_call') readItem(e.item, said);
    if (e.type === 'response.completed' || e.type === 'response.failed') readState(e.response, said);
  }
}

function readItem(item, said) {
  if (item.type === 'function_call') said.tools.push(item.name + item.arguments);
  for (const part of item.content ?? []) said.citations.push(...(part.annotations ?? []));
}

function readState(r, said) {
  said.id = r.id;
  said.finish = r.status;
  said.message = r.error?.message ?? '';
}

async function askChat(c, said) {
  const client = new OpenAI({ baseURL: `${c.base}/openai/v1`, apiKey: c.key });
  const { data, response } = await client.chat.completions
    .create({
      model: 'gpt-5-search-api',
      messages: [{ role: 'user', content: c.prompt }],
      tools: [{ type: 'function', function: { name: tool, parameters } }],
      stream: c.stream,
    })
    .withResponse();
  said.answer = response.headers.get('ibid-answer');
  if (!c.stream) {
    const { message, finish_reason } = data.choices[0];
    Object.assign(said, { id: data.id, text: message.content ?? '', finish: finish_reason, citations: message.annotations ?? [] });
    said.tools = (message.tool_calls ?? []).map((t) => t.function.name + t.function.arguments);
    return;
  }
  for await (const chunk of data) {
    said.id = chunk.id;
    for (const { delta, finish_reason } of chunk.choices) {
      said.text += delta.content ?? '';
      said.finish = finish_reason ?? said.finish;
      said.citations.push(...(delta.annotations ?? []));
      for (const t of delta.tool_calls ?? []) {
        said.tools[t.index] = (said.tools[t.index] ?? '') + (t.function.name ?? '') + t.function.arguments;
      }
    }
  }
}

async function askGemini(c, said) {
  const ai = new GoogleGenAI({ apiKey: c.key, httpOptions: { baseUrl: `${c.base}/gemini`, fetch: fetchFor(said) } });
  const request = {
    model: 'gemini-3-flash',
    contents: c.prompt,
    config: { tools: [{ googleSearch: {} }, { functionDeclarations: [{ name: tool, description: 'Counts nests.' }] }] },
  };
  if (!c.stream) return readGemini(await ai.models.generateContent(request), said);
  for await (const r of await ai.models.generateContentStream(request)) readGemini(r, said);
}

function readGemini(r, said) {
  said.id = r.responseId;
  said.answer = r.sdkHttpResponse.headers['ibid-answer'] ?? null;
  for (const { content, finishReason, groundingMetadata } of r.candidates) {
    for (const part of content.parts) {
      said.text += part.text ?? '';
      if (part.functionCall) said.tools.push(part.functionCall.name + JSON.stringify(part.functionCall.args));
    }
    said.finish = finishReason ?? said.finish;
    if (!groundingMetadata) continue;
    for (const { retrievedContext } of groundingMetadata.groundingChunks) {
      if (retrievedContext) delete retrievedContext.fileSearchStore; // differs each time
    }
    said.citations.push(groundingMetadata);
  }
}

// fetchFor keeps the header of errors, which this SDK does not expose.
function fetchFor(said) {
  return async (...args) => {
    const response = await fetch(...args);
    said.answer = response.headers.get('ibid-answer');
    return response;
  };
}

async function askAnthropic(c, said) {
  await askMessages(c, said, [{ type: 'text', text: c.prompt }]);
}

async function askAnthropicDocuments(c, said) {
  const documents = c.sources.map((s) => ({
    type: 'document',
    title: s.Title,
    citations: { enabled: true },
    source: { type: 'text', media_type: 'text/plain', data: s.Quote },
  }));
  await askMessages(c, said, [...documents, { type: 'text', text: c.prompt }]);
}

async function askMessages(c, said, content) {
  const client = new Anthropic({ baseURL: `${c.base}/anthropic`, apiKey: c.key });
  const request = {
    model: 'claude-sonnet-5',
    max_tokens: 1000,
    messages: [{ role: 'user', content }],
    tools: [{ name: tool, input_schema: parameters }, { type: 'web_search_20250305', name: 'web_search' }],
  };
  if (!c.stream) {
    const { data, response } = await client.messages.create(request).withResponse();
    said.answer = response.headers.get('ibid-answer');
    return readMessage(data, said);
  }
  const stream = client.messages.stream(request);
  try {
    const { response } = await stream.withResponse();
    said.answer = response.headers.get('ibid-answer');
    readMessage(await stream.finalMessage(), said);
  } catch (err) {
    if (stream.currentMessage) readMessage(stream.currentMessage, said);
    throw err;
  }
}

function readMessage(message, said) {
  said.id = message.id;
  said.finish = message.stop_reason ?? '';
  for (const block of message.content) {
    said.text += block.text ?? '';
    said.citations.push(...(block.citations ?? []));
    if (block.type === 'tool_use') said.tools.push(block.name + JSON.stringify(block.input));
  }
}

async function askCohere(c, said) {
  const client = new cohere.CohereClientV2({ environment: `${c.base}/cohere`, token: c.key });
  const request = {
    model: 'command-a-03-2025',
    messages: [{ role: 'user', content: c.prompt }],
    tools: [{ type: 'function', function: { name: tool, parameters } }],
    documents: c.sources.map((s, i) => ({ id: `doc:${i}`, data: { title: s.Title, url: s.URL, text: s.Quote } })),
  };
  const ask = c.stream ? client.chatStream(request, { maxRetries: 0 }) : client.chat(request, { maxRetries: 0 });
  const { data, rawResponse } = await ask.withRawResponse();
  said.answer = rawResponse.headers.get('ibid-answer');
  if (!c.stream) {
    const { content, citations, toolCalls } = data.message;
    Object.assign(said, { id: data.id, finish: data.finishReason, citations: citations ?? [] });
    said.text = (content ?? []).map((part) => part.text).join('');
    said.tools = (toolCalls ?? []).map((t) => t.function.name + t.function.arguments);
    return;
  }
  for await (const e of data) {
    const message = e.delta?.message;
    if (e.type === 'message-start') said.id = e.id;
    if (e.type === 'content-delta') said.text += message.content.text;
    if (e.type === 'citation-start') said.citations.push(message.citations);
    if (e.type === 'tool-call-start') said.tools.push(message.toolCalls.function.name);
    if (e.type === 'tool-call-delta') said.tools[e.index] += message.toolCalls.function.arguments;
    if (e.type === 'message-end') {
      said.finish = e.delta.finishReason;
      said.message = e.delta.error ?? '';
    }
  }
}

// fail reads an error of the SDK's own type.
function fail(err, said) {
  if (err instanceof OpenAI.APIError || err instanceof Anthropic.APIError) {
    said.status = err.status ?? 0;
    said.message = err.error?.error?.message ?? err.error?.message ?? err.message;
    said.answer ||= err.headers?.get('ibid-answer') ?? null;
  } else if (err instanceof ApiError) {
    said.status = err.status;
    said.message = err.message;
  } else if (err instanceof cohere.CohereError) {
    if ((err.statusCode === 429) !== err instanceof cohere.Cohere.TooManyRequestsError) throw err;
    said.status = err.statusCode ?? 0;
    said.message = err.body?.message ?? '';
    said.answer = err.rawResponse?.headers.get('ibid-answer') ?? null;
  } else {
    throw err;
  }
}

const apis = {
  'openai-responses': askResponses,
  'openai-chat': askChat,
  gemini: askGemini,
  anthropic: askAnthropic,
  'anthropic-documents': askAnthropicDocuments,
  cohere: askCohere,
};

for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line);
  const said = { answer: null, id: '', text: '', citations: [], tools: [], finish: '', status: 0, message: '' };
  try {
    await apis[call.api](call, said);
  } catch (err) {
    try {
      fail(err, said);
    } catch {
      said.failure = String(err?.stack ?? err);
    }
  }
  said.citations = said.citations.map((citation) => JSON.stringify(citation));
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
