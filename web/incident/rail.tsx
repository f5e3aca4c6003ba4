import type { ServedBrief } from '../../domain/brief.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatNumber, formatSpan } from '../../domain/format.ts'
import type { Incident } from '../../domain/incident.ts'
import type { Surroundings } from '../../domain/incident-detail.ts'
import { formatDollars } from '../../domain/price.ts'
import type { FollowUp } from '../../domain/shift.ts'
import { alertDoubts } from '../../domain/unproven-end.ts'
import { useAsk } from '../api.ts'
import { FollowUpPresses, FollowUpState } from '../follow-up.tsx'
import { Inert, TextLink } from '../inert.tsx'
import { QueryState, Section } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'

type Props = {
  incident: Incident
  brief: ServedBrief
  surroundings: Surroundings | null
  events: IncidentEvent[]
}

/** The most named entries of a list. The tab of the same name has all. */
const named = 4

/** Shows beside the result: owner, firing alerts, dependents, similar incidents, cost. */
export function Rail({ incident, brief, surroundings, events }: Props) {
  const { similar, spent } = brief
  const model = events.findLast((event) => event.kind === 'model_answered')
  return (
    <aside className="rail" aria-label="Around this incident">
      <Section title="Owner">
        <p>{incident.owner ? <Inert text={incident.owner.name} /> : <span className="soft">nobody</span>}</p>
      </Section>
      <LeftToDo incident={incident} events={events} />
      {surroundings && surroundings.alerts.length > 0 && <AlertsNow alerts={surroundings.alerts} />}
      {surroundings && <Group incident={incident} group={surroundings.group} />}
      {similar.length > 0 && (
        <Section title="Similar">
          <ul>
            {similar.slice(0, named).map(({ id, title, closedAt }) => (
              <li key={id}>
                <TextLink href={`/incidents/${id}`} text={title} />
                <span title={closedAt ? formatMoment(closedAt) : undefined}>
                  {closedAt && formatMoment(closedAt).slice(5, 10)}
                </span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Spent">
        <p>
          {spent.dollars > 0 && `${formatDollars(spent.dollars)} · `}
          {formatNumber(spent.tokens)} tokens · {spent.turns} {spent.turns === 1 ? 'turn' : 'turns'} ·{' '}
          {formatSpan(spent.modelMs)} of model time
        </p>
        {model?.kind === 'model_answered' && <Inert as="p" className="soft" text={model.metadata.model} />}
      </Section>
    </aside>
  )
}

/** Shows the follow-up of a mitigated incident, with buttons to change it and to close it. */
function LeftToDo({ incident: { id, events: count }, events }: Pick<Props, 'incident' | 'events'>) {
  const isLeft = events.some((event) => event.kind === 'noted' && event.metadata.followUp)
  const found = useAsk<FollowUp>(['follow-up', id, count], `/follow-ups/${id}`, {
    enabled: isLeft,
    placeholderData: (before) => before,
  })
  if (!isLeft) return null
  return (
    <Section title="Follow-up">
      {found.data ? (
        <div className="stack tight">
          <p className="wraps">
            <FollowUpState followUp={found.data} />
          </p>
          {found.data.closedAt === null && (
            <p className="row">
              <FollowUpPresses followUp={found.data} />
            </p>
          )}
        </div>
      ) : (
        <QueryState query={found} what="the follow-up" />
      )}
    </Section>
  )
}

const stateWords = { firing: 'fires', resolved: 'ended', unknown: 'unknown' }

function AlertsNow({ alerts }: { alerts: Surroundings['alerts'] }) {
  const now = useNow()
  const firing = alerts.filter(({ status }) => status === 'firing').length
  return (
    <Section title={firing > 0 ? `Alerts now, ${firing === 1 ? '1 fires' : `${firing} fire`}` : 'Alerts now'}>
      <ul>
        {alerts.slice(0, named).map((alert) => {
          const { id, name, status, startsAt, endReason } = alert
          const isDoubted = status === 'resolved' && endReason !== null
          return (
            <li key={id}>
              <span className={status === 'firing' ? 'tone-broken strong' : 'soft'}>
                <Inert text={name} /> {isDoubted ? 'quiet, unproven' : stateWords[status]}
                {alertDoubts(alert).length > 0 && <span className="visually-hidden"> (with doubts)</span>}
              </span>
              <span title={formatMoment(startsAt)}>{formatSpan(now - Date.parse(startsAt))}</span>
            </li>
          )
        })}
      </ul>
      {alerts.length > named && (
        <p>
          <Link href="?tab=alerts">{alerts.length - named} more</Link>
        </p>
      )}
    </Section>
  )
}

function Group({ incident, group }: { incident: Incident; group: Surroundings['group'] }) {
  const others = group.filter(({ id }) => id !== incident.id)
  if (others.length === 0) return null
  return (
    <Section title={incident.role === 'follower' ? 'Leader and other followers' : 'Followers'}>
      <ul>
        {others.slice(0, named).map(({ id, title }) => (
          <li key={id}>
            <TextLink href={`/incidents/${id}`} text={title} />
          </li>
        ))}
      </ul>
      {others.length > named && (
        <p>
          <Link href={`/incidents?group=${incident.groupId}`}>{others.length - named} more</Link>
        </p>
      )}
    </Section>
  )
}
