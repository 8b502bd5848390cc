"""An agent of OpenAI's Agents SDK, traced: two lines give ibid its run, with the tool that it called and what that returned.

    pip install openai-agents openinference-instrumentation-openai-agents opentelemetry-exporter-otlp-proto-http
    python3 openai_agent.py

The page has the run and its steps, `GET /v1/runs` its id, which is the trace's: `ibid trail ID`.
"""

import os

from agents import Agent, Runner, function_tool, set_default_openai_client
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

IBID = os.environ.get("IBID_URL", "http://127.0.0.1:8080")

# The two lines. The second one replaces the upload to OpenAI.
(tracing := TracerProvider()).add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(IBID + "/v1/traces")))
OpenAIAgentsInstrumentor().instrument(tracer_provider=tracing)

set_default_openai_client(AsyncOpenAI(base_url=IBID + "/openai/v1"), use_for_tracing=False)


@function_tool
def count_nests(query: str) -> str:
    """Looks up a lake in the census."""
    return "Volunteers counted 41 nests of herons at Lake Tonbo on 12 April."


agent = Agent(name="birder", model="gpt-5", instructions="Answer from the census.", tools=[count_nests])
result = Runner.run_sync(agent, "Call a tool: how many herons nest at Lake Tonbo?")
print(result.final_output)
