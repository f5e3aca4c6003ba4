import type { IncidentEvent } from '../domain/event.ts'
import { inertJsonText } from './inert.ts'
import { actorName, sentence } from './sentence.ts'
import { table } from './table.ts'
import { paint, width } from './terminal.ts'
import { elapsed } from './time.ts'
import { wrap } from './wrap.ts'

/** The whole log, a row per event. */
export function timeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  const rows = events.map((event) => [
    String(event.seq),
    elapsed(began, event.at),
    event.kind,
    actorName(event.actor).slice(0, 12),
    sentence(event),
  ])
  return table(['SEQ', 'AFTER', 'KIND', 'ACTOR', 'WHAT'], rows, 4)
}

/** The same with nothing cut and each row's metadata below it. */
export function fullTimeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  return events
    .map((event) =>
      [
        paint('bold', `${event.seq}  ${elapsed(began, event.at)}  ${event.kind}  ${actorName(event.actor)}`),
        `    ${wrap(sentence(event), width() - 4, '    ')}`,
        inertJsonText(event.metadata, 2).replace(/^/gm, '    '),
      ].join('\n'),
    )
    .join('\n')
}
