import type { IncidentEvent } from '../../domain/event.ts'
import { formatResourceSearch, formatSpan, listLinks } from '../../domain/format.ts'
import type { Incident } from '../../domain/incident.ts'
import type { Surroundings } from '../../domain/incident-detail.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { describeClosure } from '../../domain/status-words.ts'
import { alertDoubts, type DoubtedAlert } from '../../domain/unproven-end.ts'
import { CopyCommand, CopyId } from '../copy.tsx'
import { Inert, TextLink } from '../inert.tsx'
import { Fact, SeverityMark, StatusMark, TypeName } from '../marks.tsx'
import { Link } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'

type Props = { incident: Incident; surroundings: Surroundings | null; events: IncidentEvent[] }

/**
 * Shows facts that the brief leaves out: type, run, runbook, group, and the state of the watchdog.
 */
export function Details({ incident, surroundings, events }: Props) {
  const now = useNow()
  return (
    <dl className="facts">
      <Fact name="Severity" className="row">
        <SeverityMark severity={incident.severity} />
        {incident.severitySource === 'default' && <span className="soft small">by default</span>}
      </Fact>
      <SearchedResource incident={incident} events={events} />
      <Fact name="Type">
        <Link className="mono" href={`/incidents?type=${incident.type}`}>
          <TypeName type={incident.type} />
        </Link>
        {incident.alertName && (
          <span className="soft small wraps">
            {' '}
            alert <Inert text={incident.alertName} />
          </span>
        )}
      </Fact>
      <Span incident={incident} now={now} />
      <Run incident={incident} surroundings={surroundings} />
      <GivenRunbook events={events} />
      <Standing incident={incident} now={now} />
      {incident.resolution && <Fact name="Outcome">{describeClosure(incident) ?? 'not said'}</Fact>}
      {surroundings && <Group incident={incident} group={surroundings.group} />}
    </dl>
  )
}

/**
 * Shows the runbook that the model got in the newest attempt. The runbook's page shows today's
 * text.
 */
function GivenRunbook({ events }: Pick<Props, 'events'>) {
  const opening = events.findLast(
    (event): event is IncidentEvent<'context_assembled'> => event.kind === 'context_assembled',
  )
  const given = opening?.metadata.runbook
  if (!given) return null
  return (
    <Fact name="Runbook">
      <Link href={`/knowledge/${given.name}`}>{given.name}</Link>{' '}
      <span className="soft small">
        {given.origin}, by {given.why}, <span className="mono">{given.digest.slice(0, 12)}</span>
      </span>
    </Fact>
  )
}

/** Lists the labels that were tried for an incident without a resource. */
function SearchedResource({ incident: { resource }, events }: Pick<Props, 'incident' | 'events'>) {
  const opened = events.find((event): event is IncidentEvent<'alert_received'> => event.kind === 'alert_received')
  if (resource || !opened?.metadata.about) return null
  return (
    <Fact name="Resource">
      <Inert className="wraps" text={formatResourceSearch(opened.metadata.about)} />
    </Fact>
  )
}

/** Shows the duration of an incident. */
function Span({ incident: { closedAt, createdAt }, now }: { incident: Incident; now: number }) {
  const until = closedAt ? Date.parse(closedAt) : now
  return (
    <div>
      <dt>{closedAt ? 'Took' : 'Open for'}</dt>
      <dd title={`since ${formatMoment(createdAt)}`}>{formatSpan(until - Date.parse(createdAt))}</dd>
    </div>
  )
}

function Run({ incident, surroundings }: { incident: Incident; surroundings: Surroundings | null }) {
  return (
    <Fact name="Run" className="row">
      <span>attempt {incident.attempt}</span>
      {incident.role && incident.type !== manualChangeType && <span>{incident.role}</span>}
      {surroundings?.workflow?.url && (
        <a href={surroundings.workflow.url} rel="noreferrer" target="_blank">
          Open in Temporal<span className="visually-hidden"> (new tab)</span> ↗
        </a>
      )}
      <CopyId id={incident.id} label="the id of the incident" />
      <CopyCommand command={`nightshift incidents show ${incident.id}`} label="the command" />
    </Fact>
  )
}

/** Number of members of a group that are named. The list of incidents has all of them. */
const namedOfGroup = 8

function Group({ incident, group }: { incident: Incident; group: Surroundings['group'] }) {
  const others = group.filter(({ id }) => id !== incident.id)
  if (others.length === 0) return null
  return (
    <Fact name={incident.role === 'follower' ? 'Leader and other followers' : 'Followers'} isWhole>
      <ul className="stack tight">
        {others.slice(0, namedOfGroup).map((other) => (
          <li key={other.id} className="row">
            <StatusMark status={other.status} />
            {other.role === 'leader' && <span className="soft">leader</span>}
            <TextLink href={`/incidents/${other.id}`} text={other.title} />
          </li>
        ))}
        {others.length > namedOfGroup && (
          <li>
            <Link href={`/incidents?group=${incident.groupId}`}>All {others.length + 1} of this group</Link>
          </li>
        )}
      </ul>
    </Fact>
  )
}

/**
 * Shows why the incident is not investigated, until when its alert is watched, and the incident
 * before it.
 */
function Standing({ incident, now }: { incident: Incident; now: number }) {
  const { keptReason, watchUntil, previousId } = incident
  return (
    <>
      {keptReason && (
        <Fact name="Not investigated" className="wraps" isWhole>
          <Inert text={keptReason} />
        </Fact>
      )}
      {watchUntil && (
        <Fact name="Watched">
          {Date.parse(watchUntil) > now ? `the alert must end by ${formatMoment(watchUntil)}` : 'a check is due'}
        </Fact>
      )}
      {previousId && (
        <Fact name="Follows">
          <Link href={`/incidents/${previousId}`}>the previous incident of this alert</Link>
        </Fact>
      )}
    </>
  )
}

const alertTones = { firing: 'tone-ink strong', resolved: 'tone-proved', unknown: 'soft' }
const alertWords = { firing: 'firing', resolved: 'ended', unknown: 'unknown' }

/** Shows the reasons why the state of an alert is doubtful. */
export function AlertDoubts({ alert }: { alert: DoubtedAlert }) {
  return alertDoubts(alert).map((doubt) => <Inert key={doubt} className="tone-ink small" text={doubt} />)
}

/** Lists the alerts of an incident, with links about each. */
export function Alerts({ alerts }: { alerts: Surroundings['alerts'] }) {
  if (alerts.length === 0) return <p className="nothing">No alert: opened by a person, or a question.</p>
  return (
    <ul className="stack">
      {alerts.map((alert) => (
        <li key={alert.id} className="row">
          {alert.status === 'resolved' && alert.endReason ? (
            <span className="tone-ink">quiet, unproven</span>
          ) : (
            <span className={alertTones[alert.status]}>{alertWords[alert.status]}</span>
          )}
          <Inert text={alert.title} />
          <span className="soft small">
            {alert.source}, {alert.count === 1 ? 'once' : `${alert.count} times`}, since {formatMoment(alert.startsAt)}
          </span>
          <AlertDoubts alert={alert} />
          {alert.groupKey && (
            <span className="soft small">
              group <Inert text={alert.groupKey} />
            </span>
          )}
          {listLinks(alert.links).map(({ word, href }) => (
            <a key={word} href={href} rel="noreferrer noopener" target="_blank">
              {word} ↗
            </a>
          ))}
        </li>
      ))}
    </ul>
  )
}
