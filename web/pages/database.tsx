import type { CSSProperties } from 'react'
import { isNearlyFull } from '../../domain/connection-limit.ts'
import type { DatabaseSample, DatabaseState, StateSession } from '../../domain/database-state.ts'
import { formatCount, formatSpan } from '../../domain/format.ts'
import type { Reading } from '../../domain/plot.ts'
import { ApiRefusal, useAsk } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { Chart } from '../incident/chart.tsx'
import { Inert } from '../inert.tsx'
import { Fact } from '../marks.tsx'
import { Failed, Section } from '../page-frame.tsx'
import { formatTimeOfDay } from '../time.ts'

type Answer = DatabaseState & { samples: DatabaseSample[]; allowsStatements: boolean }

const askAgainMs = 10_000

/**
 * Shows a database server on the page of its resource: its state from the source that is this
 * server, read again while it is shown.
 */
export function ServerNow({ name }: { name: string }) {
  const server = useAsk<Answer>(['database', name], `/databases/${encodeURIComponent(name)}`, {
    refetchInterval: askAgainMs,
    retry: false,
  })
  const { data, error } = server
  // A database in the inventory need not be a source.
  if (error instanceof ApiRefusal && error.status === 404) return null
  return (
    <section className="stack" aria-label="The server now">
      {error && <Failed error={error} isKept={data !== undefined} again={() => void server.refetch()} />}
      {data && (
        <>
          <ServerFacts server={data} />
          <Blocking server={data} />
          <OverTime name={name} samples={data.samples} max={data.connections.max} />
          <LongTransactions items={data.transactions} />
        </>
      )}
    </section>
  )
}

function ServerFacts({ server }: { server: Answer }) {
  const { product, version, role, connections, replication, allowsStatements } = server
  const { used, max, reserved } = connections
  return (
    <dl className="facts">
      <Fact name="Server">
        {product} {version}, {role}
      </Fact>
      <Fact name="Connections">
        <span className={isNearlyFull(connections) ? 'tone-ink' : ''}>
          {used} of {max}
        </span>
        {reserved > 0 && <span className="soft small"> {reserved} for superusers</span>}
      </Fact>
      <Fact name="Replication">
        {replication.length === 0 && 'No replica and no slot.'}
        <ul className="things">
          {replication.map(({ text, isIll }) => (
            <Inert key={text} as="li" className={isIll ? 'wraps tone-ink' : 'wraps'} text={text} />
          ))}
        </ul>
      </Fact>
      {allowsStatements && <Fact name="Statements">An admin allowed investigations to read table rows.</Fact>}
    </dl>
  )
}

const nameOf = ({ pid, user, application, database }: StateSession): string =>
  `${pid} ${user ?? '?'}${database ? `@${database}` : ''}${application ? ` (${application})` : ''}`

/**
 * The deepest indentation. Deeper sessions are shown below each other, because a phone has no room
 * for more.
 */
const maxDepth = 4

/**
 * Shows sessions and the sessions that block them, as trees below the session that waits for no
 * other.
 */
function Blocking({ server: { waiting, blocking } }: { server: Answer }) {
  if (waiting === 0) return <p className="soft">No session waits for a lock.</p>
  return (
    <Section className="stack tight" title="Who blocks whom">
      {blocking.map(({ root, blocks, tree }) => (
        <figure key={root?.pid ?? 'prepared'} className="blocking stack tight">
          <figcaption className="wraps">
            <Inert as="strong" text={root ? nameOf(root) : 'A prepared transaction'} /> blocks{' '}
            {formatCount(blocks, 'session')}
            {root && (
              <span className="soft small">
                {' '}
                {root.state}
                {root.stateSince && ` since ${formatTimeOfDay(root.stateSince)}`}
              </span>
            )}
            {root && (
              <p className="small">
                <Inert as="code" className="wraps" text={root.statement} />
              </p>
            )}
          </figcaption>
          <ol className="tree small">
            {tree.map(({ depth, text }) => (
              <li key={text} className="wraps" style={{ '--depth': Math.min(depth, maxDepth) } as CSSProperties}>
                <Inert text={text} />
              </li>
            ))}
          </ol>
        </figure>
      ))}
    </Section>
  )
}

const toSeconds = (at: string): number => Date.parse(at) / 1_000

/** Draws one point per minute, from the samples that this API process read. */
function OverTime({ name, samples, max }: { name: string; samples: DatabaseSample[]; max: number }) {
  if (samples.length < 2)
    return <p className="soft small">Charts begin with the second sample. Nightshift reads one sample a minute.</p>
  const lag = samples.filter(({ lagBytes }) => lagBytes !== null)
  const connections = samples.map(({ at, connections: used }): [number, number] => [toSeconds(at), used])
  return (
    <div className="stack">
      {lag.length > 1 && (
        <Chart
          {...plain(name, 'bytes', 'Bytes that a replica has not replayed yet')}
          series={[
            {
              labels: { replica: 'lag' },
              points: lag.map(({ at, lagBytes }): [number, number] => [toSeconds(at), lagBytes ?? 0]),
            },
          ]}
          limit={null}
        />
      )}
      <Chart
        {...plain(name, 'connections', `Connections, of ${max}`)}
        series={[{ labels: { connections: 'in use' }, points: connections }]}
        limit={{ sign: '≤', value: max, word: 'limit' }}
      />
    </div>
  )
}

function plain(
  source: string,
  unit: string,
  title: string,
): { title: string; source: string; reading: Reading; marks: []; fires: false } {
  const reading: Reading = { promql: '', unit, range: null, stepSeconds: 60, figures: [] }
  return { title, source, reading, marks: [], fires: false }
}

const columns: Column<DatabaseState['transactions'][number]>[] = [
  {
    head: 'Session',
    className: 'wraps',
    cell: (each) => (
      <>
        <Inert text={nameOf(each)} />
        <div className="under small soft">
          <Inert as="code" className="wraps" text={each.statement} />
        </div>
      </>
    ),
  },
  { head: 'Open', className: 'nowrap', cell: ({ openSeconds }) => formatSpan(openSeconds * 1_000) },
  { head: 'State', cell: ({ state }) => state },
  {
    head: 'Statement',
    className: 'wide wraps',
    cell: ({ statement }) => <Inert as="code" text={statement} />,
  },
]

function LongTransactions({ items }: { items: DatabaseState['transactions'] }) {
  if (items.length === 0) return null
  return (
    <Section className="stack tight" title="Open for longer than 10 s">
      <Table caption="Long transactions" items={items} columns={columns} toKey={({ pid }) => String(pid)} />
    </Section>
  )
}
