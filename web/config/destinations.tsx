import { useEffect, useState } from 'react'
import type { DestinationDelivery, ListedDestination } from '../../domain/destination.ts'
import { formatMinute } from '../../domain/format.ts'
import { ask, type ListPage, readAgain, useAsk } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert, inertText, TextLink } from '../inert.tsx'
import { Confirm, QueryState } from '../page-frame.tsx'
import { usePlace } from '../router.tsx'
import { DestinationForm, destinationKinds } from './destination-form.tsx'
import { SendTest } from './tests.tsx'

/**
 * Lists destinations other than webhooks, Slack and browsers, with form, test and sent messages.
 */
export function Destinations({ refused }: { refused: string | null }) {
  const destinations = useAsk<ListPage<ListedDestination>>(['destinations'], '/destinations')
  const [adding, setAdding] = useState(false)
  const items = destinations.data?.items ?? []
  return (
    <section className="stack tight" aria-labelledby="destinations">
      <div className="row between">
        <h2 id="destinations">Destinations</h2>
        <button
          type="button"
          aria-expanded={adding}
          disabled={refused !== null}
          title={refused ?? undefined}
          onClick={() => setAdding(!adding)}
        >
          {adding ? 'Close' : 'Add a destination'}
        </button>
      </div>
      <p className="soft small">
        PagerDuty, Microsoft Teams, e-mail and further webhooks. A destination's severities, types, kinds of messages
        and hours decide which messages it gets.
      </p>
      <QueryState query={destinations} what="destinations" />
      {adding && (
        <div className="sheet group">
          <DestinationForm destination={null} refused={refused} onSaved={() => setAdding(false)} />
        </div>
      )}
      {destinations.data && (
        <div className="sheet">
          {items.length === 0 ? (
            <p className="nothing">
              No destination yet. Webhooks, Slack and browsers get messages without a destination.
            </p>
          ) : (
            <ul className="things">
              {items.map((each) => (
                <DestinationRow key={each.name} destination={each} refused={refused} />
              ))}
            </ul>
          )}
        </div>
      )}
    </section>
  )
}

function DestinationRow({ destination, refused }: { destination: ListedDestination; refused: string | null }) {
  const { name, kind, address, enabled } = destination
  const id = `destination-${name}`
  const isTarget = usePlace().hash === id
  const [open, setOpen] = useState(isTarget)
  useEffect(() => {
    if (isTarget) document.getElementById(id)?.scrollIntoView({ block: 'center' })
  }, [isTarget, id])
  return (
    <li id={id} aria-current={isTarget ? 'true' : undefined}>
      <div className="setting">
        <div>
          <Inert as="strong" text={name} />
          <div className="soft small">{destinationKinds.find(([each]) => each === kind)?.[1] ?? kind}</div>
        </div>
        <Inert as="div" className="wraps" text={address} />
        <div className="small wraps">
          {!enabled && <strong>switched off; </strong>}
          <Inert text={describeRoute(destination.route)} />
        </div>
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Close' : 'Change'}
          <span className="visually-hidden"> {inertText(name)}</span>
        </button>
      </div>
      {open && (
        <div className="two-columns">
          <DestinationForm destination={destination} refused={refused} onSaved={() => setOpen(false)} />
          <div className="stack">
            <TestDestination name={name} refused={refused} />
            <Deliveries name={name} />
          </div>
        </div>
      )}
    </li>
  )
}

function describeRoute({ severities, types, triggers, hours, wakes }: ListedDestination['route']): string {
  const parts = [
    severities?.join(', '),
    types?.join(', '),
    triggers?.join(', '),
    hours && `${hours.from} to ${hours.to} ${hours.zone}`,
    typeof wakes === 'boolean' && (wakes ? 'wakes' : 'wakes nobody'),
  ]
  return parts.filter(Boolean).join('; ') || 'everything'
}

function TestDestination({ name, refused }: { name: string; refused: string | null }) {
  const remove = async () => {
    await ask(`/destinations/${name}/remove`, { method: 'POST' })
    await readAgain(['destinations'])
  }
  return (
    <SendTest
      to={inertText(name)}
      path={`/destinations/${name}/test`}
      refused={refused}
      command={`nightshift destinations test ${name}`}
    >
      <Confirm button="Remove" label={name} title={`Remove ${name}`} refused={refused} run={remove}>
        <p>Waiting messages to this destination are dropped. Sent messages stay listed with their incidents.</p>
      </Confirm>
    </SendTest>
  )
}

const columns: Column<DestinationDelivery>[] = [
  { head: 'When', className: 'nowrap', cell: ({ createdAt }) => formatMinute(createdAt) },
  {
    head: 'What',
    className: 'wraps',
    cell: ({ trigger, title, incidentId }) => (
      <>
        {trigger} <TextLink href={`/incidents/${incidentId}`} text={title || incidentId} />
      </>
    ),
  },
  { head: 'Try', className: 'num wide', cell: ({ attempt }) => attempt },
  {
    head: 'Status',
    className: 'wraps',
    cell: ({ status, response }) => (
      <>
        <strong>{status}</strong> {response && <Inert text={response} />}
      </>
    ),
  },
]

function Deliveries({ name }: { name: string }) {
  const deliveries = useAsk<ListPage<DestinationDelivery>>(
    ['destinations', name, 'deliveries'],
    `/destinations/${name}/deliveries?limit=20`,
  )
  return (
    <section className="stack tight" aria-label={`What was sent to ${name}`}>
      <h3>Sent to this destination</h3>
      <QueryState query={deliveries} what="deliveries" />
      {deliveries.data && (
        <Table
          caption={`What was sent to ${name}`}
          items={deliveries.data.items}
          columns={columns}
          toKey={({ id }) => String(id)}
          none="Nothing yet."
        />
      )}
    </section>
  )
}
