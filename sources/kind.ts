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

/**
 * Sends a request within limits. Returns the response in the form of `accept`, or throws
 * SourceError.
 */
export type AskSource = (request: SourceRequest) => Promise<unknown>

export type SourceRequest = {
  method?: 'GET' | 'POST'
  /** The path and query below the source's address. */
  path: string
  /** Form fields, or a JSON value, for a POST. */
  form?: Record<string, string>
  json?: unknown
  /**
   * `json`, the default, refuses any other response. `page` accepts JSON or text with any status,
   * and returns the status.
   */
  accept?: 'json' | 'lines' | 'text' | 'page'
  /** A higher limit for a large response that is not the result of a query. */
  maxBytes?: number
}

/** The response to a request that accepts a page. */
export type PageAnswer = { status: number; json: unknown } | { status: number; text: string }

/** The reason why a source gave no usable response, as a fixed code. */
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
  /** The HTTP status of the server's refusal. */
  readonly status: number | null
  constructor(code: SourceErrorCode, message: string, { status = null, ...options }: SourceErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.status = status
  }
}

type SourceErrorOptions = ErrorOptions & { status?: number | null }

/**
 * The result of a tool: a summary for the model (2 kB at most), the complete text, and whether a
 * complete search found nothing. `isPartial`: results may be missing, and the summary says why; an
 * empty result is then no evidence of absence.
 */
export type ToolReading = {
  summary: Record<string, unknown>
  whole: string
  isEmpty: boolean
  isPartial?: boolean
  /** True if the complete text is cut, because the source has more than was read. */
  isCut?: boolean
}

const maxRemarks = 3
const maxRemarkCharacters = 160

/**
 * Returns the first three remarks of a server, each on one line and cut. Empty if the server sent
 * no list of remarks.
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
  /** The time when the incident began. Null outside of an incident. */
  incidentBeganMs: number | null
  /** Reads the snapshots of a database server's statement counters of the last eight days. */
  pastStatements?: () => Promise<StatementSnapshot[]>
}

/**
 * A tool of a kind of source. The judge decides about a call by its arguments alone: when the model
 * proposes the call, and again before the request is sent.
 */
export type SourceTool<Ask = AskSource> = {
  name: string
  description: string
  /** True if the model gets this tool only through `more_tools`. */
  isRare?: boolean
  /** Set if the tool is offered only if a source's options allow it. */
  needs?: 'queries'
  /**
   * The kinds of resources for whose incidents the first turn offers this tool. Absent for all
   * kinds.
   */
  firstFor?: readonly InventoryKind[]
  /**
   * True if the first turn leaves the tool out when a runbook fits the incident but does not name
   * the tool.
   */
  isSituational?: boolean
  input: z.ZodObject
  /**
   * Set if the tool may also read from the device that the argument `on` names. Lists the fields
   * that only devices support, and the fields that only sources support.
   */
  alsoOfDevices?: { deviceFields: readonly string[]; sourceFields: readonly string[] }
  judge(args: Record<string, unknown>): QueryVerdict
  /** Judges a call also by the options of the queried source, before the request is sent. */
  judgeAt?(args: Record<string, unknown>, options: Record<string, unknown>, source: string): QueryVerdict
  /** Returns the labels that the query fixes to one value. They name the subject of the query. */
  labels(args: Record<string, unknown>): Record<string, string>
  read(ask: Ask, args: Record<string, unknown>, context: ReadContext): Promise<ToolReading>
  /** Describes a summary in one sentence for people, without the source's name. */
  say(summary: Record<string, unknown>, args: Record<string, unknown>): string
}

/**
 * The parts of an investigation's context that sources provide: the subject of each part and the
 * data that a source returns. A new part is one more line here.
 */
export type ContextParts = {
  /** The rule of an alert, from a source that evaluates rules. */
  rule: { subject: { name: string; labels: Record<string, string> }; found: Record<string, unknown> }
  /** The newest log lines of a resource, from a source that holds logs. */
  lines: { subject: LogSubject; found: LastLines }
  /** The state of a database server, from the source that is this server. */
  database: { subject: Record<string, never>; found: { facts: string[] } }
  /**
   * The state of an object of a cluster, from the source that is this cluster. `name` is the
   * object's name in the cluster; `pod` is the pod that the alert names.
   */
  cluster: { subject: ResourceRef & { name: string; pod: string | null }; found: { facts: string[] } }
}

export type Since = { sinceMs: number; nowMs: number }

/**
 * Functions that read the context parts of which a kind of source knows. A function returns null if
 * the source has nothing about the subject.
 */
type ContextOf<Ask> = {
  [Part in keyof ContextParts]?: (
    ask: Ask,
    subject: ContextParts[Part]['subject'],
    since: Since,
  ) => Promise<ContextParts[Part]['found'] | null>
}

/** Resources that a source lists: its scrape targets, or the server or cluster that it is. */
export type ListedResources = { targets: ListedTarget[] } | { database: ListedDatabase } | { cluster: ListedCluster }

export type SourceKind<Ask = AskSource> = {
  kind: string
  /** The name of the kind for people, such as `Prometheus, VictoriaMetrics, Thanos or Mimir`. */
  title: string
  /** The scheme of a source's addresses, if the scheme is not http or https. */
  protocol?: 'postgresql' | 'mysql'
  options: z.ZodType<Record<string, unknown>>
  /**
   * Connects to a source. `directory` is the only directory with files of sources. `guardAsker`
   * adds limits, circuit breaker and health.
   */
  connect(source: Source, directory: string): Ask
  /**
   * Refuses known mistakes before a request is sent, such as a credential from a program. Throws
   * SourceError.
   */
  check?(source: Omit<Source, 'createdBy' | 'createdAt'>, directory: string): void
  /** Sends a small query. Returns a sentence that the source responds. */
  probe(ask: Ask, options: Record<string, unknown>): Promise<string>
  /**
   * Returns a warning for people about a source that responds, such as too many rights of its
   * login.
   */
  warn?(ask: Ask): Promise<string | null>
  /** Lists the reads that the source's options allow, for the context of an investigation. */
  allows?(options: Record<string, unknown>): Record<string, unknown> | null
  contextOf?: ContextOf<Ask>
  /**
   * Lists the source's resources. Scrape targets have no authority over names in the registry. Null
   * if the source has no resources, or none yet.
   */
  listResources?(ask: Ask): Promise<ListedResources | null>
  /** True if a watch keeps the list in memory, which is then read every half minute. */
  isFollowed?: true
  /**
   * The kind of resource that the source itself is in the registry, under its own name. Each
   * response of the source counts as a read of this resource.
   */
  is?: InventoryKind
  /** Returns the state of a listed resource from memory. Null if there is no such resource. */
  stateOf?(ask: Ask, resource: ResourceRef & { name: string }): Promise<ResourceState | null>
  /**
   * Reads an object of a cluster for its page: `now` its present state, `log` lines of a pod's log.
   * Null if the cluster has no such object.
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
  /** Reads the silences of the source, for rules of the site policy. */
  readSilences?(ask: Ask): Promise<Silence[]>
  /** Reads the present state of a database server for its page. */
  readState?(ask: Ask): Promise<DatabaseState>
  /** Reads the statement counters of a database server. Null if the server counts no statements. */
  countStatements?(ask: Ask): Promise<StatementCounts | null>
  tools: readonly SourceTool<Ask>[]
}

/** Defines a kind of source with its own transport. Types are checked only within the kind. */
export const defineSourceKind = <Ask>(kind: SourceKind<Ask>): SourceKind => kind as unknown as SourceKind

/** Defines a tool of a source. The types of its functions are checked against its input. */
export function defineSourceTool<Input extends z.ZodObject, Ask = AskSource>(tool: {
  name: string
  description: string
  isRare?: boolean
  needs?: SourceTool['needs'] & {}
  firstFor?: SourceTool['firstFor'] & {}
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

/** The most bytes of a summary, which is all that the model sees of a result. */
export const maxSummaryBytes = 2_000

/**
 * The lengths to which texts are cut, tried in this order. One untrusted label may be longer than a
 * complete summary.
 */
const textLimits = [null, 160, 60, 20] as const

/**
 * Drops items from the end until the summary fits; `omitted` is the number of dropped items. If not
 * even one item fits, all texts of the summary are cut. Builds the summary only a few times,
 * because there may be many items.
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
    // Limits the search: an item takes at least two bytes.
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

/** The most entries of an object that are kept if not all fit. */
const maxNames = 20

/** Cuts each text, and each object with many entries, which then ends with their number. */
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
