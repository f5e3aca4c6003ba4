import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { describeLiveAnswer, formatClock, formatNumber, formatSpan, truncate } from '../../domain/format.ts'
import type { DoneLine, Home, NeedLine, WorkLine } from '../../domain/incident-detail.ts'
import { describeNeed, describeWork, outcomeWords } from '../../domain/status-words.ts'
import { ask, readAgain } from '../api.ts'
import { Inert, TextLink } from '../inert.tsx'
import { Axis, Bar, type BarProps } from '../lane.tsx'
import { useLiveAnswer } from '../live.tsx'
import { Mark, Resource, SeverityMark, TypeName } from '../marks.tsx'
import { Failed, Nothing } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { PushOffer } from '../push.tsx'
import { Link } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'

type Row = { id: string; href: string }

/** Lists the rows for the keys `j` and `k`, from top to bottom. */
export function listRows({ needsYou, inProgress, done }: Home): Row[] {
  return [
    ...needsYou.lines.map((line) => ({ id: toKey('need', line), href: toNeedPage(line) })),
    ...inProgress.lines.map((line) => ({ id: toKey('work', line), href: toWorkPage(line) })),
    ...done.lines.map((line) => ({ id: toKey('done', line), href: toDonePage(line) })),
  ]
}

const toKey = (part: string, { incident }: NeedLine | WorkLine | DoneLine) => `${part}-${incident.id}`
const toIncident = (line: NeedLine | WorkLine | DoneLine) => `/incidents/${line.incident.id}`
const toNeedPage = (line: NeedLine) => {
  if (line.approval) return `/approvals/${line.approval.id}`
  return line.count === 1 ? toIncident(line) : `/incidents?type=${line.type}&status=${line.incident.status}`
}
const toWorkPage = (line: WorkLine) =>
  line.count === 1
    ? toIncident(line)
    : `/incidents?type=${line.type}&status=open,investigating,awaiting_approval,escalated`
const toDonePage = (line: DoneLine) =>
  line.count === 1 ? toIncident(line) : `/incidents?type=${line.type}&status=resolved,cancelled`

type Window = [from: number, to: number]

/** Shows the three parts of Home. `window`: the hours that its clock covers. */
export function NightParts({ home, current, window }: { home: Home; current: string | null; window: Window }) {
  const { needsYou, inProgress, done } = home
  return (
    <>
      <Part title="Needs you" count={needsYou.incidents} isLamp window={window} empty="Nothing waits for you.">
        {needsYou.lines.map((line, index) => (
          <Need key={toKey('need', line)} line={line} current={current} window={window} isFirst={index === 0} />
        ))}
      </Part>
      <Rest shown={needsYou.lines} all={needsYou.incidents} href="/incidents?status=awaiting_approval,escalated,open" />
      {needsYou.lines.some(({ approval }) => approval !== null) && <PushOffer />}
      <Part title="In progress" count={inProgress.incidents} empty="Nothing is being investigated.">
        {inProgress.lines.map((line) => (
          <Work key={toKey('work', line)} line={line} current={current} window={window} />
        ))}
      </Part>
      <Rest shown={inProgress.lines} all={inProgress.incidents} href="/incidents?status=open,investigating" />
      <Part title="Done" count={done.incidents} empty="No incident was closed in this time.">
        {done.lines.map((line) => (
          <Done key={toKey('done', line)} line={line} current={current} window={window} />
        ))}
      </Part>
      <Rest shown={done.lines} all={done.incidents} href="/incidents?status=resolved,cancelled" />
    </>
  )
}

type PartProps = {
  title: string
  count: number
  isLamp?: boolean
  /** The hours of the clock. If set, they are shown above the column of the clock. */
  window?: Window
  empty: string
  children: ReactNode[]
}

const columns = [
  ['sev', 'Severity'],
  ['what', 'What'],
  ['now', 'Now'],
  ['hours', 'When'],
  ['since', 'Open since, or duration'],
  ['press', 'Action'],
] as const

function Part({ title, count, isLamp = false, window, empty, children }: PartProps) {
  const id = `part-${title.toLowerCase().replaceAll(' ', '-')}`
  return (
    <section aria-labelledby={id}>
      <div className="part-head">
        <h2 id={id}>
          {title} <span className={isLamp && count > 0 ? 'count waits' : 'count'}>{formatNumber(count)}</span>
        </h2>
        {window && <Axis window={window} />}
      </div>
      {children.length > 0 ? (
        <table className="table">
          <caption className="visually-hidden">{title}</caption>
          <colgroup>
            {columns.map(([name]) => (
              <col key={name} className={name} />
            ))}
          </colgroup>
          <thead className="visually-hidden">
            <tr>
              {columns.map(([name, head]) => (
                <th scope="col" key={name}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      ) : (
        <Nothing title={empty} />
      )}
    </section>
  )
}

/** Shows how many incidents have no line, because a part shows thirty lines. */
function Rest({ shown, all, href }: { shown: { count: number }[]; all: number; href: string }) {
  const left = all - shown.reduce((sum, { count }) => sum + count, 0)
  if (left <= 0) return null
  return (
    <p className="soft small">
      <Link href={href}>{formatNumber(left)} more in the list</Link>
    </p>
  )
}

type LineProps = {
  line: NeedLine | WorkLine | DoneLine
  id: string
  current: string | null
  href: string
  time: ReactNode
  bar: BarProps | null
  className?: string
  action?: ReactNode
  children: ReactNode
}

function Line({ line, id, current, href, time, bar, className = '', action, children }: LineProps) {
  const { incident, count, type, severity } = line
  return (
    <tr id={`row-${id}`} data-current={id === current} className={className}>
      <td className="sev">
        <SeverityMark severity={severity} isShort />
      </td>
      <td className="what">
        <span className="two">
          <Link className="name" href={href}>
            {count === 1 ? <Inert text={incident.title} /> : <TypeName type={type} />}
          </Link>
          {count > 1 && <span className="times">× {formatNumber(count)}</span>}
          {count === 1 && incident.resource && !incident.title.includes(incident.resource.id) && (
            <Resource resource={incident.resource} />
          )}
        </span>
      </td>
      <td className="now">{children}</td>
      <td className="hours">{bar && <Bar {...bar} />}</td>
      <td className="since num">{time}</td>
      <td className="press">{action}</td>
    </tr>
  )
}

type LaneProps<L> = { line: L; current: string | null; window: Window }

function Need({ line, current, window, isFirst }: LaneProps<NeedLine> & { isFirst: boolean }) {
  const now = useNow()
  const props = { line, current, id: toKey('need', line), href: toNeedPage(line) }
  const bar: BarProps = { window, from: Date.parse(line.since), to: now, look: line.approval ? 'waits' : 'escalated' }
  const age = formatSpan(now - Date.parse(line.since))
  if (line.approval) {
    const { id, expiresAt } = line.approval
    return (
      <Line
        {...props}
        bar={bar}
        className={isFirst ? 'first' : ''}
        time={<strong className="tone-act">{formatClock(Date.parse(expiresAt) - now)} left</strong>}
        action={
          <Link className="button" href={`/approvals/${id}`}>
            Review<span className="visually-hidden"> the approval for {truncate(line.incident.title, 80)}</span>
          </Link>
        }
      >
        <Mark shape="diamond" tone="act" word={<Inert text={describeNeed(line)} />} />
        {isFirst && line.approval.cost && <Inert as="p" title={line.approval.cost} text={line.approval.cost} />}
      </Line>
    )
  }
  const isFiring = line.count === 1 && line.incident.alerts.firing > 0
  return (
    <Line
      {...props}
      bar={bar}
      time={age}
      action={line.count === 1 && line.need !== 'yours' && line.need !== 'review' && <Take line={line} />}
    >
      <Mark shape="arrow" tone={isFiring ? 'broken' : 'act'} word={<Inert text={describeNeed(line)} />} />
    </Line>
  )
}

/**
 * Takes an incident with one press, because this changes nothing on the platform, and can be
 * undone.
 */
function Take({ line }: { line: NeedLine }) {
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask(`/incidents/${line.incident.id}/take`, { method: 'POST' }),
    onSettled: () => readAgain(['home']),
  })
  const why = useMissing('manage_incident')
  return (
    <>
      <button type="button" disabled={isPending || why !== null} title={why ?? undefined} onClick={() => mutate()}>
        Take<span className="visually-hidden"> {truncate(line.incident.title, 80)}</span>
      </button>
      {error !== null && <Failed error={error} />}
    </>
  )
}

function Work({ line, current, window }: LaneProps<WorkLine>) {
  const now = useNow()
  const live = useLiveAnswer(line.incident.id)
  const { incident, count, investigating } = line
  const isQueued = investigating === 0
  return (
    <Line
      line={line}
      current={current}
      id={toKey('work', line)}
      href={toWorkPage(line)}
      bar={{ window, from: Date.parse(line.since), to: now, look: isQueued ? 'queued' : 'work' }}
      time={formatSpan(now - Date.parse(line.since))}
    >
      <Mark
        shape={isQueued ? 'ring' : 'half'}
        tone={isQueued ? 'quiet' : 'work'}
        word={
          <>
            <Inert text={describeWork(line)} />
            {count > 1 && investigating > 0 && (
              <>
                ; first{' '}
                <TextLink href={toIncident(line)} text={incident.resource?.id ?? truncate(incident.title, 60)} />
              </>
            )}
            {live && (
              <>
                {' '}
                · <Inert text={describeLiveAnswer(live)} />
              </>
            )}
          </>
        }
      />
    </Line>
  )
}

function Done({ line, current, window }: LaneProps<DoneLine>) {
  const { incident, count, outcome, seconds, since } = line
  const word = outcome ? outcomeWords[outcome] : 'cancelled'
  const isProved = outcome === 'repaired'
  const end = Date.parse(since)
  return (
    <Line
      line={line}
      current={current}
      id={toKey('done', line)}
      href={toDonePage(line)}
      className="over"
      // Draws no bar for several incidents, because they began and ended at different times.
      bar={count === 1 ? { window, from: end - seconds * 1_000, to: end, look: 'over' } : null}
      time={
        <span title={formatMoment(since)}>
          {count > 1 && 'median '}
          {formatSpan(seconds * 1_000)}
        </span>
      }
    >
      <Mark
        shape={isProved ? 'check' : 'bar'}
        tone={isProved ? 'proved' : 'quiet'}
        word={
          <>
            {word}
            {count === 1 && incident.resolution && (
              <span className="soft">
                : <Inert text={truncate(incident.resolution.split('\n')[0] ?? '', 140)} />
              </span>
            )}
          </>
        }
      />
    </Line>
  )
}
