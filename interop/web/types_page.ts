// A page's own code with the types of ibid's API: type-checked by tsc, never run.
import type { components, paths } from "./ibid";

type Answer = components["schemas"]["Answer"];
type Problem = components["schemas"]["Problem"];
type Answers = paths["/v1/answers"]["get"]["responses"]["200"]["content"]["application/json"];
type Query = NonNullable<paths["/v1/answers"]["get"]["parameters"]["query"]>;

export async function answers(base: string, query: Query): Promise<Answers> {
  const all = Object.entries(query).map(([name, value]) => [name, String(value)]);
  const response = await fetch(`${base}/v1/answers?${new URLSearchParams(all)}`);
  if (!response.ok) {
    const problem: Problem = await response.json();
    throw new Error(problem.detail ?? problem.title);
  }
  return response.json();
}

// The text that rests on each source, by its number.
export function cited(answer: Answer): Map<number, string[]> {
  const words = new Map<number, string[]>();
  for (const c of answer.citations) {
    if (c.cited_text !== null) {
      words.set(c.index, [...(words.get(c.index) ?? []), c.cited_text]);
    }
  }
  return words;
}

// Mistakes of a page that tsc must report.
export function mistakes(answer: Answer): number {
  // @ts-expect-error a citation may have no place
  const end: number = answer.citations[0]!.text_end;
  // @ts-expect-error there is no such member
  answer.citation;
  // @ts-expect-error there is no such unit
  const query: Query = { unit: "bytes" };
  return end + Number(query.limit);
}
