import type { EscalationReport } from '../../domain/escalation.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { Inert } from '../inert.tsx'
import { Link } from '../router.tsx'

/** What the person reads first who is handed this incident: what to do, then what was found. Nothing where no row has it. */
export function Report({ events }: { events: IncidentEvent[] }) {
  const handed = events.findLast((event) => event.kind === 'escalated')
  if (handed?.kind !== 'escalated' || !handed.metadata.report) return null
  const { report } = handed.metadata
  return (
    <section className="said stack tight report" aria-labelledby="report-title">
      <h2 id="report-title">Handed to people</h2>
      <p>
        <strong>
          Next step: <Inert text={report.nextStep} />
        </strong>
      </p>
      <Lists report={report} />
      <p className="soft small">
        <Inert text={report.severity} />, <Inert text={report.resource} />, since <Inert text={report.since} /> ·{' '}
        <Link href={`${location.pathname}#e-${handed.seq}`}>row {handed.seq}</Link>
      </p>
    </section>
  )
}

function Lists({ report }: { report: EscalationReport }) {
  const lists: [string, string[], string][] = [
    ['Found', report.found, 'nothing yet'],
    ['Ruled out', report.ruledOut, 'nothing'],
    ['Changed', report.changed, 'nothing'],
  ]
  return (
    <dl>
      {lists.map(([title, items, none]) => (
        <div key={title}>
          <dt>{title}</dt>
          {items.length === 0 && <dd className="soft">{none}</dd>}
          {items.map((item) => (
            <dd key={item} className="wraps lines">
              <Inert text={item} />
            </dd>
          ))}
        </div>
      ))}
    </dl>
  )
}
