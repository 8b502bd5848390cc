"""An agent that publishes its answers with a signed manifest. With FastAPI it is the same: FastAPI() for Starlette()."""
import asyncio, os
import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ibid = httpx.AsyncClient(base_url=os.environ.get("IBID_URL", "http://127.0.0.1:8080"), timeout=60)

async def ask(request: Request) -> Response:
    source = {"document_id": "census", "title": "Heron census", "content": "The colony at Lake Tonbo has 41 nests this year."}
    answer = "The colony at Lake Tonbo has 41 nests this year. Nobody knows why."  # yours: from your model
    run = (await ibid.post("/v1/runs", headers={"Ibid-Publish": "yes"}, json={
        "agent": "herons", "original_question": request.query_params["q"], "final_answer": answer,
        "reasoning_steps": [{"step_number": 1, "tool": "search", "search_results": [source]}]})).json()["id"]
    made = {"citation_source": None}
    while made["citation_source"] is None:  # built in a second or so
        await asyncio.sleep(0.2)
        made = (await ibid.get(f"/v1/runs/{run}/manifest")).json()
    return JSONResponse({"answer": answer}, headers={"Citation-Source": made["citation_source"]})

async def published(request: Request) -> Response:  # unchanged: signatures cover its headers
    r = await ibid.get(request.url.path)
    kept = {k: v for k, v in r.headers.items() if k not in ("content-encoding", "transfer-encoding", "connection")}
    return Response(r.content, r.status_code, kept)

app = Starlette(routes=[Route("/ask", ask)] + [Route(p + "/{rest:path}", published) for p in ("/runs", "/.well-known", "/log", "/schema")])
