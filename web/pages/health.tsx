import { formatNumber, formatSpan } from '../../domain/format.ts'
import type { ModelList } from '../../domain/model-list.ts'
import type { Status, StatusPart } from '../../domain/status.ts'
import { describeAbilities, describePassport, maxPoints } from '../../domain/status-words.ts'
import { useAsk } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert } from '../inert.tsx'
import { Fact, Mark, type MarkShape, type Tone } from '../marks.tsx'
import { spelled } from '../own-command.ts'
import { Heading, QueryState } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'
import { SnsTopics } from './sns-topics.tsx'

export function useStatus(everyMs: number) {
  return useAsk<Status>(['status'], '/status', { refetchInterval: everyMs })
}

/** Warns on every page if the model in use is not measured, or has a low grade. */
export function ModelWarning() {
  const warning = useStatus(300_000).data?.model.grade?.warning
  if (!warning) return null
  return (
    <p className="said lamp">
      <Inert text={warning} /> <Link href="/health">Health</Link>
    </p>
  )
}

/**
 * Shows whether Nightshift works and would notice the next alert. The page reads this again every
 * 10 s.
 */
export function HealthPage({ title }: { title: string }) {
  const status = useStatus(10_000)
  return (
    <>
      <Heading title={title} />
      <QueryState query={status} what="the health of the parts" />
      {status.data && <Parts status={status.data} />}
    </>
  )
}

function Parts({ status }: { status: Status }) {
  const now = useNow()
  return (
    <div className="stack">
      {status.paused && (
        <p className="said lamp">
          <strong>The agent is paused.</strong> No investigation starts and no write runs; see{' '}
          <Link href="/config#agent.paused">agent.paused</Link>.
        </p>
      )}
      <section className="sheet narrow" aria-label="Parts">
        <Table caption="State of each part" items={status.parts} columns={partColumns} toKey={({ name }) => name} />
      </section>
      {status.sources.length > 0 && (
        <section className="sheet narrow" aria-label="Sources">
          <Table
            caption="State of each source"
            items={status.sources}
            columns={sourceColumns}
            toKey={({ name }) => name}
          />
        </section>
      )}
      <SnsTopics />
      <h2>Backlog</h2>
      <Backlog backlog={status.backlog} now={now} />
      <h2>Queue</h2>
      <Schedule schedule={status.schedule} now={now} />
      <h2>Model</h2>
      <ModelFacts model={status.model} now={now} />
      <Models />
      <p className="soft small">
        As of {formatMoment(new Date(now).toISOString())}. For machines: <a href="/readyz">/readyz</a>,{' '}
        <a href="/metrics">/metrics</a>.
      </p>
    </div>
  )
}

const looks: Record<StatusPart['status'], { shape: MarkShape; tone: Tone; word: string }> = {
  ok: { shape: 'check', tone: 'proved', word: 'healthy' },
  failed: { shape: 'cross', tone: 'broken', word: 'failed' },
  unknown: { shape: 'ring', tone: 'ink', word: 'unknown' },
  off: { shape: 'bar', tone: 'quiet', word: 'off' },
}

const partColumns: Column<StatusPart>[] = [
  { head: 'Part', cell: ({ name }) => <Inert text={name} /> },
  { head: 'Status', cell: ({ status }) => <Mark {...looks[status]} /> },
  {
    head: 'Details',
    className: 'wraps',
    cell: ({ detail, remedy }) => (
      <>
        <Inert text={detail} />
        {remedy && (
          <span className="remedy">
            To do: <Inert text={spelled(remedy)} />
          </span>
        )}
      </>
    ),
  },
]

const sourceColumns: Column<StatusPart>[] = partColumns.with(0, {
  head: 'Source',
  cell: ({ name }) => <Inert text={name} />,
})

function Backlog({ backlog, now }: { backlog: Status['backlog']; now: number }) {
  return (
    <dl className="facts narrow">
      <Fact name="Waiting for the agent">
        <Link href="/incidents?status=open">{backlog.waiting}</Link>
        {backlog.oldestWaitingAt && <span className="soft"> · oldest {formatAge(backlog.oldestWaitingAt, now)}</span>}
      </Fact>
      <Fact name="Investigated now">
        <Link href="/incidents?status=investigating">{backlog.investigating}</Link>
      </Fact>
      <Fact name="Awaiting approval">
        <Link href="/approvals">{backlog.awaitingApproval}</Link>
      </Fact>
      <Fact name="Messages to send">
        {backlog.deliveries}
        {backlog.failedDeliveries > 0 && (
          <span className="tone-broken"> · {backlog.failedDeliveries} given up in the last day</span>
        )}
      </Fact>
    </dl>
  )
}

function Schedule({ schedule, now }: { schedule: Status['schedule']; now: number }) {
  if (!schedule)
    return <p className="said">Temporal did not answer about the queue's schedule, or has no schedule yet.</p>
  const { paused, note, everySeconds, lastAt, nextAt } = schedule
  return (
    <dl className="facts narrow">
      <Fact name="Ticks">
        {paused ? 'paused' : `every ${everySeconds ?? '?'} s, and at every alert`}
        {note && (
          <span className="soft">
            {' · '}
            <Inert text={note} />
          </span>
        )}
      </Fact>
      <Fact name="Last tick">{formatAge(lastAt, now)}</Fact>
      <Fact name="Next tick">{nextAt ? `in ${formatSpan(Date.parse(nextAt) - now)}` : 'none is due'}</Fact>
    </dl>
  )
}

function ModelFacts({ model, now }: { model: Status['model']; now: number }) {
  return (
    <dl className="facts narrow">
      <Fact name="Last answer">
        {model.model ? <Inert text={model.model} /> : 'nobody yet'}
        {model.lastAnswerAt && <span className="soft"> · {formatAge(model.lastAnswerAt, now)}</span>}
      </Fact>
      <Fact name="Took">{model.lastDurationMs === null ? '–' : `${Math.round(model.lastDurationMs)} ms`}</Fact>
      <Fact name="Last hour">
        {model.answersLastHour} answers, {model.failuresLastHour} failed
      </Fact>
      <Fact name="Server">
        {model.abilities ? describeAbilities(model.abilities) : 'not known yet'}
        {model.windowTokens !== null && <span className="soft"> · window {formatNumber(model.windowTokens)}</span>}
      </Fact>
      <Fact name="Grade">
        <ModelGradeFacts grade={model.grade} now={now} />
      </Fact>
    </dl>
  )
}

type ListedModel = ModelList['items'][number]

const modelColumns: Column<ListedModel>[] = [
  { head: 'Name', cell: ({ name }) => <Inert text={name} /> },
  { head: 'Model', className: 'wraps', cell: ({ model, server }) => <Inert text={`${model} at ${server}`} /> },
  { head: 'Fallback models', cell: ({ fallbacks }) => <Inert text={fallbacks.join(', ') || 'none'} /> },
  {
    head: 'Grade',
    cell: ({ passport }) => (passport ? `${passport.grade}${passport.withdrawn ? ', withdrawn' : ''}` : 'not measured'),
  },
  { head: 'Can', className: 'wraps', cell: ({ abilities }) => describeAbilities(abilities) },
  {
    head: 'Status',
    cell: ({ awayUntil }) =>
      awayUntil ? <Mark {...looks.failed} word="unavailable" /> : <Mark {...looks.ok} word="available" />,
  },
]

/** Lists all models for runs, if there are several. */
function Models() {
  const list = useAsk<ModelList>(['models'], '/models', { refetchInterval: 10_000 })
  if (!list.data || list.data.items.length < 2) return null
  return (
    <section className="sheet" aria-label="Models">
      <Table
        caption="Models that runs can use"
        items={list.data.items}
        columns={modelColumns}
        toKey={({ name }) => name}
      />
      {list.data.routes.map(({ key, model, isDeclared }) => (
        <p key={key} className="small">
          <Inert text={`${key}: ${model}`} />
          {!isDeclared && '. This model is not declared, so runs use the default model.'}
        </p>
      ))}
    </section>
  )
}

function ModelGradeFacts({ grade, now }: { grade: Status['model']['grade']; now: number }) {
  if (!grade) return 'no model is known'
  const { passport, warning, model } = grade
  if (!passport) {
    return (
      <>
        not measured <span className="soft">· {warning ? <Inert text={warning} /> : <Inert text={model} />}</span>
      </>
    )
  }
  const lost = passport.probes.filter(({ reason }) => reason !== null)
  return (
    <>
      <Inert text={`${model}: ${describePassport(passport)}`} />
      <span className="soft"> · measured {formatAge(passport.measuredAt, now)}</span>
      {lost.length > 0 && (
        <details>
          <summary>Where the model lost points</summary>
          <ul>
            {lost.map(({ name, points, reason, isUnsafe }) => (
              <li key={name}>
                <Inert text={name} />: {isUnsafe ? 'unsafe' : `${points} of ${maxPoints}`}.{' '}
                <Inert text={reason ?? ''} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}

function formatAge(at: string | null, now: number): string {
  return at ? `${formatSpan(now - Date.parse(at))} ago` : 'never'
}
