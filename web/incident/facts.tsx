import { listLinks } from '../../domain/alert-links.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatNumber, formatResourceSearch, formatSpan } from '../../domain/format.ts'
import type { Incident } from '../../domain/incident.ts'
import type { Surroundings } from '../../domain/incident-detail.ts'
import { formatDollars } from '../../domain/price.ts'
import { categoryWords, outcomeWords } from '../../domain/status-words.ts'
import { Inert, Markdown } from '../markdown.tsx'
import { Fact, Remarks, Resource, SeverityMark, StatusMark, TypeName } from '../marks.tsx'
import { Link } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'
import { sumCost } from './rows.ts'

type Props = { incident: Incident; surroundings: Surroundings | null; events: IncidentEvent[] }

/** What one wants to know before reading on. */
export function Facts({ incident, surroundings, events }: Props) {
  const now = useNow()
  return (
    <dl className="facts">
      <Fact name="Status" className="row">
        <StatusMark status={incident.status} />
        <SeverityMark severity={incident.severity} />
        {incident.severitySource === 'default' && <span className="soft small">severity by default</span>}
        <Remarks incident={incident} />
      </Fact>
      <Fact name="Resource">
        <FoundResource incident={incident} events={events} />
      </Fact>
      <Fact name="Type">
        <Link className="mono" href={`/incidents?type=${incident.type}`}>
          <TypeName type={incident.type} />
        </Link>
      </Fact>
      <Cost incident={incident} events={events} now={now} />
      <Run incident={incident} surroundings={surroundings} />
      <GivenRunbook events={events} />
      <Standing incident={incident} now={now} />
      <Resolution incident={incident} />
      {surroundings && surroundings.alerts.length > 0 && <Alerts alerts={surroundings.alerts} />}
      {surroundings && <Group incident={incident} group={surroundings.group} />}
    </dl>
  )
}

/** Which runbook the model of the newest attempt had. The page of that name shows what it says now. */
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

/** The resource with a way to it; without one, which labels were tried. */
function FoundResource({ incident: { resource }, events }: Pick<Props, 'incident' | 'events'>) {
  if (resource && resource.kind !== 'incident' && resource.kind !== 'proposal')
    return (
      <Link href={`/resources/${encodeURIComponent(`${resource.kind}:${resource.id}`)}`}>
        <Resource resource={resource} />
      </Link>
    )
  const opened = events.find((event): event is IncidentEvent<'alert_received'> => event.kind === 'alert_received')
  return (
    <>
      <Resource resource={resource} />
      {!resource && opened?.metadata.about && (
        <span className="soft small wraps">
          {' '}
          <Inert text={formatResourceSearch(opened.metadata.about)} />
        </span>
      )}
    </>
  )
}

/** How long it took, and what it cost. */
function Cost({ incident, events, now }: { incident: Incident; events: IncidentEvent[]; now: number }) {
  const { tokens, turns, modelMs, waitedMs, dollars } = sumCost(events, now)
  const { closedAt, createdAt } = incident
  const until = closedAt ? Date.parse(closedAt) : now
  return (
    <>
      <div>
        <dt>{closedAt ? 'Took' : 'Open for'}</dt>
        <dd title={`since ${formatMoment(createdAt)}`}>
          {formatSpan(until - Date.parse(createdAt))}
          {waitedMs > 1000 && <span className="soft"> · {formatSpan(waitedMs)} waiting for people</span>}
        </dd>
      </div>
      <Fact name="Spent">
        {dollars > 0 && `${formatDollars(dollars)} · `}
        {formatNumber(tokens)} tokens · {turns} {turns === 1 ? 'turn' : 'turns'} · {formatSpan(modelMs)} in the model
      </Fact>
    </>
  )
}

function Run({ incident, surroundings }: { incident: Incident; surroundings: Surroundings | null }) {
  return (
    <Fact name="Run" className="row">
      <span>attempt {incident.attempt}</span>
      {incident.role && <span>{incident.role}</span>}
      {surroundings?.workflow?.url && (
        <a href={surroundings.workflow.url} rel="noreferrer" target="_blank">
          Open in Temporal<span className="visually-hidden"> (new tab)</span> ↗
        </a>
      )}
      <span className="mono small soft wraps">{incident.id}</span>
    </Fact>
  )
}

function Resolution({ incident }: { incident: Incident }) {
  if (!incident.resolution) return null
  return (
    <Fact name={formatEnding(incident)} className="stack tight" isWhole>
      {incident.closedBy === 'agent' ? (
        <Markdown text={incident.resolution} />
      ) : (
        <p className="wraps">
          <Inert text={incident.resolution} />
        </p>
      )}
    </Fact>
  )
}

/** Of a group these are named; the list of incidents has them all. */
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
            <Link href={`/incidents/${other.id}`}>
              <Inert text={other.title} />
            </Link>
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

/** What a person or the watchdog does about it, as far as there is something to say. */
function Standing({ incident, now }: { incident: Incident; now: number }) {
  const { owner, keptReason, watchUntil, previousId } = incident
  return (
    <>
      {owner && (
        <div>
          <dt>Owner</dt>
          <dd>
            <Inert text={owner.name} /> <span className="soft">for {formatSpan(now - Date.parse(owner.since))}</span>
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
          <dd>{Date.parse(watchUntil) > now ? `its alert has until ${formatMoment(watchUntil)}` : 'a look is due'}</dd>
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
function formatEnding({ outcome, category, closedBy }: Incident): string {
  const word = outcome ? outcomeWords[outcome] : category ? categoryWords[category] : null
  const by = closedBy && { agent: 'by the agent', person: 'by a person', code: 'by Nightshift' }[closedBy]
  return ['Outcome', [word, by].filter(Boolean).join(', ')].filter(Boolean).join(': ')
}

const alertTones = { firing: 'tone-warning strong', resolved: 'tone-good', unknown: 'soft' }
const alertWords = { firing: 'firing', resolved: 'ended', unknown: 'unknown' }

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
                {alert.source}, {alert.count === 1 ? 'once' : `${alert.count} times`}, since{' '}
                {formatMoment(alert.startsAt)}
              </span>
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
      </dd>
    </div>
  )
}
