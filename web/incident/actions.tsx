import { type FormEvent, useRef, useState } from 'react'
import type { Incident } from '../../domain/incident.ts'
import { ask } from '../api.ts'
import { queryClient } from '../query-client.ts'
import { Failed } from '../states.tsx'
import type { Surroundings } from './query.ts'

type Action = 'resolve' | 'escalate' | 'cancel' | 'investigate'

const words: Record<Action, { button: string; title: string; field: string | null; hint: string }> = {
  resolve: {
    button: 'Resolve',
    title: 'Close this incident as resolved',
    field: 'resolution',
    hint: 'What was wrong, and what was done?',
  },
  escalate: { button: 'Escalate', title: 'Hand it to people', field: 'reason', hint: 'Why can the agent not go on?' },
  cancel: { button: 'Cancel', title: 'Stop the investigation', field: 'reason', hint: 'Why is nothing to be done?' },
  investigate: {
    button: 'Investigate again',
    title: 'Put it before the agent again',
    field: null,
    hint: 'A new attempt begins at the next tick of the queue. You cannot approve its critical actions yourself.',
  },
}

/** What a person can do about an incident. What cannot be done now is shown with its reason, not hidden. */
export function Actions({ incident, actions }: { incident: Incident; actions: Surroundings['actions'] | null }) {
  return (
    <div className="row">
      {(Object.keys(words) as Action[]).map((action) => (
        <ActionButton
          key={action}
          action={action}
          incident={incident}
          refused={actions ? (actions.find((each) => each.action === action)?.refused ?? null) : 'Not known yet.'}
        />
      ))}
    </div>
  )
}

function ActionButton({ action, incident, refused }: { action: Action; incident: Incident; refused: string | null }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [outcome, setOutcome] = useState('repaired')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const { button, title, field, hint } = words[action]

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    const body = field ? { [field]: text.trim(), ...(action === 'resolve' && { outcome }) } : undefined
    try {
      await ask(`/incidents/${incident.id}/${action}`, { method: 'POST', body })
      dialog.current?.close()
      setText('')
      for (const key of ['incident', 'surroundings', 'events']) {
        void queryClient.invalidateQueries({ queryKey: [key, incident.id] })
      }
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  const id = `action-${action}`
  return (
    <>
      <button
        type="button"
        aria-disabled={refused !== null}
        aria-describedby={refused ? `${id}-why` : undefined}
        title={refused ?? undefined}
        onClick={() => refused === null && dialog.current?.showModal()}
      >
        {button}
      </button>
      {refused && (
        <span id={`${id}-why`} className="visually-hidden">
          {refused}
        </span>
      )}
      <dialog ref={dialog} aria-labelledby={`${id}-title`}>
        <form className="stack" onSubmit={submit}>
          <h2 id={`${id}-title`}>{title}</h2>
          {action === 'resolve' && (
            <label className="row">
              It was
              <select value={outcome} onChange={(event) => setOutcome(event.target.value)}>
                <option value="repaired">repaired</option>
                <option value="self_resolved">gone by itself</option>
                <option value="no_fault">no fault</option>
              </select>
            </label>
          )}
          {field ? (
            <>
              <label htmlFor={id}>{hint}</label>
              <textarea
                id={id}
                rows={4}
                required
                minLength={3}
                maxLength={2000}
                value={text}
                onChange={(event) => setText(event.target.value)}
              />
            </>
          ) : (
            <p>{hint}</p>
          )}
          {error !== null && <Failed error={error} />}
          <div className="row">
            <button type="submit" className="main" disabled={busy}>
              {button}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Back
            </button>
          </div>
        </form>
      </dialog>
    </>
  )
}
