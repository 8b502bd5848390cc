// An MCP client in JavaScript, with the SDK of the version that is its first argument. The rest is the URL of a server,
// or a command that is one. Standard input has calls, a list of {tool, args}; standard output gets what came of them.
import {text} from 'node:stream/consumers'

const [version, ...server] = process.argv.slice(2)
const {Client, StdioClientTransport, StreamableHTTPClientTransport} = version === '1'
  ? Object.assign({}, ...await Promise.all(['index', 'stdio', 'streamableHttp'].map(
      name => import(`@modelcontextprotocol/sdk/client/${name}.js`))))
  : {...await import('@modelcontextprotocol/client'), ...await import('@modelcontextprotocol/client/stdio')}

const client = new Client({name: 'interop', version: '1'})
await client.connect(server.length === 1
  ? new StreamableHTTPClientTransport(new URL(server[0]))
  : new StdioClientTransport({command: server[0], args: server.slice(1)}))
const {tools} = await client.listTools() // from here on the SDK checks structured content against the tool's schema
const results = []
for (const {tool, args} of JSON.parse(await text(process.stdin))) {
  try {
    const r = await client.callTool({name: tool, arguments: args})
    results.push({texts: r.content.map(c => c.text), structured: r.structuredContent, refused: r.isError ?? false})
  } catch (e) {
    results.push({failure: String(e)})
  }
}
await client.ping().catch(() => {}) // the newest protocol has none
const name = client.getServerVersion().name
await client.close()
console.log(JSON.stringify({name, tools, results}))
