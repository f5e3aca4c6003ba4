import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Device, DeviceCall } from '../../domain/device.ts'
import { inertText } from '../../domain/inert-text.ts'
import { ask, type Page } from '../api.ts'
import { Heading } from '../heading.tsx'
import { Inert } from '../inert.tsx'
import { Mark } from '../marks.tsx'
import { Link } from '../router.tsx'
import { Failed, Loading, Nothing } from '../states.tsx'
import { moment } from '../time.ts'

type Shown = Device & { tools: string[] }

/** Machines that investigations can reach into: how each is, what it has, and what was last done on it. */
export function DevicesPage() {
  const devices = useQuery({
    queryKey: ['devices'],
    queryFn: ({ signal }) => ask<Page<Shown>>('/devices', { signal }),
    refetchInterval: 30_000,
  })
  return (
    <>
      <header>
        <Heading title="Devices" />
      </header>
      {devices.error && (
        <Failed error={devices.error} isKept={devices.data !== undefined} again={() => void devices.refetch()} />
      )}
      {devices.isPending && <Loading what="devices" />}
      {devices.data?.items.length === 0 && (
        <Nothing title="No machine has an agent yet.">
          <code>nightshift mesh enroll NAME --address URL</code>
        </Nothing>
      )}
      {devices.data?.items.map((device) => (
        <OneDevice key={device.id} device={device} />
      ))}
    </>
  )
}

function OneDevice({ device }: { device: Shown }) {
  const [isOpen, setOpen] = useState(false)
  const { health, healthProblem, healthAt, resource, mode, url, tools, manifestExpiresAt } = device
  const lacking = Object.entries(health?.unavailable ?? {})
  return (
    <section className="sheet device" aria-labelledby={`device-${device.id}`}>
      <h2 id={`device-${device.id}`}>
        <Inert text={device.id} />
      </h2>
      <p>
        <State device={device} />
      </p>
      {healthProblem && (
        <p className="wraps">
          <Inert text={healthProblem} />
        </p>
      )}
      <dl>
        <dt>Stands for</dt>
        <dd>
          {resource.kind} <Inert text={resource.id} />
        </dd>
        <dt>At</dt>
        <dd className="wraps">
          <Inert text={url} />, mode {mode}
        </dd>
        <dt>Asked last</dt>
        <dd>{healthAt ? moment(healthAt) : 'never'}</dd>
        <dt>Reads confined by</dt>
        <dd>{health?.sandbox ?? 'not known yet'}</dd>
        <dt>Journal</dt>
        <dd>
          {health?.journal
            ? `${health.journal.entries} ${health.journal.entries === 1 ? 'entry' : 'entries'}`
            : 'not known yet'}
        </dd>
        <dt>Manifest until</dt>
        <dd>{manifestExpiresAt ? moment(manifestExpiresAt) : 'none yet'}</dd>
        <dt>Root looks with</dt>
        <dd className="wraps">
          {device.terms.root_reads?.length ? <Commands commands={device.terms.root_reads} /> : 'nothing unasked'}
        </dd>
        <dt>Tools</dt>
        <dd className="wraps">{tools.join(', ') || 'none'}</dd>
      </dl>
      {lacking.length > 0 && (
        <details>
          <summary>What it lacks ({lacking.length})</summary>
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

/** Words between spaces; one that holds more than a plain word does stands in quotation marks. */
function Commands({ commands }: { commands: readonly (readonly string[])[] }) {
  const written = commands.map((words) =>
    words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' '),
  )
  return (
    <ul>
      {written.map((command) => (
        <li key={command}>
          <code>
            <Inert text={command} />
          </code>
        </li>
      ))}
    </ul>
  )
}

function State({ device: { revokedAt, enabled, enrolledAt, health, healthProblem } }: { device: Shown }) {
  if (revokedAt) return <Mark shape="cross" tone="quiet" word={`revoked ${moment(revokedAt)}`} />
  if (!enabled) return <Mark shape="bar" tone="quiet" word="switched off" />
  if (!enrolledAt) return <Mark shape="ring" tone="lamp" word="waits to enrol" />
  if (healthProblem) return <Mark shape="triangle" tone="critical" word="does not answer" />
  if (health?.status === 'refusing')
    return (
      <Mark shape="triangle" tone="critical" word={`refuses: ${inertText(health.reason ?? 'no reason given', 300)}`} />
    )
  return health ? (
    <Mark shape="disc" tone="good" word="ready" />
  ) : (
    <Mark shape="ring" tone="quiet" word="not asked yet" />
  )
}

function LastCalls({ id }: { id: string }) {
  const calls = useQuery({
    queryKey: ['device-calls', id],
    queryFn: ({ signal }) => ask<Page<DeviceCall>>(`/devices/${encodeURIComponent(id)}/calls?limit=20`, { signal }),
  })
  if (calls.error)
    return <Failed error={calls.error} isKept={calls.data !== undefined} again={() => void calls.refetch()} />
  if (!calls.data) return <Loading what="calls" />
  if (calls.data.items.length === 0) return <p>Nothing was asked of it yet.</p>
  return (
    <table>
      <caption className="visually-hidden">Last calls to {id}, newest first</caption>
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">What</th>
          <th scope="col">Came to</th>
          <th scope="col">Incident</th>
        </tr>
      </thead>
      <tbody>
        {calls.data.items.map((call) => (
          <tr key={call.requestId}>
            <td>{moment(call.begunAt)}</td>
            <td>
              <code>{call.capability}</code>
              {call.rehearse ? ', tried in a copy' : ''}
            </td>
            <td>
              {cameTo(call)}
              {call.durationMs === null ? '' : `, ${call.durationMs} ms`}
            </td>
            <td>{call.incidentId ? <Link href={`/incidents/${call.incidentId}`}>open</Link> : 'none'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function cameTo({ ok, errorCode, approvalStatus }: DeviceCall): string {
  if (ok === null) return 'not known'
  const leave = approvalStatus === 'granted' ? 'with a grant' : approvalStatus === 'auto_approved' ? 'unasked' : ''
  return [ok ? 'done' : (errorCode ?? 'failed'), leave].filter(Boolean).join(', ')
}
