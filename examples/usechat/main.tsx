import { createRoot } from 'react-dom/client'
import { App } from './App'

const ibid = new URLSearchParams(location.search).get('ibid') ?? 'http://127.0.0.1:8080'
createRoot(document.getElementById('root')!).render(<App api={`${ibid}/v1/chat`} />)
