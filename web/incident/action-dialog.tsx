import type { ReactNode } from 'react'
import type { Incident } from '../../domain/incident.ts'
import { ask } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { forgetDrafts } from '../draft.ts'
import { queryClient } from '../query-client.ts'

/** A button for something that is done to this incident, with the dialog that asks what it takes. */
export function ActionDialog({
  incident,
  button,
  path,
  title,
  refused,
  body,
  children,
}: {
  incident: Incident
  button: string
  path: string
  title: string
  refused: string | null
  body?(): unknown
  children: ReactNode
}) {
  const run = async () => {
    await ask(`/incidents/${incident.id}/${path}`, { method: 'POST', body: body?.() })
    forgetDrafts(incident.id)
    for (const key of ['incident', 'surroundings', 'events']) {
      void queryClient.invalidateQueries({ queryKey: [key, incident.id] })
    }
    void queryClient.invalidateQueries({ queryKey: ['expectations'] })
  }
  return (
    <Confirm button={button} label="this incident" title={title} refused={refused} run={run}>
      {children}
    </Confirm>
  )
}

/** What a person writes for others to read. */
export function Words({
  id,
  label,
  value,
  required = true,
  onChange,
}: {
  id: string
  label: string
  value: string
  required?: boolean
  onChange(value: string): void
}) {
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        rows={3}
        required={required}
        minLength={3}
        maxLength={required ? 2000 : 1000}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </>
  )
}

/** One of a few, none of them chosen for the person. */
export function Choice<Word extends string>({
  name,
  legend,
  words,
  value,
  onChange,
}: {
  name: string
  legend: string
  words: readonly (readonly [Word, string])[]
  value: Word | null
  onChange(value: Word): void
}) {
  return (
    <fieldset className="stack tight">
      <legend>{legend}</legend>
      <div className="row">
        {words.map(([word, said]) => (
          <label className="choice" key={word}>
            <input
              type="radio"
              name={name}
              required
              value={word}
              checked={value === word}
              onChange={() => onChange(word)}
            />
            {said}
          </label>
        ))}
      </div>
    </fieldset>
  )
}
