import { useQuery } from '@tanstack/react-query'
import { ask } from '../api.ts'
import { Heading } from '../heading.tsx'
import { Inert } from '../inert.tsx'
import { Mark, type Shape, type Tone } from '../marks.tsx'
import { useNow } from '../now.ts'
import { Link } from '../router.tsx'
import { Failed, Loading } from '../states.tsx'
import { moment, span } from '../time.ts'

type Status = {
  parts: { name: string; status: 'ok' | 'failed' | 'unknown' | 'off'; detail: string }[]
  paused: boolean
  backlog: {
    waiting: number
    investigating: number
    awaitingApproval: number
    deliveries: number
    failedDeliveries: number
    oldestWaitingAt: string | null
  }
  schedule: {
    paused: boolean
    note: string | null
    everySeconds: number | null
    lastAt: string | null
    nextAt: string | null
  } | null
  model: {
    model: string | null
    lastAnswerAt: string | null
    lastDurationMs: number | null
    answersLastHour: number
    failuresLastHour: number
  }
}

const looks: Record<Status['parts'][number]['status'], { shape: Shape; tone: Tone; word: string }> = {
  ok: { shape: 'check', tone: 'good', word: 'well' },
  failed: { shape: 'cross', tone: 'critical', word: 'failed' },
  unknown: { shape: 'ring', tone: 'warning', word: 'unknown' },
  off: { shape: 'bar', tone: 'quiet', word: 'off' },
}

/** Is it well, and would it notice the next alert? Asked again every ten seconds. */
export function HealthPage() {
  const status = useQuery({
    queryKey: ['status'],
    refetchInterval: 10_000,
    queryFn: ({ signal }) => ask<Status>('/status', { signal }),
  })
  return (
    <>
      <header>
        <Heading title="Health" />
      </header>
      {status.error && (
        <Failed error={status.error} isKept={status.data !== undefined} again={() => void status.refetch()} />
      )}
      {status.isPending && <Loading what="the health of the parts" />}
      {status.data && <Parts status={status.data} />}
    </>
  )
}

function Parts({ status }: { status: Status }) {
  const now = useNow()
  const { backlog, schedule, model } = status
  const ago = (at: string | null) => (at ? `${span(now - Date.parse(at))} ago` : 'never')
  return (
    <div className="stack">
      {status.paused && (
        <p className="said lamp">
          <strong>The agent is paused.</strong> Nothing new is claimed and no write is done; see{' '}
          <Link href="/config#agent.paused">agent.paused</Link>.
        </p>
      )}
      <section className="sheet narrow" aria-label="Parts">
        <table>
          <caption className="visually-hidden">Parts and how they are</caption>
          <thead>
            <tr>
              <th scope="col">Part</th>
              <th scope="col">Is</th>
              <th scope="col">Which means</th>
            </tr>
          </thead>
          <tbody>
            {status.parts.map((part) => (
              <tr key={part.name}>
                <td>
                  <Inert text={part.name} />
                </td>
                <td>
                  <Mark {...looks[part.status]} />
                </td>
                <td className="wraps">
                  <Inert text={part.detail} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <h2>Backlog</h2>
      <dl className="facts narrow">
        <Fact name="Waiting for the agent">
          <Link href="/incidents?status=open">{backlog.waiting}</Link>
          {backlog.oldestWaitingAt && <span className="soft"> · oldest {ago(backlog.oldestWaitingAt)}</span>}
        </Fact>
        <Fact name="Investigated now">
          <Link href="/incidents?status=investigating">{backlog.investigating}</Link>
        </Fact>
        <Fact name="Waiting for a person">
          <Link href="/approvals">{backlog.awaitingApproval}</Link>
        </Fact>
        <Fact name="Messages to send">
          {backlog.deliveries}
          {backlog.failedDeliveries > 0 && (
            <span className="tone-critical"> · {backlog.failedDeliveries} failed in a day</span>
          )}
        </Fact>
      </dl>
      <h2>Queue</h2>
      {schedule ? (
        <dl className="facts narrow">
          <Fact name="Ticks">
            {schedule.paused ? 'paused' : `every ${schedule.everySeconds ?? '?'} s, and at every alert`}
            {schedule.note && (
              <span className="soft">
                {' · '}
                <Inert text={schedule.note} />
              </span>
            )}
          </Fact>
          <Fact name="Last tick">{ago(schedule.lastAt)}</Fact>
          <Fact name="Next tick">
            {schedule.nextAt ? `in ${span(Date.parse(schedule.nextAt) - now)}` : 'none is due'}
          </Fact>
        </dl>
      ) : (
        <p className="said">Temporal could not be asked about the queue's schedule, or has none yet.</p>
      )}
      <h2>Model</h2>
      <dl className="facts narrow">
        <Fact name="Answered last">
          {model.model ? <Inert text={model.model} /> : 'nobody yet'}
          {model.lastAnswerAt && <span className="soft"> · {ago(model.lastAnswerAt)}</span>}
        </Fact>
        <Fact name="Took">{model.lastDurationMs === null ? '–' : `${Math.round(model.lastDurationMs)} ms`}</Fact>
        <Fact name="Last hour">
          {model.answersLastHour} answers, {model.failuresLastHour} failed
        </Fact>
      </dl>
      <p className="soft small">
        As of {moment(new Date(now).toISOString())}. For machines: <a href="/readyz">/readyz</a>,{' '}
        <a href="/metrics">/metrics</a>.
      </p>
    </div>
  )
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
