import { type FormEvent, useState } from 'react'
import { ask } from '../api.ts'
import { type Line, lines } from '../differences.ts'
import { ReasonField } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { Failed } from '../states.tsx'
import { forgetSettings, type Shown } from './query.ts'

/** A change over exactly the version that is shown; the server checks the value by the setting's own schema. */
export function Edit({ setting, refused }: { setting: Shown; refused: string | null }) {
  const { name, family, single, stored, secret } = setting
  const [part, setPart] = useState('')
  const key = part ? `${name}.${part}` : name
  const now = stored.find((each) => each.key === key)
  const [value, setValue] = useState<string | null>(null)
  const [reason, setReason] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const [done, setDone] = useState(false)
  const id = `edit-${name}`
  const shownValue = value ?? (secret ? '' : (now?.value ?? ''))

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    setDone(false)
    try {
      await ask(`/config/${encodeURIComponent(key)}`, {
        method: 'PUT',
        ifMatch: `"${now?.version ?? 0}"`,
        body: { value: shownValue, reason: reason.trim() },
      })
      setReason('')
      setValue(null)
      setDone(true)
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
      forgetSettings()
    }
  }
  return (
    <form className="stack tight" onSubmit={submit}>
      <fieldset className="stack tight" disabled={refused !== null || busy}>
        <legend className="strong">Change it</legend>
        {refused && <p>{refused}</p>}
        {family && (
          <>
            <label htmlFor={`${id}-part`}>
              For which {name.startsWith('approval.') ? 'tool' : 'incident type'}
              {single ? ' (empty: for all)' : ''}
            </label>
            <input
              id={`${id}-part`}
              type="text"
              required={!single}
              pattern="[a-z0-9_.]{1,64}"
              value={part}
              onChange={(event) => setPart(event.target.value)}
            />
          </>
        )}
        <label htmlFor={`${id}-value`}>Value</label>
        <textarea
          id={`${id}-value`}
          className="mono"
          rows={name.endsWith('system_prompt') ? 10 : 1}
          required
          maxLength={20_000}
          value={shownValue}
          onChange={(event) => setValue(event.target.value)}
        />
        {value !== null && value !== (now?.value ?? '') && !secret && (
          <div role="status" className="small wraps">
            <Change from={now?.value ?? null} to={value} />
          </div>
        )}
        <ReasonField id={`${id}-reason`} label="Reason, for the history" value={reason} onChange={setReason} />
        {error !== null && <Failed error={error} />}
        <div className="row">
          <button type="submit">Save</button>
          <span role="status">{done && 'Saved: it holds from the next cycle on.'}</span>
        </div>
      </fieldset>
    </form>
  )
}

/** What a value was and what it becomes: beside each other where they are short, else line by line. */
export function Change({ from, to }: { from: string | null; to: string | null }) {
  if (from !== null && to !== null && (from + to).includes('\n')) {
    return (
      <pre className="changes">
        {lines(from, to).map(({ sign, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place
          <Marked key={index} sign={sign} text={`${sign} ${text}`} />
        ))}
      </pre>
    )
  }
  return (
    <span className="changes inline">
      {from === null ? <span className="soft">not set</span> : <Marked sign="-" text={brief(from)} />}{' '}
      {to === null ? <span className="soft">not set</span> : <Marked sign="+" text={brief(to)} />}
    </span>
  )
}

function Marked({ sign, text }: Line) {
  if (sign === ' ') return <Inert text={text} />
  const Element = sign === '-' ? 'del' : 'ins'
  return (
    <Element>
      <span className="visually-hidden">{sign === '-' ? 'was ' : 'becomes '}</span>
      <Inert text={text} />
    </Element>
  )
}

function brief(value: string): string {
  return value.length > 200 ? `${value.slice(0, 199)}…` : value
}
