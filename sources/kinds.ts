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

/** Every kind of source. A new kind is a folder and one more entry here. */
const all: readonly SourceKind[] = [prometheus, alertmanager, victorialogs, loki, http, postgresql, mysql, kubernetes]

export const sourceKinds: ReadonlyMap<string, SourceKind> = new Map(all.map((kind) => [kind.kind, kind]))

/**
 * The tools of all kinds of sources by name. Kinds with an equal tool share its input and its
 * judge, but each kind reads in its own way.
 */
export const sourceTools: ReadonlyMap<string, SourceTool> = new Map(
  all.flatMap(({ tools }) => tools.map((tool) => [tool.name, tool] as const)),
)

export const kindsOfTool = (name: string): string[] =>
  all.filter(({ tools }) => tools.some((tool) => tool.name === name)).map(({ kind }) => kind)

/** Lists the tools that sources of these kinds offer to a model. */
export function toolsOfKinds(kinds: readonly string[]): ReadonlySet<string> {
  return new Set(all.filter(({ kind }) => kinds.includes(kind)).flatMap(({ tools }) => tools.map(({ name }) => name)))
}

/** A planned read with its source, tool and judged arguments; or why nothing is read. */
type PlannedRead =
  | { ok: true; source: Source; tool: SourceTool; args: Record<string, unknown> }
  | { ok: false; code: 'UNKNOWN_TOOL' | 'INVALID' | 'NO_SOURCE' | 'UNBOUNDED_QUERY'; reason: string }

/**
 * Chooses the source and judges the query again. A query is also refused if it was not judged
 * before, or judged by older rules.
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
    return {
      ok: false,
      code: 'INVALID',
      reason: '"on" names a device: send POST /devices/{id}/calls to read the log of a device',
    }
  const name = typeof args.source === 'string' ? args.source : null
  // Considers only sources whose options allow the tool, if the tool needs an option and the call
  // names no source.
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
    return {
      ok: false,
      code: 'NO_SOURCE',
      reason: `several sources serve ${toolName}: name one with source (${names})`,
    }
  const verdict = tool.judge(args)
  if (!verdict.ok) return { ok: false, code: 'UNBOUNDED_QUERY', reason: verdict.reason }
  // Takes the tool of the chosen source's kind, if several kinds have a tool with this name.
  const own = sourceKinds.get(source.kind)?.tools.find((each) => each.name === toolName) ?? tool
  const atSource = own.judgeAt?.(args, source.options, source.name)
  if (atSource && !atSource.ok) return { ok: false, code: 'UNBOUNDED_QUERY', reason: atSource.reason }
  return { ok: true, source, tool: own, args }
}

/** Returns a source's kind and its connection. Throws SourceError. */
function openSource(source: Source, states: SourceStates): { kind: SourceKind; ask: AskSource } {
  const kind = sourceKinds.get(source.kind)
  if (!kind)
    throw new SourceError('BAD_ANSWER', `${source.kind} is not a kind of source: ${[...sourceKinds.keys()].join(', ')}`)
  return { kind, ask: guardAsker(source, states, kind.connect(source, states.directory)) }
}

/** Carries out a planned read. Throws SourceError. */
export async function readSource(
  { source, tool, args }: Extract<PlannedRead, { ok: true }>,
  states: SourceStates,
  context: Omit<ReadContext, 'options'>,
): Promise<ToolReading> {
  const { ask } = openSource(source, states)
  return await tool.read(ask, args, { ...context, options: source.options }).catch(rethrow)
}

/**
 * Converts any failure while an untrusted response is read, such as a parser's error, to
 * `BAD_ANSWER`.
 */
function rethrow(error: unknown): never {
  const isOfAnswer = error instanceof z.ZodError || error instanceof RangeError || error instanceof TypeError
  if (isOfAnswer) throw new SourceError('BAD_ANSWER', 'the response cannot be read', { cause: error })
  throw error
}

/** Sends a small query to a source. Returns a sentence on the response. Throws SourceError. */
export async function probeSource(source: Source, states: SourceStates): Promise<string> {
  const { kind, ask } = openSource(source, states)
  const said = await kind.probe(ask, source.options).catch(rethrow)
  const warning = await warn(source, states)
  return warning === null ? said : `${said}; ${warning}`
}

/**
 * Reads the resources that a source lists. Null if the kind of source lists none, or the source has
 * none. Throws SourceError.
 */
export async function listResources(source: Source, states: SourceStates): Promise<ListedResources | null> {
  const { kind, ask } = openSource(source, states)
  const listed = (await kind.listResources?.(ask).catch(rethrow)) ?? null
  await warn(source, states)
  return listed
}

/** Stores a warning about a source that responds. Health shows the warning from then on. */
async function warn(source: Source, states: SourceStates): Promise<string | null> {
  const { kind, ask } = openSource(source, states)
  if (!kind.warn) return null
  const warning = await kind.warn(ask).catch(rethrow)
  states.warnings.set(source.name, warning)
  return warning
}

/** Reads the silences of a source. Null if its kind has no silences. Throws SourceError. */
export async function readSilences(source: Source, states: SourceStates): Promise<Silence[] | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.readSilences?.(ask).catch(rethrow)) ?? null
}

/**
 * Reads the present state of a source's database server. Null if the source is no database server.
 * Throws SourceError.
 */
export async function readDatabaseState(source: Source, states: SourceStates): Promise<DatabaseState | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.readState?.(ask).catch(rethrow)) ?? null
}

/**
 * Reads the present state of a listed resource. Null if the source's kind knows no states, or the
 * source does not know the resource. Throws SourceError.
 */
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
 * Reads an object of a cluster for its page. Null if the source is not a cluster, or the cluster
 * lacks the object. Throws SourceError.
 */
export async function readClusterNow(
  source: Source,
  resource: NamedResource,
  states: SourceStates,
): Promise<ClusterNow | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.clusterPage?.now(ask, resource, Date.now()).catch(rethrow)) ?? null
}

/**
 * Reads the newest log lines of a workload's pod. Null if the cluster has no such workload. Throws
 * SourceError.
 */
export async function readPodLog(
  source: Source,
  resource: NamedResource,
  question: PodLogQuestion,
  states: SourceStates,
): Promise<PodLog | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.clusterPage?.log(ask, resource, question, Date.now()).catch(rethrow)) ?? null
}

/** Reads the statement counters of a source. Null if it has none. Throws SourceError. */
export async function countStatements(source: Source, states: SourceStates): Promise<StatementCounts | null> {
  const { kind, ask } = openSource(source, states)
  return (await kind.countStatements?.(ask).catch(rethrow)) ?? null
}

/** The most sources that are queried for one part of a context. `contextMs`: the time range. */
const maxAsked = { rule: 10, lines: 3, database: 3, cluster: 1 }
const contextMs = 3_600_000

type Told<Found> = (Found & { source: string }) | { source: string; notRead: string }

/**
 * Reads one part of a context from all sources in parallel. For a source that does not respond,
 * returns the reason. Leaves out a source that has nothing about the subject.
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
