import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef } from 'react'
import { describeLiveAnswer, formatClock, formatNumber, formatSpan, truncate } from '../../domain/format.ts'
import type { DoneLine, Home, NeedLine, WorkLine } from '../../domain/incident-detail.ts'
import type { Status } from '../../domain/status.ts'
import { describeNeed, describeTonight, describeWork, outcomeWords } from '../../domain/status-words.ts'
import { ask, queryClient, useAway } from '../api.ts'
import { AskBox } from '../ask-box.tsx'
import { Facet } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { useCursorRow } from '../keys.tsx'
import { useLive, useLiveAnswer } from '../live.tsx'
import { Resource, SeverityMark, TypeName } from '../marks.tsx'
import { Failed, Heading, Nothing, QueryState } from '../page-frame.tsx'
import { missing } from '../permissions.ts'
import { PushOffer } from '../push.tsx'
import { Link, navigate, usePlace, withSearch } from '../router.tsx'
import { useSession } from '../session.ts'
import { formatMoment, formatTimeOfDay, useNow } from '../time.ts'
import { useStatus } from './health.tsx'

const hour = 3_600_000
const spans = { '12h': 12 * hour, '24h': 24 * hour, '7d': 7 * 24 * hour }
type Span = keyof typeof spans
const spanWords: [Span, string][] = [
  ['12h', '12 hours'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
]

/** Rows come in bursts: the page is read again once for each. */
const settleMs = 700

function useHome(span: Span) {
  const key = ['home', span]
  const home = useQuery({
    queryKey: key,
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const since = new Date(Date.now() - spans[span]).toISOString()
      return ask<Home>(`/home?since=${encodeURIComponent(since)}`, { signal })
    },
  })
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useLive(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void queryClient.invalidateQueries({ queryKey: ['home'] })
    }, settleMs)
  })
  useEffect(() => () => clearTimeout(timer.current), [])
  return home
}

/** What needs this person, what is at work, what is done: the one that waits is never below the three hundred that do not. */
export function HomePage({ title }: { title: string }) {
  const place = usePlace()
  const { data: session } = useSession()
  const asked = place.search.get('since')
  const span: Span = asked !== null && asked in spans ? (asked as Span) : '12h'
  const home = useHome(span)
  const rows = home.data ? listRows(home.data) : []
  const current = useCursorRow(rows, ({ href }) => navigate(href))
  return (
    <>
      <header>
        <Heading title={title} />
        <AskBox session={session ?? null} />
      </header>
      <QueryState query={home} what="the night" />
      {home.data && (
        <div className="home stack">
          <div className="row apart">
            <p className="tonight">{describeTonight(home.data.tonight)}</p>
            <Facet
              legend="Since when"
              options={spanWords}
              chosen={[span]}
              onToggle={(word) =>
                navigate(withSearch({ ...place, pathname: '/home' }, { since: word === '12h' ? null : word }))
              }
            />
          </div>
          <System at="top" />
          <Parts home={home.data} current={current} />
          <System at="foot" />
        </div>
      )}
    </>
  )
}

type Row = { id: string; href: string }

/** What `j` and `k` go over, from top to bottom. */
function listRows({ needsYou, inProgress, done }: Home): Row[] {
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

function Parts({ home, current }: { home: Home; current: string | null }) {
  const { needsYou, inProgress, done } = home
  return (
    <>
      <Part title="Needs you" count={needsYou.incidents} isLamp={needsYou.incidents > 0} empty="Nothing waits for you.">
        {needsYou.lines.map((line) => (
          <Need key={toKey('need', line)} line={line} current={current} />
        ))}
      </Part>
      <Rest shown={needsYou.lines} all={needsYou.incidents} href="/incidents?status=awaiting_approval,escalated,open" />
      {needsYou.lines.some(({ approval }) => approval !== null) && <PushOffer />}
      <Part title="In progress" count={inProgress.incidents} empty="Nothing is being investigated.">
        {inProgress.lines.map((line) => (
          <Work key={toKey('work', line)} line={line} current={current} />
        ))}
      </Part>
      <Rest shown={inProgress.lines} all={inProgress.incidents} href="/incidents?status=open,investigating" />
      <Part title="Done" count={done.incidents} empty="Nothing was closed in this time.">
        {done.lines.map((line) => (
          <Done key={toKey('done', line)} line={line} current={current} />
        ))}
      </Part>
      <Rest shown={done.lines} all={done.incidents} href="/incidents?status=resolved,cancelled" />
    </>
  )
}

type PartProps = { title: string; count: number; isLamp?: boolean; empty: string; children: ReactNode[] }

function Part({ title, count, isLamp = false, empty, children }: PartProps) {
  const id = `part-${title.toLowerCase().replaceAll(' ', '-')}`
  return (
    <section className="stack tight" aria-labelledby={id}>
      <h2 id={id}>
        {title} <span className={isLamp ? 'count' : 'soft'}>{formatNumber(count)}</span>
      </h2>
      <div className={isLamp ? 'sheet lamp-edge' : 'sheet'}>
        {children.length > 0 ? <ul className="lines">{children}</ul> : <Nothing title={empty} />}
      </div>
    </section>
  )
}

/** Incidents that no line speaks for: a part shows thirty lines. */
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
  action?: ReactNode
  children: ReactNode
}

function Line({ line, id, current, href, time, action, children }: LineProps) {
  const { incident, count, type, severity } = line
  return (
    <li id={`row-${id}`} data-current={id === current}>
      <SeverityMark severity={severity} />
      <div className="what">
        <Link className="title" href={href}>
          {count === 1 ? <Inert text={incident.title} /> : <TypeName type={type} />}
        </Link>
        {count > 1 && <strong className="nowrap"> × {formatNumber(count)}</strong>}
        {count === 1 && incident.resource && (
          <span className="small soft">
            {' '}
            <Resource resource={incident.resource} />
          </span>
        )}
        <div className="small wraps">{children}</div>
      </div>
      <span className="time small soft nowrap">{time}</span>
      <span className="act">{action}</span>
    </li>
  )
}

function Need({ line, current }: { line: NeedLine; current: string | null }) {
  const now = useNow()
  const props = { line, current, id: toKey('need', line), href: toNeedPage(line) }
  const age = formatSpan(now - Date.parse(line.since))
  if (line.approval) {
    const { id, expiresAt } = line.approval
    return (
      <Line
        {...props}
        time={<strong className="tone-lamp">{formatClock(Date.parse(expiresAt) - now)} left</strong>}
        action={
          <Link className="button" href={`/approvals/${id}`}>
            Review<span className="visually-hidden"> the approval for {truncate(line.incident.title, 80)}</span>
          </Link>
        }
      >
        <Inert text={describeNeed(line)} />
      </Line>
    )
  }
  return (
    <Line
      {...props}
      time={age}
      action={line.count === 1 && line.need !== 'yours' && line.need !== 'review' && <Take line={line} />}
    >
      <Inert text={describeNeed(line)} />
    </Line>
  )
}

/** One press: taking an incident changes nothing in the world, and it can be given back. */
function Take({ line }: { line: NeedLine }) {
  const { data: session } = useSession()
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask(`/incidents/${line.incident.id}/take`, { method: 'POST' }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['home'] }),
  })
  const why = missing(session ?? null, 'manage_incident')
  return (
    <>
      <button type="button" disabled={isPending || why !== null} title={why ?? undefined} onClick={() => mutate()}>
        Take<span className="visually-hidden"> {truncate(line.incident.title, 80)}</span>
      </button>
      {error !== null && <Failed error={error} />}
    </>
  )
}

function Work({ line, current }: { line: WorkLine; current: string | null }) {
  const now = useNow()
  const live = useLiveAnswer(line.incident.id)
  const { incident, count, investigating } = line
  return (
    <Line
      line={line}
      current={current}
      id={toKey('work', line)}
      href={toWorkPage(line)}
      time={formatSpan(now - Date.parse(line.since))}
    >
      <Inert text={describeWork(line)} />
      {count > 1 && investigating > 0 && (
        <>
          ; first{' '}
          <Link href={toIncident(line)}>
            <Inert text={incident.resource?.id ?? truncate(incident.title, 60)} />
          </Link>
        </>
      )}
      {live && (
        <>
          {' '}
          · <Inert text={describeLiveAnswer(live)} />
        </>
      )}
    </Line>
  )
}

function Done({ line, current }: { line: DoneLine; current: string | null }) {
  const { incident, count, outcome, seconds, since } = line
  const word = outcome ? outcomeWords[outcome] : 'cancelled'
  return (
    <Line
      line={line}
      current={current}
      id={toKey('done', line)}
      href={toDonePage(line)}
      time={
        <span title={formatMoment(since)}>
          {count > 1 && 'median '}
          {formatSpan(seconds * 1_000)} · {formatTimeOfDay(since)}
        </span>
      }
    >
      <span className="tone-good">{word}</span>
      {count === 1 && incident.resolution && (
        <>
          : <Inert text={truncate(incident.resolution.split('\n')[0] ?? '', 140)} />
        </>
      )}
    </Line>
  )
}

/** Whether it would notice the next alert. What is not well is named, above all else; the rest is on Health. */
function System({ at }: { at: 'top' | 'foot' }) {
  const now = useNow()
  const away = useAway()
  const { data: status } = useStatus(30_000)
  if (away)
    return at === 'top' ? null : <p className="system small soft">System: unknown, for the server does not answer.</p>
  if (!status) return null
  const bad = [...status.parts, ...status.sources].filter((part) => part.status === 'failed')
  if (bad.length > 0 !== (at === 'top')) return null
  const { lastAnswerAt } = status.model
  const model = lastAnswerAt
    ? `model answered ${formatSpan(now - Date.parse(lastAnswerAt))} ago`
    : 'no model has answered yet'
  return (
    <p className={at === 'top' ? 'said lamp' : 'system small soft'}>
      System:{' '}
      {bad.length === 0 ? (
        <span className="tone-good">healthy</span>
      ) : (
        <span className="tone-critical">
          <Inert text={bad.map(({ name }) => name).join(', ')} /> failed
        </span>
      )}{' '}
      · {model} · {formatNumber(status.backlog.waiting)} queued · agent {describeAgent(status)} ·{' '}
      <Link href="/health">Health</Link>
    </p>
  )
}

/** The parts without which nothing is investigated. */
const agentParts = new Set(['Temporal', 'worker', 'queue'])

function describeAgent({ paused, parts }: Status): string {
  if (paused) return 'paused'
  if (parts.some(({ name, status }) => name === 'model' && status === 'off')) return 'off: no model'
  const own = parts.filter(({ name }) => agentParts.has(name))
  if (own.some(({ status }) => status === 'off')) return 'off'
  return own.some(({ status }) => status === 'failed') ? 'not at work' : 'on'
}
