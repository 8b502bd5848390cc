// An agent that publishes its answers with a signed manifest: node app.mjs PORT. Express needs the same few lines.
import { createServer } from "node:http";

const ibid = process.env.IBID_URL ?? "http://127.0.0.1:8080";

async function ask(question, res) {
  const source = { document_id: "census", title: "Heron census", content: "The colony at Lake Tonbo has 41 nests this year." };
  const answer = "The colony at Lake Tonbo has 41 nests this year. Nobody knows why."; // yours: from your model
  const run = await (await fetch(`${ibid}/v1/runs`, { method: "POST", headers: { "Ibid-Publish": "yes" }, body: JSON.stringify({
    agent: "herons", original_question: question, final_answer: answer,
    reasoning_steps: [{ step_number: 1, tool: "search", search_results: [source] }] }) })).json();
  let made;
  do { // built in a second or so
    await new Promise(done => setTimeout(done, 200));
    made = await (await fetch(`${ibid}/v1/runs/${run.id}/manifest`)).json();
  } while (!made.citation_source);
  res.writeHead(200, { "Content-Type": "application/json", "Citation-Source": made.citation_source }).end(JSON.stringify({ answer }));
}

async function published(path, res) { // unchanged: signatures cover its headers
  const r = await fetch(ibid + path);
  const kept = [...r.headers].filter(([name]) => !["content-encoding", "transfer-encoding", "connection"].includes(name));
  res.writeHead(r.status, Object.fromEntries(kept)).end(Buffer.from(await r.arrayBuffer()));
}

createServer((req, res) => {
  const url = new URL(req.url, "http://localhost");
  const answered = url.pathname === "/ask" ? ask(url.searchParams.get("q"), res)
    : /^\/(runs|\.well-known|log|schema)\//.test(url.pathname) ? published(url.pathname, res) : res.writeHead(404).end();
  Promise.resolve(answered).catch(err => res.writeHead(502).end(String(err)));
}).listen(process.argv[2] ?? 8000, "127.0.0.1");
