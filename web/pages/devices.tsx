import { useState } from 'react'
import type { DeviceCall, ListedDevice } from '../../domain/device.ts'
import { inertText } from '../../domain/inert-text.ts'
import { findSandboxLack, sandboxRemedy } from '../../domain/status-words.ts'
import { type ListPage, useAsk } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert } from '../inert.tsx'
import { Mark } from '../marks.tsx'
import { spelled } from '../own-command.ts'
import { Heading, Nothing, QueryState } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { formatMoment } from '../time.ts'

/** Lists the machines that investigations read: the state, capabilities and last calls of each. */
export function DevicesPage({ title }: { title: string }) {
  const devices = useAsk<ListPage<ListedDevice>>(['devices'], '/devices', { refetchInterval: 30_000 })
  return (
    <>
      <Heading title={title} />
      <QueryState query={devices} what="devices" />
      {devices.data?.items.length === 0 && (
        <Nothing title="No machine has an agent yet.">
          <code>{spelled('nightshift mesh enroll NAME --mode user')}</code>
        </Nothing>
      )}
      {devices.data?.items.map((device) => (
        <OneDevice key={device.id} device={device} />
      ))}
    </>
  )
}

function OneDevice({ device }: { device: ListedDevice }) {
  const [isOpen, setOpen] = useState(false)
  const { health, healthProblem } = device
  const lack = findSandboxLack(health)
  const lacking = Object.entries(health?.unavailable ?? {})
  return (
    <section className="sheet device" aria-labelledby={`device-${device.id}`}>
      <Inert as="h2" id={`device-${device.id}`} text={device.id} />
      <p>
        <State device={device} />
      </p>
      {healthProblem && <Inert as="p" className="wraps" text={healthProblem} />}
      {lack && (
        <p className="said lamp wraps">
          No sandbox confines the agent's reads, so each read needs approval: <Inert text={lack} />. To confine reads,{' '}
          {sandboxRemedy}.
        </p>
      )}
      <DeviceFacts device={device} />
      {lacking.length > 0 && (
        <details>
          <summary>Missing capabilities ({lacking.length})</summary>
          <ul>
            {lacking.map(([capability, reason]) => (
              <li key={capability} className="wraps">
                <code>{capability}</code>: <Inert text={reason ?? ''} />
              </li>
            ))}
          </ul>
        </details>
      )}
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Last calls</summary>
        {isOpen && <LastCalls id={device.id} />}
      </details>
    </section>
  )
}

const sandboxWords = {
  bwrap: 'bubblewrap',
  unshare: 'namespaces',
  user: 'another user',
  none: 'nothing',
} as const

function DeviceFacts({ device }: { device: ListedDevice }) {
  const { health, healthAt, resource, mode, terms, tools, manifestExpiresAt } = device
  return (
    <dl>
      <dt>Represents</dt>
      <dd>
        {resource.kind} <Inert text={resource.id} />
      </dd>
      <dt>Reached</dt>
      <dd className="wraps">
        <Reached device={device} />, mode {mode}
      </dd>
      <dt>Last call</dt>
      <dd>{healthAt ? formatMoment(healthAt) : 'never'}</dd>
      <dt>Reads confined by</dt>
      <dd>{health ? sandboxWords[health.sandbox] : 'not known yet'}</dd>
      <dt>Journal</dt>
      <dd>
        {health?.journal
          ? `${health.journal.entries} ${health.journal.entries === 1 ? 'entry' : 'entries'}`
          : 'not known yet'}
      </dd>
      <dt>Manifest until</dt>
      <dd>{manifestExpiresAt ? formatMoment(manifestExpiresAt) : 'none yet'}</dd>
      <dt>Root reads with</dt>
      <dd className="wraps">
        {terms.root_reads?.length ? <Commands commands={terms.root_reads} /> : 'no command without approval'}
      </dd>
      <dt>Tools</dt>
      <dd className="wraps">{tools.join(', ') || 'none'}</dd>
    </dl>
  )
}

/**
 * Shows the address of the agent, or its connection: since when, from where, to which process of
 * the API.
 */
function Reached({ device: { url, connection } }: { device: ListedDevice }) {
  if (url !== null) return <Inert text={url} />
  if (!connection) return 'calls out, has not connected yet'
  const { isConnected, since, address, process, agentVersion } = connection
  const when = since ? formatMoment(since) : 'some time ago'
  if (!isConnected) return `calls out, not connected since ${when}`
  return (
    <>
      calls out, connected since {when} from <Inert text={address} /> to <Inert text={process} />, agent{' '}
      <Inert text={agentVersion} />
    </>
  )
}

/** Shows command lines. An argument with special characters is quoted. */
function Commands({ commands }: { commands: readonly (readonly string[])[] }) {
  const written = commands.map((words) =>
    words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' '),
  )
  return (
    <ul>
      {written.map((command) => (
        <li key={command}>
          <Inert as="code" text={command} />
        </li>
      ))}
    </ul>
  )
}

function State({ device }: { device: ListedDevice }) {
  const { revokedAt, enabled, enrolledAt, health, healthProblem, url, connection } = device
  if (revokedAt) return <Mark shape="cross" tone="quiet" word={`revoked ${formatMoment(revokedAt)}`} />
  if (!enabled) return <Mark shape="bar" tone="quiet" word="switched off" />
  if (!enrolledAt) return <Mark shape="ring" tone="act" word="waits to enrol" />
  if (url === null && !connection?.isConnected)
    return <Mark shape="triangle" tone="broken" word={connection ? 'not connected' : 'has not connected yet'} />
  if (healthProblem) return <Mark shape="triangle" tone="broken" word="does not answer" />
  if (health?.status === 'refusing')
    return (
      <Mark shape="triangle" tone="broken" word={`refuses: ${inertText(health.reason ?? 'no reason given', 300)}`} />
    )
  if (findSandboxLack(health) !== null)
    return <Mark shape="triangle" tone="ink" word="ready, but each read needs approval" />
  return health ? (
    <Mark shape="disc" tone="proved" word="ready" />
  ) : (
    <Mark shape="ring" tone="quiet" word="not checked yet" />
  )
}

function LastCalls({ id }: { id: string }) {
  const calls = useAsk<ListPage<DeviceCall>>(['device-calls', id], `/devices/${encodeURIComponent(id)}/calls?limit=20`)
  if (!calls.data || calls.error) return <QueryState query={calls} what="calls" />
  if (calls.data.items.length === 0) return <p>No calls yet.</p>
  return (
    <Table
      caption={`Last calls to ${id}, newest first`}
      items={calls.data.items}
      columns={callColumns}
      toKey={({ requestId }) => requestId}
    />
  )
}

const callColumns: Column<DeviceCall>[] = [
  { head: 'When', cell: ({ begunAt }) => formatMoment(begunAt) },
  {
    head: 'What',
    cell: ({ capability, rehearse }) => (
      <>
        <code>{capability}</code>
        {rehearse ? ', tried in a copy' : ''}
      </>
    ),
  },
  {
    head: 'Result',
    cell: (call) => `${formatEnd(call)}${call.durationMs === null ? '' : `, ${call.durationMs} ms`}`,
  },
  {
    head: 'Incident',
    cell: ({ incidentId }) => (incidentId ? <Link href={`/incidents/${incidentId}`}>open</Link> : 'none'),
  },
]

function formatEnd({ ok, errorCode, approvalStatus }: DeviceCall): string {
  if (ok === null) return 'not known'
  const leave =
    approvalStatus === 'granted' ? 'with a grant' : approvalStatus === 'auto_approved' ? 'without approval' : ''
  return [ok ? 'done' : (errorCode ?? 'failed'), leave].filter(Boolean).join(', ')
}
