import type { BriefLine, ServedBrief } from '../../domain/brief.ts'
import { shortSections } from '../../domain/card-sections.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { capitalize, formatClock, formatNumber, formatSpan } from '../../domain/format.ts'
import { formatAlsoAsked, formatReversible } from '../../domain/format-approval.ts'
import { rowsOf } from '../../domain/hypothesis.ts'
import type { Incident } from '../../domain/incident.ts'
import type { ResourceState } from '../../domain/registry.ts'
import {
  alertWords,
  causeWords,
  describeLooks,
  doneWords,
  isClosedAndFiring,
  nameOfCause,
  withItsAlert,
} from '../../domain/status-words.ts'
import { Inert, TextLink } from '../inert.tsx'
import { Fact, Mark, RemarkList, Resource, RiskMark, SeverityMark, StatusMark } from '../marks.tsx'
import { Link } from '../router.tsx'
import { formatMoment, formatTimeOfDay, useNow } from '../time.ts'
import { FoundCharts } from './reading.tsx'
import { RowLinks } from './row-link.tsx'
import { Claims } from './timeline.tsx'

type Props = { incident: Incident; brief: ServedBrief }

/** Shows one line: severity, state, subject, start, and whether the alert fires. */
export function Glance({ incident, brief }: { incident: Incident; brief: ServedBrief | null }) {
  const now = useNow()
  const { resource, severity, status } = incident
  const hasPage = resource && resource.kind !== 'incident' && resource.kind !== 'proposal'
  return (
    <p className="glance row">
      <SeverityMark severity={severity} />
      <StatusMark status={status} />
      <RemarkList incident={incident} />
      {hasPage ? (
        <Link href={`/resources/${encodeURIComponent(`${resource.kind}:${resource.id}`)}`}>
          <Resource resource={resource} />
        </Link>
      ) : (
        <Resource resource={resource} />
      )}
      {brief && (
        <span>
          since {formatMoment(brief.since.at)}{' '}
          <span className="soft">({formatSpan(now - Date.parse(brief.since.at))})</span>
        </span>
      )}
      {brief && <span className={alertTones[brief.alert.state]}>{alertWords[brief.alert.state]}</span>}
      {brief?.page && <span className="soft">{brief.page.text}</span>}
    </p>
  )
}

const alertTones = {
  firing: 'tone-broken strong',
  resolved: 'tone-proved',
  unproven: 'tone-ink',
  unknown: 'soft',
  none: 'soft',
}

const dayMs = 86_400_000

/**
 * Shows the request for approval, what each decision causes, and links. The card has plan and
 * reasons, and decides in two presses.
 */
export function DecisionSentence({
  asked,
  alsoAsked,
}: {
  asked: NonNullable<ServedBrief['asked']>
  alsoAsked: number
}) {
  const now = useNow()
  const { id, dryRun, risk, reversible, required, approvals, expiresAt } = asked
  const isFar = Date.parse(expiresAt) - now > dayMs
  const sections = shortSections(asked, isFar ? formatMoment : formatTimeOfDay)
  return (
    <section className="decision" aria-labelledby="decision-title">
      <p className="over">
        <span className="row">
          <Mark shape="diamond" tone="act" word="Approval needed" strong />
          <RiskMark risk={risk} />
          <span className={reversible ? undefined : 'strong'}>{formatReversible(reversible)}</span>
          {required > 1 && (
            <span>
              {approvals} of {required} have approved
            </span>
          )}
        </span>
        <span title={`until ${formatMoment(expiresAt)}`}>
          <strong className="num">{formatClock(Date.parse(expiresAt) - now)}</strong> left
        </span>
      </p>
      <h2 id="decision-title">
        <span className="visually-hidden">Approval needed: </span>
        <Inert text={capitalize(dryRun.summary)} />
        {alsoAsked > 0 && <span className="soft">{formatAlsoAsked(alsoAsked)}</span>}
      </h2>
      <dl className="stack tight costs">
        {sections.map(({ name, title, sentences, warns }) => (
          <div key={name} className={warns ? 'warns' : undefined}>
            <dt>{title}</dt>
            <dd>
              <Inert text={sentences.join(' ')} />
            </dd>
          </div>
        ))}
      </dl>
      <p className="row buttons">
        <Link className="button" href={`/approvals/${id}#deny`}>
          Deny…
        </Link>
        <Link className="button main" href={`/approvals/${id}#approve`}>
          Approve…
        </Link>
        <Link href={`/approvals/${id}`}>Plan and reasons</Link>
      </p>
    </section>
  )
}

/** Shows the result below the decision: cause, claims, impact, actions, next step. */
export function Answer(props: Props & { state: ResourceState | null; events: IncidentEvent[] }) {
  const { incident, brief, state, events } = props
  const { cause, impact, asked, next, done } = brief
  const ending = events.findLast((event) => event.kind === 'resolved')
  const how = [causeWords[cause.state], cause.certainty].filter(Boolean).join(', ')
  const looked = describeLooks(brief)
  return (
    <dl className="answer">
      <Fact name={nameOfCause(cause, incident.status)}>
        <Sentence line={cause} /> {how && <Inert className="soft small" text={how} />}
      </Fact>
      {ending?.kind === 'resolved' && incident.closedAt !== null && ending.metadata.claims.length > 0 && (
        <Fact name="Found">
          <Claims event={ending} />
        </Fact>
      )}
      <Now incident={incident} brief={brief} state={state} />
      {impact && (
        <Fact name="Impact">
          <Sentence line={impact} />
        </Fact>
      )}
      <Fact name="Done so far" className="stack tight">
        {looked && <span>{looked}</span>}
        {done.map((each) => (
          <span key={`${each.outcome} ${each.rows.join()}`}>
            <strong className={doneTones[each.outcome]}>{doneWords[each.outcome]}:</strong> <Sentence line={each} />
          </span>
        ))}
      </Fact>
      {!asked && (
        <Fact name="Next">
          <Sentence line={next} />
        </Fact>
      )}
      <FoundCharts
        events={events}
        rows={[...cause.rows, ...(ending?.kind === 'resolved' ? ending.metadata.claims.flatMap(rowsOf) : [])]}
      />
    </dl>
  )
}

/**
 * Shows the agent's last finding while it works. For a closed incident it shows the present state
 * of the resource.
 */
function Now({ incident, brief: { resource, alert }, state }: Props & { state: ResourceState | null }) {
  const isKnown = state !== null && state.health !== 'unknown'
  if (isKnown && (incident.closedAt !== null || !resource)) {
    const isWell = state.health === 'nominal'
    return (
      <Fact name="Now">
        <span className={`wraps ${isWell && alert.state !== 'firing' ? 'tone-proved' : 'tone-ink'}`}>
          <Inert text={withItsAlert(state.observed, isWell, alert)} />
        </span>
      </Fact>
    )
  }
  if (!resource) return null
  return (
    <Fact name="Now" {...(alert.state === 'firing' && { className: 'tone-ink' })}>
      <Sentence line={resource} />
    </Fact>
  )
}

const doneTones = {
  verified: 'tone-proved',
  verification_failed: 'tone-broken',
  unproven: 'tone-ink',
  open: 'tone-work',
  running: 'tone-work',
  failed: 'tone-broken',
  indeterminate: 'tone-broken',
  refused: 'tone-ink',
  denied: 'tone-ink',
  expired: 'tone-ink',
}

/** Shows a sentence with links to its rows. */
function Sentence({ line: { text, rows } }: { line: BriefLine }) {
  return (
    <>
      <Inert className="wraps" text={text} /> <RowLinks rows={rows} />
    </>
  )
}

export function StillFires({ incident, brief }: Props) {
  if (!isClosedAndFiring(incident, brief.alert)) return null
  return (
    <p className="said wrong" role="status">
      <strong>Closed, but its alert still fires</strong> since {formatMoment(brief.since.at)}.
    </p>
  )
}

/** Compares attempts: how each ended, its suspected cause, and its cost. */
export function Attempts({ attempts }: Pick<ServedBrief, 'attempts'>) {
  if (attempts.length === 0) return <p className="nothing">No attempt yet.</p>
  return (
    <div className="scrolls">
      <table>
        <thead>
          <tr>
            {['Attempt', 'Began', 'Outcome', 'Cause', 'Turns', 'Tokens'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {attempts.map(({ attempt, startedAt, outcome, cause, turns, tokens, rows }) => (
            <tr key={attempt}>
              <th scope="row">{attempt}</th>
              <td>{formatMoment(startedAt)}</td>
              <Inert as="td" className="wraps" text={outcome} />
              <td className="wraps">
                <Sentence line={{ text: cause, rows }} />
              </td>
              <td>{turns}</td>
              <td>{formatNumber(tokens)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Lists closed incidents of the same type, with what repaired them. */
export function Similar({ similar }: Pick<ServedBrief, 'similar'>) {
  if (similar.length === 0) return <p className="nothing">No incident of this type was closed before.</p>
  return (
    <ul className="stack">
      {similar.map(({ id, title, status, outcome, repairedBy, resolution, closedAt }) => (
        <li key={id} className="stack tight">
          <p className="row">
            <StatusMark status={status} />
            <TextLink href={`/incidents/${id}`} text={title} />
            <span className="soft small">{closedAt && formatMoment(closedAt)}</span>
          </p>
          <p className="wraps">
            {repairedBy.length > 0 && (
              <strong className="tone-proved">
                repaired by <Inert text={repairedBy.join(', ')} />.{' '}
              </strong>
            )}
            {repairedBy.length === 0 && outcome && (
              <span className="soft">
                <Inert text={outcome.replaceAll('_', ' ')} />.{' '}
              </span>
            )}
            {resolution && <Inert text={resolution} />}
          </p>
        </li>
      ))}
    </ul>
  )
}
