"""Asks a question about numbered passages, as RAG programs do: with the plain SDK, as Open WebUI, LangChain, LlamaIndex.

Standard input has a case a line: way, one of WAYS; base, the address up to /v1; key; question; passages, each with name
and text; and whether to stream. Printed is what the program got as the model's answer, as JSON, a line each.
"""

import json
import sys

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate, format_document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI
from llama_index.core import SummaryIndex
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import TextNode
from openai import OpenAI

MODEL = "heron-1"


def say(case, messages):
    """Yields the parts of the model's answer to a chat."""
    with OpenAI(base_url=case["base"] + "/v1", api_key=case["key"], max_retries=0) as client:
        got = client.chat.completions.create(model=MODEL, messages=messages, stream=case["stream"])
        if not case["stream"]:
            yield got.choices[0].message.content
            return
        for chunk in got:
            yield from (choice.delta.content or "" for choice in chunk.choices)


def plain(case):
    """A program that builds its prompt itself."""
    passages = "\n\n".join(f"[{n}] {p['name']}\n{p['text']}" for n, p in enumerate(case["passages"], 1))
    return say(case, [
        {"role": "system", "content": "Answer from the passages, and cite each as [n] after the sentence it is for."},
        {"role": "user", "content": f"Passages:\n\n{passages}\n\nQuestion: {case['question']}"},
    ])


# As in Open WebUI's default template: headings, rules, an example that cites, and rules that name the tags of the
# context at the end.
OPEN_WEBUI = """### Task:
Answer the user's query from the context below. Cite in the text as [id], **only where the <source> tag has an id \
attribute** (e.g., <source id="1">).

### Guidelines:
- Say so if you do not know.
- **Cite as [id] (e.g., [1], [2]) only a <source> with an id attribute.**
- Do not write XML tags.

### Example of Citation:
If a source with an id has what the user asks for, cite it like this:
* "The survey found twice as many nests as in the year before [1]."

### Output:
An answer with citations as [id] where the context has a <source> tag with an id attribute.

<context>
{context}
</context>
"""


def open_webui(case):
    """Open WebUI, which puts the question after the template."""
    context = "\n".join(
        f'<source id="{n}" name="{p["name"]}">{p["text"]}</source>' for n, p in enumerate(case["passages"], 1)
    )
    content = f"{OPEN_WEBUI.format(context=context)}\n{case['question']}"
    return say(case, [{"role": "user", "content": content}])


class Shelf(BaseRetriever):
    """A retriever that finds everything."""

    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


def langchain(case):
    """A chain of LangChain: retriever, prompt, model, parser."""
    passage = PromptTemplate.from_template("[{n}] {source}\n{page_content}")
    chain = (
        {
            "context": Shelf(documents=[
                Document(page_content=p["text"], metadata={"source": p["name"], "n": n})
                for n, p in enumerate(case["passages"], 1)
            ]) | (lambda found: "\n\n".join(format_document(d, passage) for d in found)),
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_messages([
            ("system", "Answer with the context only. Cite as [n].\n\nContext:\n{context}"),
            ("human", "{question}"),
        ])
        | ChatOpenAI(model=MODEL, base_url=case["base"] + "/v1", api_key=case["key"], max_retries=0)
        | StrOutputParser()
    )
    return chain.stream(case["question"]) if case["stream"] else [chain.invoke(case["question"])]


class Heron(CustomLLM):
    """A model for LlamaIndex that asks through the OpenAI SDK."""

    case: dict

    @property
    def metadata(self):
        return LLMMetadata(model_name=MODEL)

    def complete(self, prompt, formatted=False, **_):
        return CompletionResponse(text="".join(say(self.case, [{"role": "user", "content": prompt}])))

    def stream_complete(self, prompt, formatted=False, **_):
        text = ""
        for delta in say(self.case, [{"role": "user", "content": prompt}]):
            text += delta
            yield CompletionResponse(text=text, delta=delta)


def llama_index(case):
    """LlamaIndex's query engine for answers that cite, with its own prompt."""
    nodes = [TextNode(text=p["text"], metadata={"file_name": p["name"]}) for p in case["passages"]]
    llm = Heron(case=case)
    engine = CitationQueryEngine.from_args(SummaryIndex(nodes), llm=llm, streaming=case["stream"])
    response = engine.query(case["question"])
    return response.response_gen if case["stream"] else [response.response]


WAYS = {"openai": plain, "open-webui": open_webui, "langchain": langchain, "llama-index": llama_index}

for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps("".join(WAYS[case["way"]](case))), flush=True)
