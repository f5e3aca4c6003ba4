import type { IncidentEvent } from '../../domain/event.ts'
import { formatClock, formatSpan } from '../../domain/format.ts'
import type { DetailedIncident, Surroundings } from '../../domain/incident-detail.ts'
import { usePendingApprovals } from '../approvals/query.ts'
import { Inert } from '../inert.tsx'
import { Link } from '../router.tsx'
import { useNow } from '../time.ts'
import { ActionDialog } from './action-dialog.tsx'
import { getRefusal } from './query.ts'

type Props = { incident: DetailedIncident; surroundings: Surroundings | null; events: IncidentEvent[] }

/** What happens now, while nothing new is written: who is waited for, for how long, which turn it is, and the way to stop it. */
export function Progress({ incident, surroundings, events }: Props) {
  const now = useNow()
  if (incident.status === 'open' && incident.queue) {
    return (
      <p className="said progress" role="status">
        <Inert text={incident.queue.text} />
      </p>
    )
  }
  if (incident.status !== 'investigating') return null
  const { what, since, turn } = doingNow(incident, events)
  const refused = getRefusal(surroundings, 'take')
  return (
    <div className="said progress row apart">
      <p>
        <strong>
          <Inert text={what} />
        </strong>
        {since !== null && <span className="soft"> · {formatSpan(now - since)}</span>}
        {turn && <span className="soft"> · {turn}</span>}
      </p>
      <ActionDialog
        incident={incident}
        refused={refused}
        button="Stop"
        path="take"
        title="Stop this run and take the incident"
      >
        <p>
          The run ends after the step it is at; a write under way is looked at first. You have the incident then, and
          the agent makes no attempt until you give it back.
        </p>
      </ActionDialog>
    </div>
  )
}

type Doing = { what: string; since: number | null; turn: string | null }

/** From the newest rows of this attempt, and from what the API knows of its question to the model. */
function doingNow({ attempt, model, waits }: DetailedIncident, all: IncidentEvent[]): Doing {
  const events = all.filter((event) => event.attempt === attempt)
  const opening = events.findLast((event) => event.kind === 'context_assembled')
  const context = opening?.kind === 'context_assembled' ? opening.metadata : null
  const answered = events.filter(({ kind }) => kind === 'model_answered').length
  const formatTurn = (number: number) => (context ? `turn ${number} of ${context.maxTurns}` : null)
  if (waits) {
    const away = waits.for === 'database' ? 'database' : 'core API'
    return {
      what: `Waits for the ${away}, which does not answer`,
      since: Date.parse(waits.since),
      turn: formatTurn(answered),
    }
  }
  if (model) {
    const name = context?.model ?? 'The model'
    const since = Date.parse(model.since)
    if (model.state === 'asked') return { what: `${name} is answering`, since, turn: formatTurn(answered + 1) }
    const ahead = model.ahead === 0 ? 'next' : `${model.ahead} ahead`
    return { what: `Waits for a model slot, ${ahead}`, since, turn: formatTurn(answered + 1) }
  }
  const turn = answered > 0 ? formatTurn(answered) : null
  const last = events.at(-1)
  if (!last) return { what: 'The run begins', since: null, turn }
  const since = Date.parse(last.at)
  if (last.kind === 'tool_started' || last.kind === 'tool_output')
    return { what: `Runs ${last.metadata.tool}`, since, turn }
  if (!context) return { what: 'Gathers context', since, turn }
  return { what: 'Works', since, turn }
}

/** What this incident waits for, first thing on its page. */
export function Waiting({ incidentId }: { incidentId: string }) {
  const now = useNow()
  const { items } = usePendingApprovals()
  const approval = items.find((each) => each.incidentId === incidentId)
  if (!approval) return null
  return (
    <p className="said lamp row">
      <strong>
        Waits for a person: <Inert text={approval.dryRun.summary} />
      </strong>
      <span>{formatClock(Date.parse(approval.expiresAt) - now)} left</span>
      <Link href={`/approvals/${approval.id}`}>Look and decide</Link>
    </p>
  )
}
