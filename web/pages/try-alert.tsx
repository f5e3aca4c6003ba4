import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { ExplainedAlert } from '../../domain/alert.ts'
import { ask } from '../api.ts'
import { SelectField, TextArea, useDraft } from '../fields.tsx'
import { Inert } from '../markdown.tsx'
import { Fact } from '../marks.tsx'
import { Failed } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { ResourceLink } from './resources.tsx'

const dialects = ['alertmanager', 'grafana', 'generic'] as const

const becomes = {
  opens: 'opens an incident',
  repeats: 'repeats an alert of an incident',
  ends: 'ends an alert',
  heartbeat: 'is a heartbeat: its silence opens an incident',
  nothing: 'does nothing: it ends what never began',
} as const

/** Paste what a source would send, and see what would become of it. Nothing is stored. */
export function TryAlert() {
  const [body, setBody] = useDraft('try-alert')
  const [dialect, setDialect] = useState<(typeof dialects)[number]>('alertmanager')
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => ask<{ alerts: ExplainedAlert[] }>('/alerts/explain', { method: 'POST', body: { dialect, body } }),
  })
  return (
    <details className="try">
      <summary>Try a body: what would become of it</summary>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          mutate()
        }}
      >
        <SelectField
          label="Sender"
          value={dialect}
          options={dialects.map((each) => [each, each] as const)}
          onChange={setDialect}
        />
        <TextArea
          id="try-alert"
          label="Body, as the source sends it"
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
        {data && <Explained alerts={data.alerts} />}
      </form>
    </details>
  )
}

function Explained({ alerts }: { alerts: ExplainedAlert[] }) {
  return (
    <ul className="things" aria-live="polite">
      {alerts.map((alert, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a body may hold one alert twice
        <li key={at} className="stack tight">
          <strong className="wraps">
            <Inert text={alert.title} />
          </strong>
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
          <p className="labels">
            {alert.tried.map(({ label, name, result }) => (
              <code key={`${label} ${name}`}>
                <Inert text={`${label}=${name}: ${result}`} />
              </code>
            ))}
          </p>
        </li>
      ))}
    </ul>
  )
}
