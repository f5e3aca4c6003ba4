import type { IncidentEvent } from '../../domain/event.ts'
import { Inert } from '../inert.tsx'
import { Sign } from '../kinds.tsx'
import { Link } from '../router.tsx'
import { offset } from '../time.ts'
import { found, signOf } from './aside.ts'

/** One line per call: what was called, what came of it, who let it pass. Everything else keeps a separate line. */
export function Compact({ events, start, target }: { events: IncidentEvent[]; start: number; target: number | null }) {
  return (
    <ol className="timeline compact">
      {linesOf(events).map((line) => {
        const [first] = line
        const last = line.at(-1)
        if (!first || !last) return null
        const isTarget = line.some(({ seq }) => seq === target)
        return (
          <li key={first.seq} id={`e-${first.seq}`} className="entry" aria-current={isTarget ? 'true' : undefined}>
            <Link className="seq" href={`${location.pathname}#e-${first.seq}`}>
              {first.seq}
            </Link>
            <time dateTime={first.at}>{offset(Date.parse(first.at) - start)}</time>
            <span className="text row">
              {line.length > 1 && <code>{toolOf(first)}</code>}
              {line.map((event) => {
                const { shape, tone, word } = signOf(event)
                return (
                  <span key={event.seq} className={`mark tone-${tone}`} title={event.detail}>
                    <Sign shape={shape} />
                    {word}
                  </span>
                )
              })}
              <span className="ellipsis">
                <Inert text={last.kind === 'tool_finished' ? found(last.metadata.result) : last.detail} />
              </span>
            </span>
          </li>
        )
      })}
    </ol>
  )
}

/** Rows of one call in one attempt, in the order in which the calls began. */
function linesOf(events: IncidentEvent[]): IncidentEvent[][] {
  const lines: IncidentEvent[][] = []
  const ofCall = new Map<string, IncidentEvent[]>()
  for (const event of events) {
    const callId = (event.metadata as { callId?: unknown }).callId
    const key = typeof callId === 'string' ? `${event.attempt}/${callId}` : null
    const line = key ? ofCall.get(key) : undefined
    if (line) line.push(event)
    else {
      const begun = [event]
      lines.push(begun)
      if (key) ofCall.set(key, begun)
    }
  }
  return lines
}

function toolOf(event: IncidentEvent): string {
  const { tool } = event.metadata as { tool?: unknown }
  return typeof tool === 'string' ? tool : ''
}
