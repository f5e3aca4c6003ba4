import { keepPreviousData, useMutation } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { ExplainedAlert, ReceivedAlert } from '../../domain/alert.ts'
import { alertDialects } from '../../domain/alert-body.ts'
import type { Expectation } from '../../domain/expectation.ts'
import { formatSpan, listLinks } from '../../domain/format.ts'
import { ApiRefusal, ask, type ListPage, readAgain, useAsk } from '../api.ts'
import { DataList } from '../data-table.tsx'
import { AddressFacet, SearchField, SelectField, TextArea, toOptions, useDraft } from '../fields.tsx'
import { AlertDoubts } from '../incident/facts.tsx'
import { Exact, Inert, inertText } from '../inert.tsx'
import { useKeys } from '../keys.tsx'
import { useLive } from '../live.tsx'
import { Fact, Labels, Mark } from '../marks.tsx'
import { Confirm, Failed, Heading, Nothing, PageForm, QueryState, Section } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { Link, pickSearch, usePlace } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'
import { ResourceLink } from './resources.tsx'

const becomes = {
  opens: 'opens an incident',
  repeats: 'repeats an alert of an incident',
  ends: 'ends an alert',
  unproven: 'sets an alert to unknown, because its end proves nothing',
  heartbeat: 'is a heartbeat, whose silence opens an incident',
  nothing: 'does nothing, because it ends an alert that never began',
} as const

/** Shows what would become of a pasted message of an alert sender. Nothing is stored. */
function TryAlert() {
  const [body, setBody] = useDraft('try-alert')
  const [dialect, setDialect] = useState<(typeof alertDialects)[number]>('alertmanager')
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () =>
      ask<{ alerts: ExplainedAlert[]; ignored?: string }>('/alerts/explain', {
        method: 'POST',
        body: { dialect, body },
      }),
  })
  return (
    <details className="try">
      <summary>Try a request body: see what Nightshift would do with it</summary>
      <PageForm className="stack" onSubmit={() => mutate()}>
        <SelectField label="Sender" value={dialect} options={toOptions(alertDialects)} onChange={setDialect} />
        <TextArea
          id="try-alert"
          label="Request body, as the source sends it"
          rows={8}
          required
          value={body}
          onChange={setBody}
        />
        <div className="row">
          <button type="submit" className="button" disabled={isPending}>
            Explain
          </button>
          <span className="soft small">Nothing is stored, and nobody is notified.</span>
        </div>
        {error && <Failed error={error} isKept={false} again={() => mutate()} />}
        {error instanceof ApiRefusal && <Mapping fields={error.errors} />}
        {data?.ignored !== undefined && <p>The request body contains no alert: {inertText(data.ignored)}.</p>}
        {data && <Explained alerts={data.alerts} />}
      </PageForm>
    </details>
  )
}

/** Shows the names that `generic` needs for the fields of an unknown body. */
function Mapping({ fields }: { fields: ApiRefusal['errors'] }) {
  if (fields.length === 0) return null
  return (
    <div className="stack tight">
      <p>The dialect "generic" needs these field names:</p>
      <dl className="facts">
        {fields.map(({ field, message }) => (
          <Fact key={field} name={inertText(field ?? '')} className="wraps">
            <Inert text={message} />
          </Fact>
        ))}
      </dl>
    </div>
  )
}

function Explained({ alerts }: { alerts: ExplainedAlert[] }) {
  return (
    <ul className="things" aria-live="polite">
      {alerts.map((alert, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a body may hold one alert twice
        <li key={at} className="stack tight">
          <Inert as="strong" className="wraps" text={alert.title} />
          <dl className="facts">
            <Fact name="Outcome">
              {becomes[alert.becomes]}
              {alert.incidentId && (
                <>
                  {' '}
                  <Link href={`/incidents/${alert.incidentId}`}>Open</Link>
                </>
              )}
            </Fact>
            <Fact name="Type">
              <code>{alert.type}</code>, {alert.severity}
            </Fact>
            <Fact name="Resource" className="wraps" isWhole>
              {alert.resource ? <ResourceLink name={alert.resource} /> : 'none'} · <Inert text={alert.why} />
            </Fact>
            {alert.groupKey && (
              <Fact name="Group" className="wraps" isWhole>
                <Inert text={alert.groupKey} />
              </Fact>
            )}
            {alert.notes.length > 0 && (
              <Fact name="Note" className="wraps" isWhole>
                <Inert text={alert.notes.join('; ')} />
              </Fact>
            )}
          </dl>
          <Labels texts={alert.tried.map(({ label, name, result }) => `${label}=${name}: ${result}`)} />
        </li>
      ))}
    </ul>
  )
}

const key = ['expectations']

/** Lists expected alerts, each with a button to remove the mark. Empty if there are none. */
function Expectations() {
  const refused = useMissing('manage_incident')
  const now = useNow()
  const marks = useAsk<ListPage<Expectation>>(key, '/expectations')
  useLive(({ kind }) => void (kind === 'noted' && readAgain(key)))
  if (marks.error) return <QueryState query={marks} what="what is expected" />
  const items = (marks.data?.items ?? []).filter(({ inForce, until }) => inForce && Date.parse(until) > now)
  if (items.length === 0) return null
  return (
    <Section className="stack tight expected" id="expected-title" title="Expected">
      <div className="sheet">
        <ul className="things">
          {items.map((mark) => (
            <li key={mark.id} className="row between">
              <MarkText mark={mark} now={now} />
              <Confirm
                button="Take back"
                label={`the mark on ${inertText(mark.about)}`}
                title="Take this mark back"
                refused={refused}
                run={async () => {
                  await ask(`/expectations/${mark.id}/end`, { method: 'POST' })
                  await readAgain(key)
                }}
              >
                <p>
                  From now on the alerts of this mark are handled normally: people are notified and the agent
                  investigates.
                </p>
              </Confirm>
            </li>
          ))}
        </ul>
      </div>
    </Section>
  )
}

const subjects = { alert: 'alert', resource: 'all on', type: 'all of type' }

function MarkText({ mark, now }: { mark: Expectation; now: number }) {
  const { subject, about, until, reason, state, createdBy } = mark
  return (
    <div className="stack tight">
      <div className="row">
        <strong className="wraps">
          {subjects[subject]} <Inert text={about} />
        </strong>
        <span className="soft small" title={formatMoment(until)}>
          {formatSpan(Date.parse(until) - now)} left, by <Inert text={createdBy} />
        </span>
      </div>
      <Inert as="p" className="wraps" text={reason} />
      {typeof state.observed === 'string' && (
        <p className="soft small wraps">
          State when it was marked: <Inert text={state.observed} />
        </p>
      )}
    </div>
  )
}

/**
 * Lists the messages of alert senders and how they were read: why an incident opened, or did not.
 */
export function AlertsPage({ title }: { title: string }) {
  const place = usePlace()
  const field = useRef<HTMLInputElement>(null)
  const search = pickSearch(place, ['status', 'q', 'cursor'], { limit: '50' })
  const alerts = useAsk<ListPage<ReceivedAlert>>(['alerts', search], `/alerts?${search}`, {
    placeholderData: keepPreviousData,
  })
  useKeys({ '/': () => field.current?.focus() })
  useLive(({ kind }) => {
    if (kind === 'alert_received' && !place.search.has('cursor')) void readAgain(['alerts'])
  })
  const isFiltered = Boolean(place.search.get('status')) || place.search.has('q')
  return (
    <>
      <Heading title={title} />
      <Expectations />
      <TryAlert />
      <search className="filters">
        <SearchField place={place} field={field} label="Search names, titles, fingerprints" />
        <AddressFacet place={place} name="status" legend="Status" options={statusOptions} />
      </search>
      <DataList
        query={alerts}
        what="alerts"
        place={place}
        empty={
          <Nothing title={isFiltered ? 'No alert fits these filters.' : 'No alerts yet.'}>
            Point a source at <code>/api/v1/ingest/alertmanager</code> or <code>/api/v1/ingest/generic</code> with a
            token of role ingest.
          </Nothing>
        }
      >
        {(items) => (
          <ul className="things">
            {items.map((alert) => (
              <AlertRow key={alert.id} alert={alert} />
            ))}
          </ul>
        )}
      </DataList>
    </>
  )
}

const marks = {
  firing: { shape: 'triangle', tone: 'ink', word: 'firing' },
  resolved: { shape: 'check', tone: 'proved', word: 'ended' },
  // The state after the sender stopped sending, or ended many alerts at once.
  unknown: { shape: 'ring', tone: 'quiet', word: 'unknown' },
} as const
const unproven = { shape: 'ring', tone: 'ink', word: 'quiet, unproven' } as const
const statusOptions = (['firing', 'resolved', 'unknown'] as const).map((state) => [state, marks[state].word] as const)

function AlertRow({ alert }: { alert: ReceivedAlert }) {
  const now = useNow()
  const { raw, labels, annotations, ...rest } = alert
  return (
    <li>
      <div className="row">
        <Mark {...(alert.status === 'resolved' && alert.endReason ? unproven : marks[alert.status])} />
        <Inert as="strong" className="wraps" text={getTitle(raw) ?? alert.name} />
        <span className="soft small" title={formatMoment(alert.lastSeenAt)}>
          <Inert text={alert.source} /> · {alert.count === 1 ? 'once' : `${alert.count} times`}, last{' '}
          {formatSpan(now - Date.parse(alert.lastSeenAt))} ago
        </span>
        {alert.incidentId ? (
          <Link href={`/incidents/${alert.incidentId}`}>Incident</Link>
        ) : (
          <span className="soft small">orphan: the end arrived before the start</span>
        )}
        <AlertDoubts alert={alert} />
      </div>
      <AlertLinks links={alert.links} />
      <Labels texts={Object.entries(labels).map(([name, value]) => `${name}=${value}`)} />
      <details>
        <summary>Normalised and raw</summary>
        <div className="two-columns">
          <div className="stack tight">
            <h2>Normalised</h2>
            <Exact value={{ ...rest, labels, annotations }} label="Alert as Nightshift stores it" />
          </div>
          <div className="stack tight">
            <h2>As read from the source</h2>
            <Exact value={raw} label="Alert as read from its source" />
          </div>
        </div>
      </details>
    </li>
  )
}

function AlertLinks({ links }: { links: ReceivedAlert['links'] }) {
  const given = listLinks(links)
  if (given.length === 0) return null
  return (
    <p className="row small">
      {given.map(({ word, href }) => (
        <a key={word} href={href} rel="noreferrer" target="_blank">
          {word}
        </a>
      ))}
    </p>
  )
}

function getTitle(raw: unknown): string | null {
  const { title } = (raw ?? {}) as { title?: unknown }
  return typeof title === 'string' ? title : null
}
