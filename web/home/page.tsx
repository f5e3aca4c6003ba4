import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { formatNumber, formatSpan } from '../../domain/format.ts'
import type { Home } from '../../domain/incident-detail.ts'
import type { Status } from '../../domain/status.ts'
import { describeCounts } from '../../domain/status-words.ts'
import { ask, readAgain, useAway } from '../api.ts'
import { Facet } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { useCursorRow } from '../keys.tsx'
import { useLive } from '../live.tsx'
import { Heading, QueryState } from '../page-frame.tsx'
import { useStatus } from '../pages/health.tsx'
import { Link, navigate, usePlace, withSearch } from '../router.tsx'
import { formatMoment, formatTimeOfDay, useNow } from '../time.ts'
import { listRows, NightParts } from './parts.tsx'
import { ShiftLines } from './shift.tsx'
import { StandingLines } from './standing.tsx'
import { FirstSteps } from './steps.tsx'

const hour = 3_600_000
const spans = { '12h': 12 * hour, '24h': 24 * hour, '7d': 7 * 24 * hour }
type Span = keyof typeof spans
const spanWords: [Span, string][] = [
  ['12h', '12 hours'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
]

/**
 * Milliseconds for which rows are collected, so that the page is read again only once per burst.
 */
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
      void readAgain(['home'])
    }, settleMs)
  })
  useEffect(() => () => clearTimeout(timer.current), [])
  return home
}

/**
 * Shows what needs this person, what is in progress, and what is done, so that many finished
 * incidents never hide the one that waits.
 */
export function HomePage({ title }: { title: string }) {
  const place = usePlace()
  const asked = place.search.get('since')
  const span: Span = asked !== null && asked in spans ? (asked as Span) : '12h'
  const home = useHome(span)
  const rows = home.data ? listRows(home.data) : []
  const current = useCursorRow(rows, ({ href }) => navigate(href))
  return (
    <>
      <Heading title={title} />
      <QueryState query={home} what="the night" />
      {home.data && (
        <div className="home">
          <StandingLines />
          {home.data.isFresh ? (
            <FreshSite />
          ) : (
            <>
              <Tonight home={home.data} span={span} />
              <NightParts home={home.data} current={current} window={[Date.now() - spans[span], Date.now()]} />
              <ShiftLines />
            </>
          )}
          <System />
        </div>
      )}
    </>
  )
}

function FreshSite() {
  const { data: status } = useStatus(10_000)
  return status ? <FirstSteps sight={status} /> : null
}

/** Shows the night in a sentence and three figures. The reports define the figures. */
export function Tonight({ home: { needsYou, inProgress, tonight, since }, span }: { home: Home; span: Span }) {
  const place = usePlace()
  const { closed, resolvedAlone, medianSeconds, failedRepairs } = tonight
  const figures = [
    [closed === 0 ? '–' : `${formatNumber(resolvedAlone)} of ${formatNumber(closed)}`, 'closed without a person'],
    [medianSeconds === null ? '–' : formatSpan(medianSeconds * 1_000), 'median time until closed'],
    [formatNumber(failedRepairs), failedRepairs === 1 ? 'failed repair' : 'failed repairs'],
  ]
  return (
    <header className="night">
      <div>
        <p className="headline">{describeDesk(needsYou.incidents, inProgress.incidents)}</p>
        <p className="soft">
          <span className="nowrap">
            Since {span === '12h' ? formatTimeOfDay(since).slice(0, 5) : formatMoment(since)}:
          </span>{' '}
          {describeCounts(tonight)}
        </p>
      </div>
      <dl className="figures">
        {figures.map(([figure, name]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{figure}</dd>
          </div>
        ))}
      </dl>
      <Facet
        legend="Since when"
        options={spanWords}
        chosen={[span]}
        onToggle={(word) =>
          navigate(withSearch({ ...place, pathname: '/home' }, { since: word === '12h' ? null : word }))
        }
      />
    </header>
  )
}

function describeDesk(needs: number, work: number): string {
  const waits = needs === 0 ? 'Nothing needs you' : needs === 1 ? '1 needs you' : `${formatNumber(needs)} need you`
  return `${waits}, ${work === 1 ? '1 is' : `${formatNumber(work)} are`} under way`
}

/** Shows whether the agent works, and with which model. The sign at the top shows failed parts. */
function System() {
  const now = useNow()
  const away = useAway()
  const { data: status } = useStatus(30_000)
  if (away) return <p className="system small soft">System: unknown, because the server does not answer.</p>
  if (!status) return null
  const bad = [...status.parts, ...status.sources].filter((part) => part.status === 'failed')
  const { lastAnswerAt } = status.model
  const model = lastAnswerAt
    ? `model answered ${formatSpan(now - Date.parse(lastAnswerAt))} ago`
    : 'no model has answered yet'
  return (
    <p className="system small soft">
      System:{' '}
      {bad.length === 0 ? (
        'healthy'
      ) : (
        <span className="tone-broken">
          <Inert text={bad.map(({ name }) => name).join(', ')} /> failed
        </span>
      )}{' '}
      · {model} · {formatNumber(status.backlog.waiting)} queued · agent {describeAgent(status)} ·{' '}
      <Link href="/health">Health</Link>
    </p>
  )
}

/** The parts without which no investigation works. */
const agentParts = new Set(['Temporal', 'worker', 'queue'])

function describeAgent({ paused, parts }: Status): string {
  if (paused) return 'paused'
  if (parts.some(({ name, status }) => name === 'model' && status === 'off')) return 'off: no model'
  const own = parts.filter(({ name }) => agentParts.has(name))
  if (own.some(({ status }) => status === 'off')) return 'off'
  return own.some(({ status }) => status === 'failed') ? 'has a fault' : 'on'
}
