"""An agent of LangGraph, traced: two lines give ibid its run, with what it retrieved, used and answered.

    pip install langgraph langchain-openai openinference-instrumentation-langchain opentelemetry-exporter-otlp-proto-http
    python3 langgraph_agent.py

The page has the run and its steps, `GET /v1/runs` its id, which is the trace's: `ibid trail ID`.
"""

import os

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

IBID = os.environ.get("IBID_URL", "http://127.0.0.1:8080")

# The two lines. A server should use BatchSpanProcessor, which sends in the background.
(tracing := TracerProvider()).add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(IBID + "/v1/traces")))
LangChainInstrumentor().instrument(tracer_provider=tracing)

NOTES = [
    Document(text, metadata={"document_id": name, "title": title})
    for name, title, text in [
        ("census", "Heron census", "Volunteers counted 41 nests of herons at Lake Tonbo on 12 April."),
        ("history", "The lake and its birds", "The first pair of herons was seen in 1968, a year after the mill closed."),
        ("ferry", "Ferry timetable", "In winter only the boat at 12:10 sails."),
    ]
]


class Notes(BaseRetriever):
    """Finds the notes that share a long word with the question. Any retriever of LangChain is traced likewise."""

    def _get_relevant_documents(self, query, *, run_manager):
        words = {word for word in query.lower().strip("?").split() if len(word) > 4}
        return [note for note in NOTES if words & set(note.page_content.lower().split())]


class State(MessagesState):
    notes: list[Document]


model = ChatOpenAI(model="gpt-5", base_url=IBID + "/openai/v1")


def search(state: State):
    return {"notes": Notes().invoke(state["messages"][-1].content)}


def answer(state: State):
    notes = "\n".join(f"[{n.metadata['document_id']}] {n.page_content}" for n in state["notes"])
    return {"messages": [model.invoke([("system", "Answer from these notes:\n" + notes), *state["messages"]])]}


graph = StateGraph(State).add_sequence([search, answer]).add_edge(START, "search").compile(name="heron-agent")
result = graph.invoke({"messages": [("user", "How many herons nest at Lake Tonbo?")]})
print(result["messages"][-1].text)
