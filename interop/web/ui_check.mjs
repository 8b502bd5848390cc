// Drives ibid's UI message stream with one version of npm "ai", like a front-end without React.
//
//	node ui_check.mjs BASE VERSION
//
// BASE is ibid's address, VERSION the package's name in package.json. It prints a line for each scenario, and exits
// with 1 at the first that fails.
import assert from 'node:assert/strict'

const [base, version] = process.argv.slice(2)
const ai = await import(version)
const first = version === 'ai-5-first'

/** The state that useChat keeps for React, as plain fields. */
class State {
  status = 'ready'
  error = undefined
  constructor(messages) { this.messages = messages }
  pushMessage = m => { this.messages = [...this.messages, m] }
  popMessage = () => { this.messages = this.messages.slice(0, -1) }
  replaceMessage = (i, m) => { this.messages = [...this.messages.slice(0, i), this.snapshot(m), ...this.messages.slice(i + 1)] }
  snapshot = v => structuredClone(v)
}

class Chat extends ai.AbstractChat {
  constructor({ messages = [], body, ...init }) {
    const data = []
    super({
      ...init, state: new State(messages), onData: part => data.push(structuredClone(part)),
      transport: new ai.DefaultChatTransport({ api: `${base}/v1/chat`, body, fetch: init.fetch }),
    })
    this.data = data
  }
  get last() { return this.messages.at(-1) }
}

let count = 0
const newID = () => `${version}-${process.pid}-${++count}`
const texts = m => m.parts.filter(p => p.type === 'text')
const textOf = m => texts(m).map(p => p.text).join('')
const sourcesOf = m => m.parts.filter(p => p.type.startsWith('source-'))
const citationsOf = m => m.parts.filter(p => p.type === 'data-citations')
const until = async (done, what) => {
  for (let i = 0; i < 400; i++) {
    if (done()) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  assert.fail(`it did not happen: ${what}`)
}
const json = async path => {
  const res = await fetch(base + path)
  assert.equal(res.status, 200, path)
  return res.json()
}

/** Checks that a reload shows the same messages and answers. */
async function reloads(chat) {
  const stored = await json(`/v1/conversations/${chat.id}?as=ui`)
  const said = messages => messages.map(m => m.role === 'user' ? textOf(m) : m.id)
  assert.deepEqual(said(stored), said(chat.messages))
}

/** Checks what every complete answer must satisfy. */
function check(m, status) {
  assert.equal(m.role, 'assistant')
  assert.match(m.id, /^ans_/)
  const known = new Set(['step-start', 'text', 'source-url', 'source-document', 'data-citations'])
  assert.deepEqual(m.parts.map(p => p.type).filter(t => !known.has(t) && t !== 'reasoning' && !t.startsWith('tool-')), [])
  const ids = sourcesOf(m).map(s => s.sourceId)
  assert.equal(new Set(ids).size, ids.length, 'a source came twice')
  const [cited, ...more] = citationsOf(m)
  assert.equal(more.length, 0)
  assert.equal(cited.id, `cit_${m.id}`)
  assert.equal(cited.data.status, status)
  assert.equal(cited.data.unit, 'utf-16')
  assert.equal(cited.data.answer_id, m.id)
  for (const c of cited.data.citations) {
    assert.ok(ids.includes(c.source_id), 'a citation of no source')
    if (c.text_start !== null) assert.equal(textOf(m).slice(c.text_start, c.text_end), c.cited_text)
  }
  for (const s of sourcesOf(m)) {
    assert.equal(typeof s.providerMetadata.ibid.index, 'number')
    if (s.type === 'source-document') assert.ok(s.title && s.mediaType)
    else assert.match(s.url, /^https?:/)
  }
  return cited.data.citations
}

/** The rows of each text part, joined. */
const inText = m => texts(m).flatMap(p => p.providerMetadata?.ibid?.citations ?? [])

const scenarios = {
  async 'text, sources and citations'() {
    for (const provider of ['openai', 'gemini', 'anthropic', 'cohere']) {
      const chat = new Chat({ id: newID(), body: { provider } })
      await chat.sendMessage({ text: 'How many herons nest at Lake Tonbo?' })
      assert.equal(chat.error, undefined)
      assert.equal(chat.status, 'ready')
      const citations = check(chat.last, 'final')
      assert.ok(citations.length >= 3, provider)
      assert.ok(sourcesOf(chat.last).length >= 3, provider)
      assert.match(textOf(chat.last), /41 nests this year/)
      assert.deepEqual(inText(chat.last), citations.filter(c => c.text_end !== null))
      assert.equal(chat.data.at(-1).data.status, 'final')
      assert.equal(chat.data[0].data.status, 'pending')
    }
  },
  async 'beyond ASCII'() {
    for (const [question, words] of [['アオサギ🪿は？', /四十一/], ['مكتبة', /خمسين/]]) {
      const chat = new Chat({ id: newID(), body: { provider: 'gemini' } })
      await chat.sendMessage({ text: question })
      assert.equal(chat.error, undefined)
      assert.ok(check(chat.last, 'final').length >= 2)
      assert.match(textOf(chat.last), words)
    }
  },
  async 'a stored conversation'() {
    const id = newID()
    const chat = new Chat({ id, body: { provider: 'openai' } })
    await chat.sendMessage({ text: 'How many herons nest at Lake Tonbo?' })
    await chat.sendMessage({ text: 'What are the rules of the harbour?' })
    assert.equal(chat.error, undefined)
    const stored = await json(`/v1/conversations/${id}?as=ui`)
    assert.deepEqual(stored.map(m => m.role), ['user', 'assistant', 'user', 'assistant'])
    if (ai.validateUIMessages) await ai.validateUIMessages({ messages: stored })
    const streamed = chat.messages.filter(m => m.role === 'assistant')
    for (const [i, m] of stored.filter(m => m.role === 'assistant').entries()) {
      check(m, 'final')
      assert.equal(m.id, streamed[i].id)
      assert.deepEqual(m.parts, JSON.parse(JSON.stringify(streamed[i].parts)))
    }
    const again = new Chat({ id, messages: stored, body: { provider: 'openai' } })
    await again.sendMessage({ text: 'How many herons nest at Lake Tonbo?' })
    assert.equal(again.error, undefined)
    check(again.last, 'final')
  },
  async 'reasoning and calls of tools'() {
    for (const provider of ['anthropic', 'gemini', 'xai']) {
      const id = newID()
      const chat = new Chat({ id, body: { provider: `recorded-${provider}` } })
      const asked = chat.sendMessage({ text: 'What is in the news?' })
      await until(() => chat.messages.length === 2 && chat.last.parts.some(p => p.type === 'reasoning' && p.text), 'reasoning')
      const other = new Chat({ id, messages: chat.messages.slice(0, 1) })
      await other.resumeStream()
      await asked
      assert.equal(chat.error, undefined)
      const citations = check(chat.last, 'final')
      const stored = (await json(`/v1/conversations/${id}?as=ui`)).at(-1)
      const plain = parts => JSON.parse(JSON.stringify(parts)).map(p => { // version 5 drops the id of reasoning
        if (p.type === 'reasoning' && version.startsWith('ai-5')) delete p.id
        return p
      })
      assert.deepEqual(plain(chat.last.parts), plain(stored.parts))
      assert.deepEqual(plain(other.last.parts), plain(stored.parts))
      assert.ok(stored.parts.findIndex(p => p.type === 'reasoning') < stored.parts.findIndex(p => p.type === 'text'))
      assert.ok(stored.parts.every(p => p.type !== 'reasoning' || p.state === 'done' && p.text.length > 0))
      if (ai.validateUIMessages) await ai.validateUIMessages({ messages: [stored] })
      if (provider === 'xai') continue // it did not search
      assert.ok(citations.length > 0)
      const tools = stored.parts.filter(p => p.type.startsWith('tool-'))
      assert.ok(tools.length > 0)
      for (const p of tools) {
        assert.equal(p.state, 'output-available')
        assert.equal(p.providerExecuted, true)
        assert.ok(p.toolCallId && p.output && Object.keys(p.input).length > 0)
      }
      assert.ok(stored.parts.indexOf(tools[0]) < stored.parts.findIndex(p => p.type === 'text'))
    }
  },
  async 'citations that come late'() {
    const id = newID()
    const chat = new Chat({ id, body: { provider: 'late' } })
    await chat.sendMessage({ text: 'How many herons nest at Lake Tonbo? Answer from memory unless you can search.' })
    assert.equal(chat.error, undefined)
    const citations = check(chat.last, 'final')
    assert.ok(citations.length >= 3)
    assert.deepEqual(inText(chat.last), citations.filter(c => c.text_end !== null))
    const stored = await json(`/v1/conversations/${id}?as=ui`)
    assert.deepEqual(stored.at(-1).parts, JSON.parse(JSON.stringify(chat.last.parts)))
    const statuses = chat.data.map(p => p.data.status)
    assert.equal(statuses.at(-1), 'final')
    assert.ok(statuses.includes('pending'))
  },
  async 'a new answer to the same question'() {
    const chat = new Chat({ id: newID(), body: { provider: 'openai' } })
    const question = 'How many herons nest at Lake Tonbo?'
    await chat.sendMessage({ text: question })
    for (const messages of [2, 4]) {
      const before = chat.last.id
      await chat.regenerate()
      assert.equal(chat.error, undefined)
      assert.equal(chat.messages.length, messages)
      assert.notEqual(chat.last.id, before)
      check(chat.last, 'final')
      await reloads(chat)
      if (messages === 2) await chat.sendMessage({ text: question }) // the same text, as a new question
    }
    await chat.regenerate({ messageId: chat.messages[1].id }) // the first answer: this removes the second turn, too
    assert.equal(chat.messages.length, 2)
    await reloads(chat)
    await chat.sendMessage({ text: 'And egrets?' })
    await chat.sendMessage({ text: 'And storks?', messageId: chat.messages[2].id }) // an edited question
    assert.equal(chat.messages.length, 4)
    await reloads(chat)
  },
  async 'resume'() {
    const id = newID()
    const chat = new Chat({ id, body: { provider: 'slow' } })
    const asked = chat.sendMessage({ text: 'How many herons nest at Lake Tonbo?' })
    await until(() => chat.messages.length === 2 && textOf(chat.last).length > 20, 'text')
    const question = chat.messages.slice(0, 1)
    const other = new Chat({ id, messages: question })
    const resumed = other.resumeStream()
    await until(() => other.messages.length === 2 && textOf(other.last).length > 20, 'text of the resumed stream')
    assert.equal(other.last.id, chat.last.id)
    await chat.stop()
    await asked
    await resumed
    assert.equal(other.error, undefined)
    assert.ok(check(other.last, 'final').length >= 3)
    const none = new Chat({ id, messages: other.messages })
    await none.resumeStream()
    assert.equal(none.error, undefined)
    assert.equal(none.messages.length, 2)
    if (!first) assert.equal(none.status, 'ready') // 5.0.0 remains "submitted"
  },
  async 'errors'() {
    const refused = new Chat({ id: newID(), body: { provider: 'openai' } })
    await refused.sendMessage({ text: 'Please answer with error 429' })
    assert.equal(refused.status, 'error')
    assert.match(refused.error.message, /^Upstream openai answered 429: [^{}]*\.$/)
    const nobody = new Chat({ id: newID(), body: { provider: 'nobody' } })
    await nobody.sendMessage({ text: 'Herons?' })
    assert.match(nobody.error.message, /there is openai/)
    const broken = new Chat({ id: newID(), body: { provider: 'openai' } })
    await broken.sendMessage({ text: 'How many herons nest at Lake Tonbo? With an error in the stream.' })
    assert.equal(broken.status, 'error')
    assert.ok(broken.error.message.length > 0)
    assert.ok(textOf(broken.last).length > 20, 'what came before the error is gone')
    const cut = new Chat({ id: newID(), body: { provider: 'openai' } })
    await cut.sendMessage({ text: 'How many herons nest at Lake Tonbo? Then break off.' })
    assert.match(cut.error.message, /broke off/)
  },
  async 'stop'() {
    const id = newID()
    const chat = new Chat({ id, body: { provider: 'slow' } })
    const asked = chat.sendMessage({ text: 'How many herons nest at Lake Tonbo?' })
    await until(() => chat.messages.length === 2 && textOf(chat.last).length > 20, 'text')
    const res = await fetch(`${base}/v1/chat/${id}/stream`, { method: 'DELETE' })
    assert.equal(res.status, 204)
    await asked
    assert.equal(chat.error, undefined)
    assert.ok(!textOf(chat.last).includes('island'))
    assert.equal(citationsOf(chat.last)[0].data.complete, false)
    assert.equal((await fetch(`${base}/v1/chat/${id}/stream`)).status, 204)
  },
  async 'every chunk is one that this version knows'() {
    const schema = ai.uiMessageChunkSchema
    if (!schema) return // not exported here; readUIMessageStream above rejects unknown chunks
    const validate = (typeof schema === 'function' ? schema() : schema).validate
    const res = await fetch(`${base}/v1/chat?stream=ui`, {
      method: 'POST', body: JSON.stringify({ provider: 'openai', messages: [{ role: 'user', content: 'How many herons nest at Lake Tonbo?' }] }),
    })
    assert.equal(res.headers.get('x-vercel-ai-ui-message-stream'), 'v1')
    const frames = (await res.text()).split('\n\n').filter(f => f.startsWith('data: ')).map(f => f.slice(6))
    assert.equal(frames.pop(), '[DONE]')
    for (const f of frames) assert.equal((await validate(JSON.parse(f))).success, true, f)
  },
}

for (const [name, run] of Object.entries(scenarios)) {
  try {
    await run()
  } catch (e) {
    console.log(`${version}: ${name}: ${e.stack}`)
    process.exit(1)
  }
  console.log(`${version}: ${name}: ok`)
}
process.exit(0)
