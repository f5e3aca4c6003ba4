import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { categoryWords, outcomeWords } from '../../domain/status-words.ts'
import { Inert } from '../inert.tsx'
import { Markdown } from '../markdown.tsx'
import { Remarks, Resource, SeverityMark, StatusMark, TypeName } from '../marks.tsx'
import { useNow } from '../now.ts'
import { Link } from '../router.tsx'
import { moment, span } from '../time.ts'
import type { Surroundings } from './query.ts'
import { spent } from './rows.ts'

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
          <Remarks incident={incident} />
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
            <TypeName type={incident.type} />
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
      <Standing incident={incident} now={now} />
      {incident.resolution && (
        <div className="whole">
          <dt>{endingOf(incident)}</dt>
          <dd className="stack tight">
            {incident.closedBy === 'agent' ? (
              <Markdown text={incident.resolution} />
            ) : (
              <p className="wraps">
                <Inert text={incident.resolution} />
              </p>
            )}
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

/** What a person or the watchdog does about it, as far as there is something to say. */
function Standing({ incident, now }: { incident: Incident; now: number }) {
  const { owner, keptReason, watchUntil, previousId } = incident
  return (
    <>
      {owner && (
        <div>
          <dt>Owner</dt>
          <dd>
            <Inert text={owner.name} /> <span className="soft">for {span(now - Date.parse(owner.since))}</span>
          </dd>
        </div>
      )}
      {keptReason && (
        <div className="whole">
          <dt>Not investigated</dt>
          <dd className="wraps">
            <Inert text={keptReason} />
          </dd>
        </div>
      )}
      {watchUntil && (
        <div>
          <dt>Watched</dt>
          <dd>{Date.parse(watchUntil) > now ? `its alert has until ${moment(watchUntil)}` : 'a look is due'}</dd>
        </div>
      )}
      {previousId && (
        <div>
          <dt>Follows</dt>
          <dd>
            <Link href={`/incidents/${previousId}`}>the same alert, earlier</Link>
          </dd>
        </div>
      )}
    </>
  )
}

/** How it ended, in a word. */
function endingOf({ outcome, category, closedBy }: Incident): string {
  const word = outcome ? outcomeWords[outcome] : category ? categoryWords[category] : null
  const by = closedBy && { agent: 'by the agent', person: 'by a person', code: 'by Nightshift' }[closedBy]
  return ['Outcome', [word, by].filter(Boolean).join(', ')].filter(Boolean).join(': ')
}

const alertTones = { firing: 'tone-warning strong', resolved: 'tone-good', unknown: 'soft' }
export const alertWords = { firing: 'firing', resolved: 'ended', unknown: 'unknown' }

function Alerts({ alerts }: { alerts: Surroundings['alerts'] }) {
  return (
    <div className="whole">
      <dt>Alerts</dt>
      <dd>
        <ul className="stack tight">
          {alerts.map((alert) => (
            <li key={alert.id} className="row">
              <span className={alertTones[alert.status]}>{alertWords[alert.status]}</span>
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
