"""An agent of each framework for Python that asks a model, searches twice and answers, as its users would write it.

    python3 framework_agents.py FRAMEWORK

The lines about ibid are not here: they are those of docs/agents.md. Standard input has commands, as JSON, a line each:
what the search finds, {"documents": …}; lines to run, {"lines": …}, which make the model or trace; and a question to
the agent, {"ask": …}, with the form in which its tool returns what it found. Printed is the answer as JSON, when all
traces have been sent, or null.
"""

import asyncio
import json
import sys

QUESTION = "How tall is the Skarn lighthouse, and who keeps it?"
PROMPT = "Answer the question from what the tool finds."


class Found(list):
    """What a search found: documents with title, url and text."""

    def text(self):
        return "\n\n".join(f"{d['title']} ({d['url']})\n{d['text']}" for d in self)


def find(query):
    """Finds the documents of the test that are about a query."""
    return Found(d for d in DOCUMENTS if d["query"] == query)


def plain(d):
    return {"title": d["title"], "url": d["url"], "content": d["text"]}


def langgraph(form, model, ask=lambda agent, question: agent.invoke({"messages": [("user", question)]}), **_):
    from langchain.agents import create_agent
    from langchain_core.documents import Document
    from langchain_core.tools import tool

    @tool
    def search_text(query: str) -> str:
        """Searches the notes about the coast."""
        return find(query).text()

    @tool
    def search_json(query: str) -> list[dict]:
        """Searches the notes about the coast."""
        return [plain(d) for d in find(query)]

    @tool(response_format="content_and_artifact")
    def search_documents(query: str):
        """Searches the notes about the coast."""
        found = [Document(d["text"], metadata={"title": d["title"], "source": d["url"]}) for d in find(query)]
        return "\n\n".join(f"Source: {d.metadata}\nContent: {d.page_content}" for d in found), found

    search = {"text": search_text, "json": search_json, "documents": search_documents}[form]
    search.name = "search"
    agent = create_agent(model, [search], system_prompt=PROMPT, name="lighthouse")
    return ask(agent, QUESTION)["messages"][-1].text


def openai_agents(form, model, **_):
    from agents import Agent, Runner, function_tool

    @function_tool(name_override="search")
    def search_text(query: str) -> str:
        """Searches the notes about the coast."""
        return find(query).text()

    @function_tool(name_override="search")
    def search_json(query: str) -> str:
        """Searches the notes about the coast."""
        return json.dumps([plain(d) for d in find(query)])

    @function_tool(name_override="search")
    def search_documents(query: str) -> list[dict]:
        """Searches the notes about the coast."""
        return [plain(d) for d in find(query)]

    search = {"text": search_text, "json": search_json, "documents": search_documents}[form]
    agent = Agent(name="lighthouse", instructions=PROMPT, tools=[search], model=model)
    return Runner.run_sync(agent, QUESTION).final_output


def pydantic_ai(form, model, **_):
    from dataclasses import dataclass

    from pydantic_ai import Agent

    @dataclass
    class Note:
        title: str
        url: str
        content: str

    agent = Agent(model, instructions=PROMPT, name="lighthouse")

    @agent.tool_plain
    def search(query: str) -> str | list:
        """Searches the notes about the coast."""
        found = find(query)
        if form == "text":
            return found.text()
        return [plain(d) if form == "json" else Note(**plain(d)) for d in found]

    return agent.run_sync(QUESTION).output


def llama_index(form, model, **_):
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.schema import NodeWithScore, TextNode

    def search(query: str):
        """Searches the notes about the coast."""
        found = find(query)
        if form == "text":
            return found.text()
        if form == "json":
            return [plain(d) for d in found]
        return [
            NodeWithScore(node=TextNode(text=d["text"], metadata={"title": d["title"], "url": d["url"]}), score=0.8)
            for d in found
        ]

    async def run():
        agent = FunctionAgent(name="lighthouse", tools=[search], llm=model, system_prompt=PROMPT)
        return str(await agent.run(QUESTION))

    return asyncio.run(run())


def main(framework):
    names = {}
    for line in sys.stdin:
        command = json.loads(line)
        answer = None
        if "documents" in command:
            DOCUMENTS.extend(command["documents"])
        elif "lines" in command:
            exec(command["lines"], names)
        else:
            answer = globals()[framework](command["ask"], **names)
            if "tracing" in names:
                names["tracing"].force_flush()
        print(json.dumps(answer), flush=True)


DOCUMENTS = []
if __name__ == "__main__":
    main(sys.argv[1])
