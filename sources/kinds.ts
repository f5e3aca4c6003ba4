import { alertmanager } from './alertmanager/source.ts'
import { http } from './http/source.ts'
import type { SourceKind, SourceTool } from './kind.ts'
import { loki } from './loki/source.ts'
import { prometheus } from './prometheus/source.ts'
import { victorialogs } from './victorialogs/source.ts'

/** Every kind of source. A new one is a folder and a line here. */
const all: readonly SourceKind[] = [prometheus, alertmanager, victorialogs, loki, http]

export const sourceKinds: ReadonlyMap<string, SourceKind> = new Map(all.map((kind) => [kind.kind, kind]))

/** The tools of all kinds by their names. Kinds that serve one tool share its input and its judge, and read it each in their way. */
export const sourceTools: ReadonlyMap<string, SourceTool> = new Map(
  all.flatMap(({ tools }) => tools.map((tool) => [tool.name, tool] as const)),
)

/** The kinds that serve a tool. */
export const kindsOfTool = (name: string): string[] =>
  all.filter(({ tools }) => tools.some((tool) => tool.name === name)).map(({ kind }) => kind)

/** The tools that sources of these kinds serve: what a model is offered. */
export function toolsOfKinds(kinds: readonly string[]): ReadonlySet<string> {
  return new Set(all.filter(({ kind }) => kinds.includes(kind)).flatMap(({ tools }) => tools.map(({ name }) => name)))
}
