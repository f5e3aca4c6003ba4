import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import type { ServedBrief } from '../../domain/brief.ts'
import type { VerificationOutcome } from '../../domain/envelope.ts'
import type { EventMetadata, IncidentEvent, NotedCode } from '../../domain/event.ts'
import { truncate } from '../../domain/format.ts'
import { formatVerification } from '../../domain/format-approval.ts'
import type { DetailedIncident, PersonAction, Surroundings } from '../../domain/incident-detail.ts'
import { messageMark } from '../../domain/message.ts'
import type { ResourceState } from '../../domain/registry.ts'
import { verdictWords } from '../../domain/status-words.ts'
import type { Envelope } from '../../domain/tool.ts'
import { ask, type ListPage, queryClient, readAgain, useAsk } from '../api.ts'
import { useLive } from '../live.tsx'
import { kinds, type MarkShape, type Tone } from '../marks.tsx'

/**
 * Milliseconds between reads of a changing state, because neither the queue nor the waiting for a
 * model writes rows.
 */
const askAgainMs = 3_000
const isMoving = (incident: DetailedIncident | undefined) =>
  incident?.status === 'open' || incident?.status === 'investigating'

/** Reads an incident, its log so far and live, and its surroundings. */
export function useIncident(id: string) {
  const eventsKey = ['events', id]
  // Reads again on return, because no stream ran while another page was open. Until then it shows
  // the rows of the last visit.
  const onReturn = { refetchOnMount: 'always' } as const
  const incident = useAsk<DetailedIncident>(['incident', id], `/incidents/${encodeURIComponent(id)}`, {
    ...onReturn,
    refetchInterval: ({ state }) => isMoving(state.data) && askAgainMs,
  })
  const surroundings = useAsk<Surroundings>(
    ['surroundings', id],
    `/incidents/${encodeURIComponent(id)}/surroundings`,
    onReturn,
  )
  const brief = useAsk<ServedBrief>(['brief', id], `/incidents/${encodeURIComponent(id)}/brief`, onReturn)
  const about = incident.data?.resource
  const state = useAsk<ResourceState>(
    ['state', id],
    `/resources/${about?.kind}/${encodeURIComponent(about?.id ?? '')}/state`,
    { ...onReturn, enabled: about != null && about.kind !== 'incident' && about.kind !== 'proposal' },
  )
  const total = incident.data?.events
  const events = useQuery({
    ...onReturn,
    queryKey: eventsKey,
    enabled: total !== undefined,
    // Reads the newest rows. Earlier rows that were loaded stay.
    queryFn: ({ signal }) =>
      readLog(
        id,
        (queryClient.getQueryData<IncidentEvent[]>(eventsKey)?.[0]?.seq ?? Math.max(1, (total ?? 0) - pageRows + 1)) -
          1,
        signal,
      ),
  })
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)

  useLive((event) => {
    if (event.incidentId !== id) return
    const known = queryClient.getQueryData<IncidentEvent[]>(eventsKey)
    const last = known?.at(-1)?.seq ?? 0
    // Numbers have no gaps. The next number is appended, and any other number means that rows are
    // missing.
    if (known && event.seq === last + 1) queryClient.setQueryData(eventsKey, [...known, event])
    else if (!known || event.seq > last) void readAgain(eventsKey)
    clearTimeout(timer.current)
    const keys = ['incident', 'brief', 'surroundings', 'state'].map((key) => [key, id])
    timer.current = setTimeout(() => void readAgain(...keys), 300)
  })
  return { incident, brief, surroundings, events, state: state.data ?? null }
}

/** Number of rows that are read at once. */
export const pageRows = 1_000

/**
 * Loads the rows from a number up to the first loaded one. A number below 1 means from the
 * beginning.
 */
export async function readEarlier(id: string, fromSeq: number): Promise<void> {
  const key = ['events', id]
  const known = queryClient.getQueryData<IncidentEvent[]>(key)
  const first = known?.[0]?.seq ?? 1
  const after = Math.max(0, fromSeq - 1)
  if (!known || after >= first - 1) return
  const earlier = await readLog(id, after, undefined, first - 1)
  queryClient.setQueryData<IncidentEvent[]>(key, (now = []) => (now[0]?.seq === first ? [...earlier, ...now] : now))
}

/** Returns a row by its number if it is loaded, or reads it separately. */
export function useRow(incidentId: string, seq: number, known: readonly IncidentEvent[]) {
  const own = known.find((event) => event.seq === seq)
  const path = `/incidents/${encodeURIComponent(incidentId)}/events?limit=1&after=${seq - 1}`
  const query = useAsk<ListPage<IncidentEvent>>(['row', incidentId, seq], path, { enabled: own === undefined })
  return { row: own ?? query.data?.items.find((event) => event.seq === seq), query }
}

async function readLog(
  id: string,
  after: number,
  signal?: AbortSignal,
  upTo = Number.POSITIVE_INFINITY,
): Promise<IncidentEvent[]> {
  const all: IncidentEvent[] = []
  let from: string | null = String(after)
  while (from !== null && Number(from) < upTo) {
    const limit = Math.min(pageRows, upTo - Number(from))
    const page: ListPage<IncidentEvent> = await ask<ListPage<IncidentEvent>>(
      `/incidents/${encodeURIComponent(id)}/events?limit=${limit}&after=${from}`,
      signal ? { signal } : {},
    )
    all.push(...page.items)
    from = page.nextCursor
  }
  return all
}

/**
 * Returns why an action is not possible now, or that this is not known yet. Null for a possible
 * action.
 */
export function getRefusal(surroundings: Surroundings | null, action: PersonAction): string | null {
  if (!surroundings) return 'Not known yet.'
  return surroundings.actions.find((each) => each.action === action)?.refused ?? null
}

/** Lists the few figures of a row that are shown in its line. */
export function listHighlights(event: IncidentEvent): string[] {
  switch (event.kind) {
    case 'model_answered': {
      const { usage, durationMs, model, calls } = event.metadata
      return [
        model,
        `${usage.promptTokens + usage.completionTokens} tokens`,
        formatDuration(durationMs),
        ...calls.map(({ tool }) => `→ ${tool}`),
      ]
    }
    case 'commented': {
      const { hypothesis } = event.metadata
      return hypothesis ? [`${hypothesis.id} ${hypothesis.state}`] : []
    }
    case 'resolved':
    case 'escalated':
      return event.metadata.certainty ? [event.metadata.certainty] : []
    case 'context_assembled':
      return event.metadata.runbook ? [`runbook ${event.metadata.runbook.name}`] : []
    case 'tool_started':
      return [formatArguments(event.metadata.arguments)]
    case 'tool_finished':
      // Leaves out the text, because a source's result is drawn below its row, and the text of a
      // tool is the text of the row.
      return getReading(event) || event.metadata.said
        ? [formatDuration(event.metadata.durationMs)]
        : [formatDuration(event.metadata.durationMs), formatResult(event.metadata.result)]
    case 'call_judged':
      return [event.metadata.tool, verdictWords[event.metadata.verdict], event.metadata.code]
    case 'approval_requested':
      return [`${event.metadata.risk} risk`, `${event.metadata.required} to approve`]
    case 'approval_decided':
      return [`via ${event.metadata.via}`]
    case 'verification':
      return [formatVerification(event.metadata.outcome), event.metadata.observed].filter(Boolean)
    case 'looked': {
      const { verification, resource } = event.metadata
      return [lookPurposes[event.metadata.purpose], verification && formatVerification(verification), resource].flatMap(
        (word) => word ?? [],
      )
    }
    case 'budget_ended':
      return [`${event.metadata.used} of ${event.metadata.limit} ${event.metadata.budget}`]
    case 'notified':
      return [event.metadata.destination, event.metadata.status]
    default:
      return []
  }
}

/** A result of a source: a summary, and the digest of the complete result. */
export type SourceAnswer = { source: string; digest: string | null; summary: Record<string, unknown> }

/**
 * Returns a source's result that can be drawn: series as a chart, logs as templates. Otherwise
 * null.
 */
export function getReading(event: IncidentEvent): { reading: SourceAnswer; isLogs: boolean } | null {
  if (event.kind !== 'tool_finished' || event.metadata.outcome !== 'done') return null
  const data = event.metadata.result.data as Partial<SourceAnswer> | undefined
  if (typeof data?.source !== 'string' || typeof data.digest !== 'string' || typeof data.summary !== 'object')
    return null
  const isLogs = Array.isArray(data.summary?.templates)
  const isSeries = Array.isArray(data.summary?.series) && data.summary.series.length > 0
  return isLogs || isSeries ? { reading: data as SourceAnswer, isLogs } : null
}

const lookPurposes: Record<EventMetadata['looked']['purpose'], string> = {
  watch: 'after the repair',
  expected: 'is this the expected state?',
  crowd: 'after many alerts ended at once',
}

function formatDuration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

function formatArguments(value: Record<string, unknown>): string {
  return truncate(JSON.stringify(value), 160)
}

export function formatResult(result: Envelope): string {
  return result.error ? result.error.message : formatData(result.data)
}

/** Formats the beginning of a result, enough to decide whether to open it. */
function formatData(data: unknown): string {
  return truncate(JSON.stringify(data) ?? '', 150)
}

/** Returns the sign of a row: that of its kind, or of its outcome if this matters more. */
export function getSign(event: IncidentEvent) {
  const look = kinds[event.kind] ?? { word: event.kind, shape: 'ring', tone: 'quiet' }
  if (event.kind === 'tool_finished' && event.metadata.outcome !== 'done')
    return { ...look, word: event.metadata.outcome, shape: 'cross', tone: 'broken' } as const
  if (event.kind === 'call_judged' && event.metadata.verdict === 'refuse')
    return { ...look, word: 'refused', shape: 'cross', tone: 'broken' } as const
  if (event.kind === 'call_judged' && event.metadata.verdict === 'ask')
    return { ...look, word: 'requires approval', tone: 'act' } as const
  if (event.kind === 'approval_decided' && event.metadata.decision === 'deny')
    return { ...look, word: 'denied', shape: 'cross', tone: 'broken' } as const
  if (event.kind === 'approval_decided') return { ...look, word: 'approved', shape: 'check' } as const
  if (event.kind === 'verification')
    return { ...look, ...(verificationSigns[event.metadata.outcome] ?? verificationSigns.open) }
  if (event.kind === 'alert_received' && event.metadata.endReason !== undefined)
    return { ...look, word: 'no end', shape: 'ring', tone: 'ink' } as const
  if (event.kind === 'alert_received' && event.metadata.status === 'resolved')
    return { ...look, word: 'alert ended', shape: 'check', tone: 'proved' } as const
  if (event.kind === 'looked') return { ...look, ...getLookSign(event.metadata) }
  if (event.kind === 'commented' && event.metadata.action === messageMark)
    return { ...look, word: 'message', shape: 'arrow', tone: 'work' } as const
  if (event.kind === 'commented' && event.metadata.hypothesis)
    return { ...look, word: event.metadata.hypothesis.state, shape: 'half', tone: 'work' } as const
  if (event.kind === 'noted') return { ...look, ...noteSigns[event.metadata.code] }
  return look
}

/**
 * Returns the sign of a check by code: the worse of its postcondition and the state of the
 * resource.
 */
function getLookSign({ verification, resource }: EventMetadata['looked']) {
  if (verification === 'not_held' || resource === 'degraded') return { shape: 'cross', tone: 'broken' } as const
  if (verification === 'open' || resource === 'unknown') return { shape: 'ring', tone: 'ink' } as const
  return { shape: 'check', tone: 'proved' } as const
}

const noteSigns: Record<NotedCode, { word: string; shape?: MarkShape; tone?: Tone }> = {
  budget_day_80: { word: 'budget of the day', tone: 'ink' },
  budget_day_100: { word: 'budget of the day', shape: 'cross', tone: 'broken' },
  budget_month_80: { word: 'budget of the month', tone: 'ink' },
  budget_month_100: { word: 'budget of the month', shape: 'cross', tone: 'broken' },
  page_held: { word: 'page held', tone: 'ink' },
  page_released: { word: 'page released', shape: 'arrow', tone: 'act' },
  page_spared: { word: 'no page', shape: 'check', tone: 'proved' },
  wake_held: { word: 'held until morning', shape: 'ring', tone: 'ink' },
  wake_late: { word: 'not in morning report', shape: 'arrow', tone: 'act' },
  follow_up_opened: { word: 'follow-up', shape: 'arrow', tone: 'act' },
  follow_up_changed: { word: 'follow-up changed', tone: 'ink' },
  follow_up_closed: { word: 'follow-up done', shape: 'check', tone: 'proved' },
  withdrawn_at_temporal: { word: 'withdrawn at Temporal', shape: 'cross', tone: 'ink' },
  manual_change: { word: 'done by hand', shape: 'arrow', tone: 'work' },
  undo_asked: { word: 'undo asked', shape: 'arrow', tone: 'work' },
  undone: { word: 'undone', shape: 'check', tone: 'ink' },
  undo_refused: { word: 'not undone', shape: 'cross', tone: 'ink' },
  watch_started: { word: 'watched', shape: 'ring', tone: 'work' },
  watch_over: { word: 'over', shape: 'check', tone: 'proved' },
  watch_unknown: { word: 'unknown', shape: 'ring', tone: 'ink' },
  repair_confirmed: { word: 'repair verified', shape: 'check', tone: 'proved' },
  reopened: { word: 'came back', shape: 'triangle', tone: 'ink' },
  reminded: { word: 'reminded', shape: 'arrow', tone: 'ink' },
  quiet: { word: 'quiet', shape: 'check', tone: 'proved' },
  crowd: { word: 'many ends', shape: 'triangle', tone: 'ink' },
  ends_believed: { word: 'ended', shape: 'check', tone: 'quiet' },
  stale: { word: 'sender silent', shape: 'ring', tone: 'ink' },
  quiet_unproven: { word: 'quiet, unproven', shape: 'ring', tone: 'ink' },
  series_gone: { word: 'series gone', shape: 'ring', tone: 'ink' },
  foreign_end: { word: 'another sender ended it', shape: 'triangle', tone: 'ink' },
  late_end: { word: 'late end', shape: 'ring', tone: 'quiet' },
  ending_kept: { word: 'ending kept', shape: 'half', tone: 'work' },
  approval_passed: { word: 'next person', shape: 'ring', tone: 'act' },
  approval_extended: { word: 'more time', shape: 'ring', tone: 'act' },
  kept: { word: 'not investigated', shape: 'bar', tone: 'ink' },
  taken: { word: 'taken', shape: 'diamond', tone: 'work' },
  acknowledged_elsewhere: { word: 'acknowledged', shape: 'diamond', tone: 'work' },
  resolved_elsewhere: { word: 'resolved elsewhere', shape: 'diamond', tone: 'quiet' },
  given_back: { word: 'given back', shape: 'diamond', tone: 'quiet' },
  attempt_skipped: { word: 'skipped', shape: 'diamond', tone: 'ink' },
  run_lost: { word: 'run lost', shape: 'diamond', tone: 'ink' },
  owner_lapsed: { word: 'lapsed', shape: 'diamond', tone: 'ink' },
  expected_marked: { word: 'expected', shape: 'check', tone: 'quiet' },
  expected_ended: { word: 'mark ended', shape: 'bar', tone: 'quiet' },
  model_route: { word: 'other model', shape: 'arrow', tone: 'ink' },
  trust_lost: { word: 'trust lost', shape: 'cross', tone: 'broken' },
  called_wrong: { word: 'graded wrong', shape: 'cross', tone: 'broken' },
  not_as_expected: { word: 'not as expected', shape: 'triangle', tone: 'ink' },
}

/**
 * An outcome that is neither proved nor disproved is not a success: a ring if it could not be read,
 * a bar if nothing was promised.
 */
const verificationSigns = {
  held: {},
  not_held: { word: 'verification failed', shape: 'cross', tone: 'broken' },
  open: { word: 'not verified yet', shape: 'ring', tone: 'work' },
  unproven: { word: 'unproven', shape: 'bar', tone: 'ink' },
} as const satisfies Record<VerificationOutcome, object>
