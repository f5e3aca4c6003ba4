import type { z } from 'zod'
import type { ClusterNow, PodLog, PodLogQuestion } from '../domain/cluster-now.ts'
import type { DatabaseState } from '../domain/database-state.ts'
import type { InventoryKind } from '../domain/kinds.ts'
import type { ListedCluster } from '../domain/listed-cluster.ts'
import type { ListedDatabase } from '../domain/listed-database.ts'
import type { ResourceRef, ResourceState } from '../domain/registry.ts'
import type { Silence } from '../domain/silence.ts'
import type { LastLines, ListedTarget, LogSubject, QueryVerdict, Source } from '../domain/source.ts'
import type { StatementCounts, StatementSnapshot } from '../domain/statement-snapshot.ts'

/** One request to a source, bounded by the caller: the answer by `accept`, or a SourceError. */
export type AskSource = (request: SourceRequest) => Promise<unknown>

export type SourceRequest = {
  method?: 'GET' | 'POST'
  /** Below the source's address, with its query. */
  path: string
  /** For a POST: form fields, or a value sent as JSON. */
  form?: Record<string, string>
  json?: unknown
  /**
   * `json` by default: any other answer is refused. `page`: JSON or text, and its status is part of
   * the answer.
   */
  accept?: 'json' | 'lines' | 'text' | 'page'
  /** The server's words, where it is no answer to a query. */
  maxBytes?: number
}

/** The answer to a request that accepts a page. */
export type PageAnswer = { status: number; json: unknown } | { status: number; text: string }

/** Why a source gave no answer, in a closed word and a sentence that names the remedy. */
export type SourceErrorCode =
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'TOO_LARGE'
  | 'REDIRECT'
  | 'UNAUTHORIZED'
  | 'FORBIDDEN'
  | 'UNTRUSTED_CERTIFICATE'
  | 'BAD_ANSWER'
  | 'REJECTED'
  | 'NO_CREDENTIAL'
  | 'NO_TENANT'
  | 'RESTING'
  | 'BUSY'

export class SourceError extends Error {
  override name = 'SourceError' as const
  readonly code: SourceErrorCode
  /** The server's words with a status of no success. */
  readonly status: number | null
  constructor(code: SourceErrorCode, message: string, { status = null, ...options }: SourceErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.status = status
  }
}

type SourceErrorOptions = ErrorOptions & { status?: number | null }

/**
 * A tool's reading: a summary for the model (2 kB at most), the whole as text, and whether nothing
 * was there, where all was searched. `isPartial`: something may be missing, and the summary says
 * why; then nothing found is no evidence of absence.
 */
export type ToolReading = {
  summary: Record<string, unknown>
  whole: string
  isEmpty: boolean
  isPartial?: boolean
  /** The whole is a part of what was asked for: there was more than is read. */
  isCut?: boolean
}

const maxRemarks = 3
const maxRemarkCharacters = 160

/**
 * A server's remarks, where they are a list: the first three texts, each on one line and cut.
 * Empty: none.
 */
export function quoteRemarks(given: unknown): string[] {
  if (!Array.isArray(given)) return []
  const lines = given.map((each) => (typeof each === 'string' ? each.replace(/\s+/g, ' ').trim() : ''))
  const distinct = [...new Set(lines.map((line) => line || 'without words'))]
  const shown = distinct.slice(0, maxRemarks).map((line) => cutText(line, maxRemarkCharacters))
  return distinct.length > maxRemarks ? [...shown, `and ${distinct.length - maxRemarks} more`] : shown
}

export type ReadContext = {
  nowMs: number
  options: Record<string, unknown>
  /** When the incident began; null outside one. */
  incidentBeganMs: number | null
  /** A database server's snapshots of its statement counters, of the last eight days. */
  pastStatements?: () => Promise<StatementSnapshot[]>
}

/**
 * A tool of a kind of source. Judged by its arguments alone, in the kernel and again before it is
 * sent.
 */
export type SourceTool<Ask = AskSource> = {
  name: string
  description: string
  /** Offered once it is asked for: `more_tools`. */
  isRare?: boolean
  /** Offered only where a source's options allow it. */
  needs?: 'queries'
  /** Incidents whose first turn offers it, by their resource's kind; absent: all. */
  firstFor?: readonly InventoryKind[]
  /** Where a runbook fits the incident, the first turn offers it only if the runbook names it. */
  isSituational?: boolean
  input: z.ZodObject
  /**
   * It may ask a device instead, named by `on`: fields with a meaning only there, and only to a
   * source.
   */
  alsoOfDevices?: { deviceFields: readonly string[]; sourceFields: readonly string[] }
  judge(args: Record<string, unknown>): QueryVerdict
  /** Judged besides by the options of the source that is asked, before it is sent. */
  judgeAt?(args: Record<string, unknown>, options: Record<string, unknown>, source: string): QueryVerdict
  /** Labels that the query fixes to one value: what it is about. */
  labels(args: Record<string, unknown>): Record<string, string>
  read(ask: Ask, args: Record<string, unknown>, context: ReadContext): Promise<ToolReading>
  /** What a summary says, in one sentence for people, without the source's name. */
  say(summary: Record<string, unknown>, args: Record<string, unknown>): string
}

/**
 * Parts of an investigation's context: what each asks about, and a source's words. A further part
 * is a line here.
 */
export type ContextParts = {
  /** What an alert computes, by a source that evaluates rules. */
  rule: { subject: { name: string; labels: Record<string, string> }; found: Record<string, unknown> }
  /** What a thing wrote last, by a source that holds logs. */
  lines: { subject: LogSubject; found: LastLines }
  /** How a server of databases is, by its own source. */
  database: { subject: Record<string, never>; found: { facts: string[] } }
  /** A cluster's thing by its source. `name`: the cluster's; `pod`: the alert's. */
  cluster: { subject: ResourceRef & { name: string; pod: string | null }; found: { facts: string[] } }
}

export type Since = { sinceMs: number; nowMs: number }

/** The parts that a kind has something to say about. Null: it holds nothing of the subject. */
type ContextOf<Ask> = {
  [Part in keyof ContextParts]?: (
    ask: Ask,
    subject: ContextParts[Part]['subject'],
    since: Since,
  ) => Promise<ContextParts[Part]['found'] | null>
}

/** A source's knowledge: its scraped targets, or the server or cluster that it is. */
export type ListedResources = { targets: ListedTarget[] } | { database: ListedDatabase } | { cluster: ListedCluster }

export type SourceKind<Ask = AskSource> = {
  kind: string
  /** For people: `Prometheus, VictoriaMetrics, Thanos or Mimir`. */
  title: string
  /** Schemes of its addresses, where neither http nor https. */
  protocol?: 'postgresql' | 'mysql'
  options: z.ZodType<Record<string, unknown>>
  /**
   * The way to speak with it. `directory`: the only one with files for the source. `guardAsker` has
   * limits, breaker and health.
   */
  connect(source: Source, directory: string): Ask
  /**
   * Refuses known faults before anything is asked, as a credential that a program makes. Throws
   * SourceError.
   */
  check?(source: Omit<Source, 'createdBy' | 'createdAt'>, directory: string): void
  /** A small question that shows that the source answers, in a sentence. */
  probe(ask: Ask, options: Record<string, unknown>): Promise<string>
  /** What people should know of it though it answers, as a login that may do too much. */
  warn?(ask: Ask): Promise<string | null>
  /** What may be read of it, where its options say that: for the context of an investigation. */
  allows?(options: Record<string, unknown>): Record<string, unknown> | null
  contextOf?: ContextOf<Ask>
  /**
   * A source's list of what there is: its scraped targets, which has no authority. Null: none, or
   * none yet.
   */
  listResources?(ask: Ask): Promise<ListedResources | null>
  /** What it lists is kept in memory by a watch: it is asked for it each half minute. */
  isFollowed?: true
  /**
   * The source is a thing of the registry, of this kind and with its name: each answer is a look at
   * it.
   */
  is?: InventoryKind
  /** How a thing that it lists is now, by what is kept of it. Null: it has no such thing. */
  stateOf?(ask: Ask, resource: ResourceRef & { name: string }): Promise<ResourceState | null>
  /**
   * The page of a cluster's thing: its state now, and lines of a pod's log. Null: the cluster has
   * no such thing.
   */
  clusterPage?: {
    now(ask: Ask, resource: ResourceRef & { name: string }, nowMs: number): Promise<ClusterNow | null>
    log(
      ask: Ask,
      resource: ResourceRef & { name: string },
      question: PodLogQuestion,
      nowMs: number,
    ): Promise<PodLog | null>
  }
  /** Silences there, for rules of the site's policy. */
  readSilences?(ask: Ask): Promise<Silence[]>
  /** A database server's state now, for its page. */
  readState?(ask: Ask): Promise<DatabaseState>
  /** A database server's statement counters. Null: it counts none. */
  countStatements?(ask: Ask): Promise<StatementCounts | null>
  tools: readonly SourceTool<Ask>[]
}

/**
 * A kind with a transport besides HTTP, checked against its own tools: only it knows question and
 * answer.
 */
export const defineSourceKind = <Ask>(kind: SourceKind<Ask>): SourceKind => kind as unknown as SourceKind

/** A tool with its types checked against each other. */
export function defineSourceTool<Input extends z.ZodObject, Ask = AskSource>(tool: {
  name: string
  description: string
  isRare?: boolean
  needs?: SourceTool['needs'] & {}
  firstFor?: SourceTool['firstFor'] & {}
  /** Where a runbook fits the incident, the first turn offers it only if the runbook names it. */
  isSituational?: boolean
  input: Input
  alsoOfDevices?: SourceTool['alsoOfDevices']
  judge(args: z.output<Input>): QueryVerdict
  judgeAt?(args: z.output<Input>, options: Record<string, unknown>, source: string): QueryVerdict
  labels(args: z.output<Input>): Record<string, string>
  read(ask: Ask, args: z.output<Input>, context: ReadContext): Promise<ToolReading>
  say(summary: Record<string, unknown>, args: z.output<Input>): string
}): SourceTool<Ask> {
  return tool as unknown as SourceTool<Ask>
}

/** Most bytes of a summary: what a model reads of one answer. */
export const maxSummaryBytes = 2_000

/** Texts whole, then shorter: a stranger's label may exceed all that is shown. */
const textLimits = [null, 160, 60, 20] as const

/**
 * Drops items from the end until the summary fits; `omitted`: how many. Where not one fits, its and
 * its neighbours' texts are cut. Built a few times only, since items may be many.
 */
export function fitSummary<T>(
  items: readonly T[],
  build: (kept: readonly T[], omitted: number) => Record<string, unknown>,
): Record<string, unknown> {
  for (const limit of textLimits) {
    const summaryOf = (kept: number) => {
      const summary = build(items.slice(0, kept), items.length - kept)
      return limit === null ? summary : (cutTexts(summary, limit) as Record<string, unknown>)
    }
    const fits = (kept: number) => Buffer.byteLength(JSON.stringify(summaryOf(kept))) <= maxSummaryBytes
    // An item takes two bytes at least.
    let [low, high] = [0, Math.min(items.length, maxSummaryBytes / 2)]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (fits(middle)) low = middle
      else high = middle - 1
    }
    if (low > 0 || (items.length === 0 && fits(0))) return summaryOf(low)
  }
  return { notShown: items.length, because: 'its names and texts are longer than a summary' }
}

export const cutText = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1)}…`.toWellFormed()

/** Names left of each list where not all fit. */
const maxNames = 20

/** Each text cut, and each list of names to its first; left-out parts are counted in place. */
function cutTexts(value: unknown, max: number): unknown {
  const cut = (text: string) => cutText(text, max)
  if (typeof value === 'string') return cut(value)
  if (Array.isArray(value)) return value.map((each) => cutTexts(each, max))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  const kept = entries.slice(0, maxNames).map(([name, each]) => [cut(name), cutTexts(each, max)])
  if (entries.length > maxNames) kept.push(['…', `${entries.length - maxNames} more`])
  return Object.fromEntries(kept)
}
