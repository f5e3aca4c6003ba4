import { z } from 'zod'
import { nameFaults } from '../domain/schema-faults.ts'
import type { LastLogs, ListedTarget, LogSubject, Source } from '../domain/source.ts'
import { alertmanager } from './alertmanager/source.ts'
import { askerOf, type SourceStates } from './ask.ts'
import { http } from './http/source.ts'
import { type ReadContext, SourceError, type SourceKind, type SourceTool, type ToolReading } from './kind.ts'
import { loki, victorialogs } from './logs/stores.ts'
import { prometheus } from './prometheus/source.ts'

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

/** What a read would be: its source, its tool and its arguments, judged; or why there is none. */
type PlannedRead =
  | { ok: true; source: Source; tool: SourceTool; args: Record<string, unknown> }
  | { ok: false; code: 'UNKNOWN_TOOL' | 'INVALID' | 'NO_SOURCE' | 'UNBOUNDED_QUERY'; reason: string }

/** Chooses the source and judges the query again: what the kernel did not judge, or judged by older rules, is refused here as well. */
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
  const named = name === null ? serving : serving.filter((each) => each.name === name)
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
  const atSource = own.judgeAt?.(args, source.options)
  if (atSource && !atSource.ok) return { ok: false, code: 'UNBOUNDED_QUERY', reason: atSource.reason }
  return { ok: true, source, tool: own, args }
}

/** Reads what was planned. Throws SourceError. */
export async function readSource(
  { source, tool, args }: Extract<PlannedRead, { ok: true }>,
  states: SourceStates,
  context: Omit<ReadContext, 'options'>,
): Promise<ToolReading> {
  return await tool.read(askerOf(source, states), args, { ...context, options: source.options }).catch(rethrow)
}

/** Whatever a stranger's answer makes of the code that reads it, such as a parser that gives up on its size, is a bad answer. */
function rethrow(error: unknown): never {
  const isOfAnswer = error instanceof z.ZodError || error instanceof RangeError || error instanceof TypeError
  if (isOfAnswer) throw new SourceError('BAD_ANSWER', 'it answered in a shape that cannot be read', { cause: error })
  throw error
}

/** Asks a source something small: how it answered in a sentence, or throws SourceError. */
export async function probeSource(source: Source, states: SourceStates): Promise<string> {
  const kind = sourceKinds.get(source.kind)
  if (!kind)
    throw new SourceError('BAD_ANSWER', `${source.kind} is no kind of source: ${[...sourceKinds.keys()].join(', ')}`)
  return await kind.probe(askerOf(source, states), source.options).catch(rethrow)
}

/** What a source scrapes; null where its kind lists nothing, or it has no list. Throws SourceError. */
export async function listTargets(source: Source, states: SourceStates): Promise<ListedTarget[] | null> {
  return (await sourceKinds.get(source.kind)?.listTargets?.(askerOf(source, states)).catch(rethrow)) ?? null
}

/** The rule behind an alert, of the first source that has it. What no source answers is null. */
export async function findRule(
  sources: readonly Source[],
  alert: { name: string; labels: Record<string, string> },
  states: SourceStates,
): Promise<Record<string, unknown> | null> {
  for (const source of sources) {
    const kind = sourceKinds.get(source.kind)
    // A source that does not answer is one source less: its health says so.
    const rule = await kind?.findRule?.(askerOf(source, states), alert).catch(() => null)
    if (rule) return { source: source.name, ...rule }
  }
  return null
}

/** Sources of logs that one context asks. */
const maxLogSources = 3

/** What the sources of logs hold of a thing, asked at once. One that gives no answer is one line that says why; one that holds nothing is left out. */
export async function readLogsOf(
  sources: readonly Source[],
  subject: LogSubject,
  states: SourceStates,
): Promise<LastLogs> {
  const asked = sources.flatMap((source) => {
    const lastLines = sourceKinds.get(source.kind)?.lastLines
    return lastLines ? [{ source, lastLines }] : []
  })
  const nowMs = Date.now()
  const found = await Promise.all(
    asked.slice(0, maxLogSources).map(async ({ source, lastLines }): Promise<LastLogs> => {
      try {
        const last = await lastLines(askerOf(source, states), subject, nowMs).catch(rethrow)
        return last ? [{ source: source.name, ...last }] : []
      } catch (error) {
        if (!(error instanceof SourceError)) throw error
        return [{ source: source.name, notRead: error.message.slice(0, 160) }]
      }
    }),
  )
  return found.flat()
}
