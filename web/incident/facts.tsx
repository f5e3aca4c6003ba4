import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { Inert } from '../inert.tsx'
import { useNow } from '../now.ts'
import { Link } from '../router.tsx'
import { moment, span } from '../time.ts'
import { Resource, SeverityMark, StatusMark } from '../words.tsx'
import type { Surroundings } from './query.ts'
import { spent } from './spent.ts'

type Props = { incident: Incident; surroundings: Surroundings | null; events: IncidentEvent[] }

/** What one wants to know before reading on. */
export function Facts({ incident, surroundings, events }: Props) {
  const now = useNow()
  const { tokens, turns, modelMs, waitedMs } = spent(events, now)
  const until = incident.closedAt ? Date.parse(incident.closedAt) : now
  const others = (surroundings?.group ?? []).filter(({ id }) => id !== incident.id)
  return (
    <dl className="facts">
      <div>
        <dt>Status</dt>
        <dd className="row">
          <StatusMark status={incident.status} />
          <SeverityMark severity={incident.severity} />
          {incident.severitySource === 'default' && <span className="soft small">severity by default</span>}
        </dd>
      </div>
      <div>
        <dt>Resource</dt>
        <dd>
          <Resource resource={incident.resource} />
        </dd>
      </div>
      <div>
        <dt>Type</dt>
        <dd>
          <Link className="mono" href={`/incidents?type=${incident.type}`}>
            {incident.type}
          </Link>
        </dd>
      </div>
      <div>
        <dt>{incident.closedAt ? 'Took' : 'Open for'}</dt>
        <dd title={`since ${moment(incident.createdAt)}`}>
          {span(until - Date.parse(incident.createdAt))}
          {waitedMs > 1000 && <span className="soft"> · {span(waitedMs)} waiting for people</span>}
        </dd>
      </div>
      <div>
        <dt>Spent</dt>
        <dd>
          {tokens.toLocaleString('en')} tokens · {turns} {turns === 1 ? 'turn' : 'turns'} · {span(modelMs)} in the model
        </dd>
      </div>
      <div>
        <dt>Run</dt>
        <dd className="row">
          <span>attempt {incident.attempt}</span>
          {incident.role && <span>{incident.role}</span>}
          {surroundings?.workflow?.url && (
            <a href={surroundings.workflow.url} rel="noreferrer" target="_blank">
              Open in Temporal<span className="visually-hidden"> (new tab)</span> ↗
            </a>
          )}
          <span className="mono small soft wraps">{incident.id}</span>
        </dd>
      </div>
      {incident.resolution && (
        <div className="whole">
          <dt>Outcome</dt>
          <dd className="wraps">
            <Inert text={incident.resolution} />
          </dd>
        </div>
      )}
      {surroundings && surroundings.alerts.length > 0 && <Alerts alerts={surroundings.alerts} />}
      {others.length > 0 && (
        <div className="whole">
          <dt>{incident.role === 'follower' ? 'Leader and other followers' : 'Followers'}</dt>
          <dd>
            <ul className="stack tight">
              {others.slice(0, 8).map((other) => (
                <li key={other.id} className="row">
                  <StatusMark status={other.status} />
                  {other.role === 'leader' && <span className="soft">leader</span>}
                  <Link href={`/incidents/${other.id}`}>
                    <Inert text={other.title} />
                  </Link>
                </li>
              ))}
              {others.length > 8 && (
                <li>
                  <Link href={`/incidents?group=${incident.groupId}`}>All {others.length + 1} of this group</Link>
                </li>
              )}
            </ul>
          </dd>
        </div>
      )}
    </dl>
  )
}

function Alerts({ alerts }: { alerts: Surroundings['alerts'] }) {
  return (
    <div className="whole">
      <dt>Alerts</dt>
      <dd>
        <ul className="stack tight">
          {alerts.map((alert) => (
            <li key={alert.id} className="row">
              <span className={alert.status === 'firing' ? 'tone-warning strong' : 'tone-good'}>{alert.status}</span>
              <Inert text={alert.title} />
              <span className="soft small">
                {alert.source}, {alert.count === 1 ? 'once' : `${alert.count} times`}, since {moment(alert.startsAt)}
              </span>
              {Object.entries(alert.links).map(
                ([name, url]) =>
                  url &&
                  /^https?:\/\//i.test(url) && (
                    <a key={name} href={url} rel="noreferrer noopener" target="_blank">
                      {name} ↗
                    </a>
                  ),
              )}
            </li>
          ))}
        </ul>
      </dd>
    </div>
  )
}
