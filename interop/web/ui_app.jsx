// The component of docs/chat.md in a page: ui_component.jsx is made of that page.
import { createRoot } from 'react-dom/client'
import { Chat } from './ui_component.jsx'

const query = new URLSearchParams(location.search)
const id = query.get('chat')
const stored = await fetch(`${query.get('ibid')}/v1/conversations/${id}?as=ui`)
createRoot(document.getElementById('root')).render(<Chat id={id} initial={stored.ok ? await stored.json() : []} />)
