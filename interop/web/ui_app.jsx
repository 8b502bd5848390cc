// A stock useChat page: what an application has before it knows of ibid, and a list of what ibid sends besides.
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport } from 'ai'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

const query = new URLSearchParams(location.search)
const ibid = query.get('ibid')
const id = query.get('chat')

function Text({ part }) {
  const { text_start = 0, citations = [] } = part.providerMetadata?.ibid ?? {}
  const pieces = []
  let at = 0
  for (const c of citations) {
    if (c.text_end - text_start <= at) continue // another source of the same words
    pieces.push(part.text.slice(at, c.text_end - text_start), <sup key={c.id + c.source_id} className="chip" title={c.source_title}>[{c.index}]</sup>)
    at = c.text_end - text_start
  }
  return <p className="text">{pieces}{part.text.slice(at)}</p>
}

function Part({ part }) {
  switch (part.type) {
    case 'text': return <Text part={part} />
    case 'source-url': return <a className="source" href={part.url}>{part.title}</a>
    case 'source-document': return <span className="source">{part.title}</span>
    case 'data-citations': return <output className="citations" data-status={part.data.status}>{part.data.citations.length}</output>
  }
  return null
}

function Page({ messages: initial }) {
  const [input, setInput] = useState('')
  const { messages, sendMessage, status, error } = useChat({
    id,
    messages: initial,
    resume: initial.length === 0, // an answer is in the conversation when it has ended
    transport: new DefaultChatTransport({ api: `${ibid}/v1/chat`, body: { provider: query.get('provider') } }),
  })
  return <main data-status={status}>
    {messages.map(m => <article key={m.id} id={m.id} className={m.role}>{m.parts.map((p, i) => <Part key={i} part={p} />)}</article>)}
    {error && <p className="error">{error.message}</p>}
    <form onSubmit={e => { e.preventDefault(); sendMessage({ text: input }); setInput('') }}>
      <input value={input} onChange={e => setInput(e.target.value)} />
    </form>
  </main>
}

const stored = await fetch(`${ibid}/v1/conversations/${id}?as=ui`)
createRoot(document.getElementById('root')).render(<Page messages={stored.ok ? await stored.json() : []} />)
