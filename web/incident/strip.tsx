import type { CSSProperties } from 'react'
import type { ServedBrief } from '../../domain/brief.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { placeIn } from '../lane.tsx'
import { formatMoment, formatTimeOfDay, useNow } from '../time.ts'
import { RowLink } from './row-link.tsx'

type Kind = 'turn' | 'waits' | 'ahead' | 'write' | 'held' | 'failed'
/** Times are in milliseconds. A mark begins and ends at the same time. */
type Span = { kind: Kind; from: number; to: number; words: string; seq: number }

const words: Record<Kind, string> = {
  turn: 'the model answered',
  waits: 'waited for a person',
  ahead: 'waits until',
  write: 'a write began',
  held: 'verified',
  failed: 'its verification failed',
}

/**
 * Draws an incident as one line of marks: turns, writes, verifications, waiting, and below it
 * whether its alert fired.
 */
export function Strip({
  incident,
  brief,
  events,
}: {
  incident: Incident
  brief: ServedBrief
  events: IncidentEvent[]
}) {
  const now = useNow()
  const expires = brief.asked ? Date.parse(brief.asked.expiresAt) : null
  const spans = listSpans(events, now)
  if (expires !== null && expires > now)
    spans.push({ kind: 'ahead', from: now, to: expires, words: words.ahead, seq: 0 })
  const began = Date.parse(incident.createdAt)
  const end = incident.closedAt ? Date.parse(incident.closedAt) : now
  const window: [number, number] = [began, Math.max(end, expires ?? 0, began + minWindowMs)]
  const place = (from: number, to: number) =>
    ({ '--a': placeIn(window, from), '--b': placeIn(window, to) }) as CSSProperties
  const firedUntil = brief.alert.state === 'firing' ? now : brief.alert.endedAt ? Date.parse(brief.alert.endedAt) : null
  return (
    <figure className="strip" aria-label={describe(spans, incident)}>
      <span className="line" />
      {firedUntil !== null && (
        <i
          className={brief.alert.state === 'firing' ? 'fires' : 'fired'}
          style={place(Date.parse(brief.since.at), firedUntil)}
        />
      )}
      {spans.map(({ kind, from, to, words: said, seq }) => {
        const title = `${said}, ${formatTimeOfDay(new Date(from).toISOString())}`
        const mark = { className: kind, style: place(from, to), title }
        const key = `${kind} ${from} ${seq}`
        if (seq === 0) return <i key={key} {...mark} />
        // A link only for the pointer. Keys and screen readers use the list of turns below.
        return (
          <RowLink key={key} {...mark} seq={seq} aria-label={title} tabIndex={-1}>
            {null}
          </RowLink>
        )
      })}
      {!incident.closedAt && <i className="now" style={place(now, now)} />}
      <span className="from">{formatTimeOfDay(incident.createdAt).slice(0, 5)}</span>
      <span className="to">
        {incident.closedAt
          ? `${formatTimeOfDay(incident.closedAt).slice(0, 5)} closed`
          : expires !== null && expires > now
            ? `${formatTimeOfDay(new Date(expires).toISOString()).slice(0, 5)} the approval expires`
            : 'now'}
      </span>
      {firedUntil !== null && (
        <span className="low">
          {brief.alert.state === 'firing'
            ? 'its alert fires'
            : `its alert ended ${formatMoment(brief.alert.endedAt ?? '')}`}
        </span>
      )}
    </figure>
  )
}

const minWindowMs = 1_000

function describe(spans: Span[], incident: Incident): string {
  const counts = Object.entries(Object.groupBy(spans, ({ kind }) => kind)).map(
    ([kind, all]) => `${all.length} × ${words[kind as Kind]}`,
  )
  return [`Since ${formatMoment(incident.createdAt)}`, ...counts].join(', ')
}

function listSpans(events: IncidentEvent[], now: number): Span[] {
  const ends = new Map<string, number>()
  for (const event of events) {
    if (event.kind === 'approval_decided' || event.kind === 'approval_expired' || event.kind === 'approval_withdrawn')
      ends.set(event.metadata.approvalId, Date.parse(event.at))
  }
  return events.flatMap((event): Span[] => {
    const at = Date.parse(event.at)
    const mark = (kind: Kind, from = at, to = at): Span[] => [{ kind, from, to, words: words[kind], seq: event.seq }]
    switch (event.kind) {
      case 'model_answered':
        return mark('turn', at - event.metadata.durationMs)
      case 'approval_requested':
        return mark('waits', at, ends.get(event.metadata.approvalId) ?? now)
      case 'tool_started':
        return event.metadata.effect === 'write' ? mark('write') : []
      case 'verification':
        return event.metadata.outcome === 'held'
          ? mark('held')
          : event.metadata.outcome === 'not_held'
            ? mark('failed')
            : []
      default:
        return []
    }
  })
}
