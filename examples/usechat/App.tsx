import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, type UIMessage } from 'ai'
import { useState } from 'react'

type Citation = {
  id: string; index: number; source_title: string | null; source_url: string | null; quote: string | null
  text_start: number | null; text_end: number | null; covers: 'claim' | 'link' | 'point' | 'block'
}
type Message = UIMessage<unknown, { citations: { status: 'pending' | 'final' | 'verified'; citations: Citation[] } }>

function Answer({ parts }: { parts: Message['parts'] }) {
  const text = parts.map(p => p.type === 'text' ? p.text : '').join('') // offsets refer to it, in UTF-16 units as in JavaScript
  const citations = parts.find(p => p.type === 'data-citations')?.data.citations ?? []
  let at = 0
  return <p className="answer">
    {citations.map((c, i) => {
      if (c.text_start === null || c.text_end === null) return null // the source is in the list below
      const words = text.slice(at, Math.max(at, c.covers === 'link' ? c.text_start : c.text_end)) // the chip replaces a link
      at = Math.max(at, c.text_end)
      return <span key={i}>{words}<a className="chip" href={c.source_url ?? undefined} title={c.quote ?? c.source_title ?? ''}>{c.index}</a></span>
    })}
    {text.slice(at)}
  </p>
}

export function App({ api }: { api: string }) {
  const [question, setQuestion] = useState('')
  const { messages, sendMessage, status, error } = useChat<Message>({ transport: new DefaultChatTransport({ api }) })
  return <main data-status={status}>
    {messages.map(m => <article key={m.id} className={m.role}>
      <Answer parts={m.parts} />
      <ol>{m.parts.map(p => {
        if (p.type !== 'source-url' && p.type !== 'source-document') return null
        const number = p.providerMetadata?.ibid?.index as number | undefined // consecutive throughout the conversation
        return <li key={p.sourceId} value={number}>{p.type === 'source-url' ? <a href={p.url}>{p.title ?? p.url}</a> : p.title}</li>
      })}</ol>
    </article>)}
    {error && <p role="alert">{error.message}</p>}
    <form onSubmit={e => { e.preventDefault(); sendMessage({ text: question }); setQuestion('') }}>
      <input aria-label="Question" value={question} onChange={e => setQuestion(e.target.value)} />
    </form>
  </main>
}
