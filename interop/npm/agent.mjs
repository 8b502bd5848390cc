// An agent of the AI SDK that asks a model, searches twice and answers, as its users would write it.
//
//     node agent.mjs 6|7
//
// It takes the same commands as python/framework_agents.py: the lines about ibid are those of docs/agents.md.

import { createInterface } from 'node:readline'
import { z } from 'zod'

const version = process.argv[2]
const packages = version === '6' ? { ai: 'ai-6', '@ai-sdk/openai': 'ai-6-openai' } : { ai: 'ai-7' }
const load = name => import(packages[name] ?? name)
const documents = []
const names = {}

// run runs lines of a module: what they import and declare is there for the next ones.
async function run(lines) {
  const code = lines
    .replace(/^import (\{.*?\}) from '(.*?)'$/gm, "var $1 = await load('$2')")
    .replace(/^(?:const|let) (\w+) =/gm, 'names.$1 =')
    .replace(/^(\w+) = /gm, 'names.$1 = ')
  await new Function('load', 'names', `return (async () => { with (names) { ${code} } })()`)(load, names)
}

async function ask(form) {
  const { generateText, isStepCount, stepCountIs, tool } = await load('ai')
  const find = query => documents.filter(d => d.query === query)
  const search = tool({
    description: 'Searches the notes about the coast.',
    inputSchema: z.object({ query: z.string() }),
    execute: async ({ query }) => {
      if (form === 'text') return find(query).map(d => `${d.title} (${d.url})\n${d.text}`).join('\n\n')
      const list = find(query).map(d => ({ title: d.title, url: d.url, content: d.text }))
      return form === 'json' ? JSON.stringify(list) : { results: list }
    },
  })
  const telemetry = version === '6' ? { experimental_telemetry: { isEnabled: Boolean(names.tracing) } } : {}
  const result = await generateText({
    model: form === 'json' ? names.openai.chat('gpt-5') : names.openai('gpt-5'),
    system: 'Answer the question from what the tool finds.',
    prompt: 'How tall is the Skarn lighthouse, and who keeps it?',
    tools: { search },
    stopWhen: (isStepCount ?? stepCountIs)(5),
    ...telemetry,
  })
  await names.tracing?.forceFlush()
  return result.text
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line)
  let answer = null
  if (command.documents) documents.push(...command.documents)
  else if (command.lines) await run(command.lines)
  else answer = await ask(command.ask)
  console.log(JSON.stringify(answer))
}
process.exit()
