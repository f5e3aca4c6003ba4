import type { ClusterNow, ShownCondition, ShownEvent, ShownRollout, Unwell } from '../../domain/cluster-now.ts'
import { capitalize, formatCount, formatNumber } from '../../domain/format.ts'
import { useAsk } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert } from '../inert.tsx'
import { Fact, Mark, Sign } from '../marks.tsx'
import { Failed, Section } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { formatMoment, formatTimeOfDay } from '../time.ts'
import { PodLogPane } from './pod-log.tsx'
import { Ill, Pods, WorstPod } from './pods.tsx'

const askAgainMs = 30_000

/**
 * Shows a cluster, node or workload on the page of its resource: its state from the cluster's
 * source, read again while it is shown.
 */
export function ClusterThing({ kind, id }: { kind: string; id: string }) {
  const path = `/resources/${encodeURIComponent(kind)}/${encodeURIComponent(id)}/cluster`
  const { data, error, refetch } = useAsk<ClusterNow>(['cluster', kind, id], path, {
    refetchInterval: askAgainMs,
    retry: false,
  })
  return (
    <section className="about" aria-label="In the cluster now">
      {error && <Failed error={error} isKept={data !== undefined} again={() => void refetch()} />}
      {data && (
        <>
          <ClusterFacts now={data} />
          <Unread partial={data.partial} />
          <NotWell now={data} />
          <Rollouts now={data} />
          <Conditions items={data.conditions} />
          <Pods groups={data.pods} />
          {data.worst && <WorstPod worst={data.worst} />}
          {data.kind === 'workload' && <PodLogPane path={path} groups={data.pods} />}
          {data.kind !== 'cluster' && <Events now={data} />}
        </>
      )}
    </section>
  )
}

function ClusterFacts({ now: { facts, source, heardAt } }: { now: ClusterNow }) {
  return (
    <dl className="facts">
      {facts.map(({ name, text, isIll }) => (
        <Fact key={`${name} ${text}`} name={name} className="wraps">
          {isIll ? <Ill text={text} /> : <Inert text={text} />}
        </Fact>
      ))}
      <Fact name="Source">
        <Inert text={source} />
        {heardAt && <span className="soft small"> last heard {formatTimeOfDay(heardAt)}</span>}
      </Fact>
    </dl>
  )
}

function Unread({ partial }: { partial: readonly string[] }) {
  return partial.map((text) => (
    <p key={text} className="said lamp wraps">
      <strong>Not read:</strong> <Inert text={text} />
    </p>
  ))
}

const noneIll = { cluster: 'No faults in the nodes and workloads that could be read.', node: 'None.', workload: '' }

function NotWell({ now: { kind, unwell, unwellMore } }: { now: ClusterNow }) {
  if (kind === 'workload') return null
  return (
    <Section
      className="stack tight"
      title={kind === 'cluster' ? 'Nodes and workloads with faults' : 'Pods with faults on this node'}
    >
      {unwell.length === 0 && <p className="soft">{noneIll[kind]}</p>}
      <ul className="things">
        {unwell.map((each) => (
          <li key={`${each.kind} ${each.text}`} className="wraps">
            <UnwellThing thing={each} />
          </li>
        ))}
      </ul>
      {unwellMore > 0 && <p className="soft small">and {formatNumber(unwellMore)} more</p>}
    </Section>
  )
}

function UnwellThing({ thing: { text, resource } }: { thing: Unwell }) {
  const words = <Inert text={text} />
  return (
    <>
      <span className="tone-broken">
        <Sign shape="square" />
      </span>{' '}
      {resource ? <Link href={`/resources/${encodeURIComponent(resource)}`}>{words}</Link> : words}
    </>
  )
}

const conditionColumns: Column<ShownCondition>[] = [
  {
    head: 'Condition',
    className: 'name wraps',
    cell: ({ of, type, since, reason, message }) => (
      <>
        <Inert text={type} />
        {of !== '' && (
          <span className="soft small">
            {' '}
            <Inert text={of} />
          </span>
        )}
        <div className="under small soft">
          {since && <>since {formatMoment(since)} </>}
          <Inert text={[reason, message].filter((each) => each !== '').join(': ')} />
        </div>
      </>
    ),
  },
  {
    head: 'Is',
    className: 'nowrap',
    cell: ({ is, isIll }) =>
      isIll ? <Mark shape="square" tone="broken" strong word={is} /> : <Mark shape="check" tone="quiet" word={is} />,
  },
  { head: 'Since', className: 'wide nowrap', cell: ({ since }) => since && formatMoment(since) },
  {
    head: 'Why',
    className: 'wide wraps',
    cell: ({ reason, message }) => <Inert text={[reason, message].filter((each) => each !== '').join(': ')} />,
  },
]

function Conditions({ items }: { items: ShownCondition[] }) {
  if (items.length === 0) return null
  return (
    <Section className="stack tight" title="Conditions">
      <Table caption="Conditions" items={items} columns={conditionColumns} toKey={({ of, type }) => `${of} ${type}`} />
    </Section>
  )
}

function Rollouts({ now: { rollouts, changes } }: { now: ClusterNow }) {
  if (rollouts.length + changes.length === 0) return null
  return (
    <Section className="stack tight" title="Rollouts, and what each rollout changed">
      <ul className="things">
        {rollouts.map((rollout) => (
          <li key={rollout.revision} className="wraps">
            <Rollout rollout={rollout} />
          </li>
        ))}
        {changes.map(({ text, at }) => (
          <li key={text} className="wraps">
            <Inert text={text} /> {at && <span className="soft small">{formatMoment(at)}</span>}
          </li>
        ))}
      </ul>
      <p className="soft small">Values of environment variables, arguments and ConfigMaps are hidden.</p>
    </Section>
  )
}

function Rollout({ rollout: { revision, at, isTakenUpAgain, set, ready, changed, first } }: { rollout: ShownRollout }) {
  const words = changed ?? [capitalize(`${first}.`)]
  return (
    <>
      <strong>Revision {revision}</strong>{' '}
      <span className="soft small">
        {isTakenUpAgain ? 'a rollback to an older revision, first used ' : ''}
        {formatMoment(at)}
        {set && (
          <>
            , <Inert text={set} />
          </>
        )}
        {ready && `, ${ready}`}
      </span>
      <ul>
        {words.map((text) => (
          <Inert key={text} as="li" className={changed ? 'wraps' : 'wraps soft'} text={text} />
        ))}
        {words.length === 0 && <li className="soft">The template did not change.</li>}
      </ul>
    </>
  )
}

const eventColumns: Column<ShownEvent>[] = [
  { head: 'Times', className: 'num', cell: ({ count }) => formatNumber(count) },
  {
    head: 'What',
    className: 'wraps',
    cell: ({ reason, message, isWarning, about, objects }) => (
      <>
        {isWarning ? (
          <Mark shape="triangle" tone="ink" strong word={<Inert text={reason} />} />
        ) : (
          <Inert as="strong" text={reason} />
        )}{' '}
        <Inert text={message} />
        <span className="soft small">
          {' '}
          <Inert text={about} />
          {objects > 1 && `, ${formatCount(objects, 'object')}`}
        </span>
      </>
    ),
  },
  {
    head: 'First and last',
    cell: ({ first, last }) => (
      <>
        <span className="nowrap">{formatTimeOfDay(first)}</span>
        {last !== first && (
          <>
            {' '}
            to <span className="nowrap">{formatTimeOfDay(last)}</span>
          </>
        )}
      </>
    ),
  },
]

function Events({ now: { events, eventsMore } }: { now: ClusterNow }) {
  return (
    <Section className="stack tight" title="Events">
      {events.length === 0 ? (
        <p className="soft">No events. By default an API server keeps an event for an hour.</p>
      ) : (
        <Table
          caption="Events, repeats joined, warnings first"
          items={events}
          columns={eventColumns}
          toKey={({ reason, about, message }) => `${reason} ${about} ${message}`}
        />
      )}
      {eventsMore > 0 && <p className="soft small">and {formatCount(eventsMore, 'more kind')} of events</p>}
    </Section>
  )
}
