import { z } from 'zod'
import type { ClusterNow, PodLog, PodLogQuestion } from '../domain/cluster-now.ts'
import type { DatabaseState } from '../domain/database-state.ts'
import type { ResourceRef, ResourceState } from '../domain/registry.ts'
import { nameFaults } from '../domain/schema-faults.ts'
import type { Silence } from '../domain/silence.ts'
import type { Source } from '../domain/source.ts'
import type { StatementCounts } from '../domain/statement-snapshot.ts'
import { alertmanager } from './alertmanager/source.ts'
import { guardAsker, type SourceStates } from './ask.ts'
import { mysql } from './databases/mysql.ts'
import { postgresql } from './databases/postgresql.ts'
import { http } from './http/source.ts'
import {
  type AskSource,
  type ContextParts,
  type ListedResources,
  type ReadContext,
  SourceError,
  type SourceKind,
  type SourceTool,
  type ToolReading,
} from './kind.ts'
import { kubernetes } from './kubernetes/kubernetes.ts'
import { loki } from './logs/loki.ts'
import { victorialogs } from './logs/victorialogs.ts'
import { prometheus } from './prometheus/source.ts'

/** Every kind of source. A new one is a folder and a line here. */
const all: readonly SourceKind[] = [prometheus, alertmanager, victorialogs, loki, http, postgresql, mysql, kubernetes]

export const sourceKinds: ReadonlyMap<string, SourceKind> = new Map(all.map((kind) => [kind.kind, kind]))

/** All kinds' tools by name. Kinds with one tool share input and judge, and read each alone. */
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

/** What a read would be: its source, its tool and its arguments, judged; or why there is none. */
type PlannedRead =
  | { ok: true; source: Source; tool: SourceTool; args: Record<string, unknown> }
  | { ok: false; code: 'UNKNOWN_TOOL' | 'INVALID' | 'NO_SOURCE' | 'UNBOUNDED_QUERY'; reason: string }

/**
 * Chooses the source and judges the query again: one that the kernel did not judge, or judged by
 * older rules, is refused here too.
 */
export function planRead(sources: readonly Source[], toolName: string, given: Record<string, unknown>): PlannedRead {
  const serving = sources.filter(({ kind }) => kindsOfTool(toolName).includes(kind))
  const tool = sourceTools.get(toolName)
  if (!tool) return { ok: false, code: 'UNKNOWN_TOOL', reason: `no source serves ${toolName}` }
  const parsed = tool.input.safeParse(given)
  if (!parsed.success) {
    return { ok: false, code: 'INVALID', reason: nameFaults(parsed.error, { whole: 'arguments', max: 1 }) }
  }
  const args = parsed.data
  if (args.on !== undefined)
    return { ok: false, code: 'INVALID', reason: 'on names a device: ask POST /devices/{id}/calls for its log' }
  const name = typeof args.source === 'string' ? args.source : null
  // Without a name those are meant that allow it, where a source has to.
  const allowing = tool.needs ? serving.filter(({ name: each, options }) => tool.judgeAt?.(args, options, each).ok) : []
  const unnamed = allowing.length > 0 ? allowing : serving
  const named = name === null ? unnamed : serving.filter((each) => each.name === name)
  const names = serving.map((each) => each.name).join(', ')
  const [source, other] = named
  if (!source)
    return {
      ok: false,
      code: 'NO_SOURCE',
      reason: name === null ? `no source serves ${toolName}` : `there is no source ${name}: ${names || 'none'}`,
    }
  if (other)
    return { ok: false, code: 'NO_SOURCE', reason: `several sources serve this: name one with source (${names})` }
  const verdict = tool.judge(args)
  if (!verdict.ok) return { ok: false, code: 'UNBOUNDED_QUERY', reason: verdict.reason }
  // Several kinds may serve a tool: the source's own kind reads it.
  const own = sourceKinds.get(source.kind)?.tools.find((each) => each.name === toolName) ?? tool
  const atSource = own.judgeAt?.(args, source.options, source.name)
  if (atSource && !atSource.ok) return { ok: false, code: 'UNBOUNDED_QUERY', reason: atSource.reason }
  return { ok: true, source, tool: own, args }
}

/** The kind of a source, and how it is asked. Throws SourceError. */
function openSource(source: Source, states: SourceStates): { kind: SourceKind; ask: AskSource } {
  const kind = sourceKinds.get(source.kind)
  if (!kind)
    throw new SourceError('BAD_ANSWER', `${source.kind} is no kind of source: ${[...sourceKinds.keys()].join(', ')}`)
  return { kind, ask: guardAsker(source, states, kind.connect(source, states.directory)) }
}

/** Reads what was planned. Throws SourceError. */
export async function readSource(
  { source, tool, args }: Extract<PlannedRead, { ok: true }>,
  states: SourceStates,
  context: Omit<ReadContext, 'options'>,
): Promise<ToolReading> {
  const { ask } = openSource(source, states)
  return await tool.read(ask, args, { ...context, options: source.options }).catch(rethrow)
}

/**
 * Any failure of the reading code on a stranger's answer, such as a parser that gives up, is a bad
 * answer.
 */
function rethrow(error: unknown): never {
  const isOfAnswer = error instanceof z.ZodError || error instanceof RangeError || error instanceof TypeError
  if (isOfAnswer) throw new SourceError('BAD_ANSWER', 'it answered in a shape that cannot be read', { cause: error })
  throw error
}

/** Asks a source something small: how it answered in a sentence, or throws SourceError. */
export async function probeSource(source: Source, states: SourceStates): Promise<string> {
  const { kind, ask } = openSource(source, states)
  const said = await kind.probe(ask, source.options).catch(rethrow)
  const warning = await warn(source, states)
  return warning === null ? said : `${said}; ${warning}`
}

/** A source's list; null where its kind has none, or it has none. Throws SourceError. */
export async function listResources(source: Source, states: SourceStates): Promise<ListedResources | null> {
  const { kind, ask } = openSource(source, states)
  const listed = (await kind.listResources?.(ask).catch(rethrow)) ?? null
  await warn(source, states)
  return listed
}

/** What people should know of a source though it answers; Health says it from then on. */
async function warn(source: Source, states: SourceStates): Promise<string | null> {
  const { kind, ask } = openSource(source, states)
  if (!kind.warn) return null
  const warning = await kind.warn(ask).catch(rethrow)
  states.warnings.set(source.name, warning)
  return warning
}

/** A source's silences; null where its kind has none. Throws SourceError. */
export async function readSilences(source: Source, states: SourceStates): Promise<Silence[] | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.readSilences?.(ask).catch(rethrow)) ?? null
}

/** A source's server now; null where its kind has no such state. Throws SourceError. */
export async function readDatabaseState(source: Source, states: SourceStates): Promise<DatabaseState | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.readState?.(ask).catch(rethrow)) ?? null
}

/** A listed thing now; null if its kind does not say, or lacks it. Throws SourceError. */
export async function readStateOf(
  source: Source,
  resource: ResourceRef & { name: string },
  states: SourceStates,
): Promise<ResourceState | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.stateOf?.(ask, resource).catch(rethrow)) ?? null
}

type NamedResource = ResourceRef & { name: string }

/**
 * A cluster's thing now, for its page; null where the source is no cluster, or lacks it. Throws
 * SourceError.
 */
export async function readClusterNow(
  source: Source,
  resource: NamedResource,
  states: SourceStates,
): Promise<ClusterNow | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.clusterPage?.now(ask, resource, Date.now()).catch(rethrow)) ?? null
}

/** The newest lines of a workload's pod; null without such a workload. Throws SourceError. */
export async function readPodLog(
  source: Source,
  resource: NamedResource,
  question: PodLogQuestion,
  states: SourceStates,
): Promise<PodLog | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.clusterPage?.log(ask, resource, question, Date.now()).catch(rethrow)) ?? null
}

/** A source's statement counters; null where its server counts none. Throws SourceError. */
export async function countStatements(source: Source, states: SourceStates): Promise<StatementCounts | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.countStatements?.(ask).catch(rethrow)) ?? null
}

/** Sources that one part of a context asks, and how far back it looks. */
const maxAsked = { rule: 10, lines: 3, database: 3, cluster: 1 }
const contextMs = 3_600_000

type Told<Found> = (Found & { source: string }) | { source: string; notRead: string }

/**
 * The sources' words on one part of a context, asked at once. A silent one is one line that says
 * why; an empty one is left out.
 */
export async function readContext<Part extends keyof ContextParts>(
  part: Part,
  sources: readonly Source[],
  subject: ContextParts[Part]['subject'],
  states: SourceStates,
): Promise<Told<ContextParts[Part]['found']>[]> {
  const serving = sources.filter(({ kind }) => sourceKinds.get(kind)?.contextOf?.[part])
  const nowMs = Date.now()
  const found = await Promise.all(
    serving.slice(0, maxAsked[part]).map(async (source): Promise<Told<ContextParts[Part]['found']>[]> => {
      try {
        const { kind, ask } = openSource(source, states)
        const told = await kind.contextOf?.[part]?.(ask, subject, { sinceMs: nowMs - contextMs, nowMs }).catch(rethrow)
        return told ? [{ source: source.name, ...told }] : []
      } catch (error) {
        if (!(error instanceof SourceError)) throw error
        return [{ source: source.name, notRead: error.message.slice(0, 160) }]
      }
    }),
  )
  return found.flat()
}
