import type { ClusterNow, PodContainer, PodGroup } from '../../domain/cluster-now.ts'
import { formatCount, formatNumber } from '../../domain/format.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert, TextBox } from '../inert.tsx'
import { Mark, Sign } from '../marks.tsx'
import { Section } from '../page-frame.tsx'
import { formatMoment } from '../time.ts'

/** Shows the pods of a workload by state, and the containers of the worst one. */

const maxNamed = 5

const columns: Column<PodGroup>[] = [
  {
    head: 'State',
    cell: ({ state, isWell }) =>
      isWell ? (
        <Mark shape="check" tone="quiet" word={<Inert text={state} />} />
      ) : (
        <Mark shape="square" tone="broken" strong word={<Inert text={state} />} />
      ),
  },
  { head: 'Pods', className: 'num', cell: ({ count }) => formatNumber(count) },
  {
    head: 'Which',
    className: 'wraps',
    cell: ({ pods, count }) => (
      <ul>
        {pods.slice(0, maxNamed).map(({ name, node, restarts }) => (
          <li key={name} className="wraps">
            <Inert text={name} />{' '}
            <span className="soft small">
              {node === '' ? 'on no node' : <Inert text={`on ${node}`} />}
              {restarts > 0 && `, ${formatCount(restarts, 'restart')}`}
            </span>
          </li>
        ))}
        {count > maxNamed && <li className="soft small">and {formatNumber(count - maxNamed)} more</li>}
      </ul>
    ),
  },
]

export function Pods({ groups }: { groups: PodGroup[] }) {
  if (groups.length === 0) return null
  return (
    <Section className="stack tight" title="Pods by state">
      <Table caption="Pods by state" items={groups} columns={columns} toKey={({ state }) => state} />
    </Section>
  )
}

export function WorstPod({ worst: { name, containers, lastLines } }: { worst: ClusterNow['worst'] & {} }) {
  return (
    <section className="stack tight">
      <h2>
        Containers of <Inert text={name} />
      </h2>
      <ul className="things">
        {containers.map((container) => (
          <li key={container.name} className="wraps">
            <Container container={container} />
          </li>
        ))}
      </ul>
      {lastLines.length > 0 && (
        <figure className="stack tight">
          <figcaption className="soft small">Last lines of output</figcaption>
          <LogLines label="Last lines" lines={lastLines.map((text) => ({ text }))} />
        </figure>
      )}
    </section>
  )
}

function Container({ container }: { container: PodContainer }) {
  const { name, image, is, isWell, message, restarts, ends, rest } = container
  const said = `${is}, ${formatCount(restarts, 'restart')}`
  return (
    <>
      <Inert as="strong" text={name} /> {isWell ? <Inert className="soft" text={said} /> : <Ill text={said} />}{' '}
      <Inert className="soft small" text={image} />
      {message !== '' && <Inert as="p" text={message} />}
      {ends.map(({ isBefore, reason, exitCode, at, ranFor, message: why }) => (
        <p key={`${isBefore} ${at}`}>
          {isBefore ? 'The previous container ended' : 'The container ended'}
          {at && ` ${formatMoment(at)}`}: <Inert text={reason} />, exit code {exitCode}
          {ranFor !== '' && `, after ${ranFor}`}
          {why !== '' && (
            <>
              : <Inert text={why} />
            </>
          )}
        </p>
      ))}
      {rest.length > 0 && <Inert as="p" className="soft small" text={rest.join('; ')} />}
    </>
  )
}

/** Shows a present fault as text of any length, because a mark has only one line. */
export function Ill({ text }: { text: string }) {
  return (
    <span className="tone-broken wraps">
      <Sign shape="square" /> <Inert text={text} />
    </span>
  )
}

/** Shows lines of a program in a box that they cannot leave. */
export function LogLines({ label, lines }: { label: string; lines: readonly { at?: string; text: string }[] }) {
  const drawn = lines.map(({ at, text }, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: two lines may be alike
    <div key={index}>
      {at && <span className="soft">{at} </span>}
      <Inert text={text} />
    </div>
  ))
  return <TextBox label={label} lines={drawn} />
}
