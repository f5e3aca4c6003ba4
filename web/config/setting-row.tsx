import { useState } from 'react'
import { Inert, inertText } from '../inert.tsx'
import { moment } from '../time.ts'
import { Edit } from './edit.tsx'
import { History } from './history.tsx'
import type { Shown, Stored } from './query.ts'

const sources = {
  type: 'set for this type',
  global: 'set here',
  environment: 'from the environment',
  default: 'default',
}

export function SettingRow({
  setting,
  refused,
  isTarget,
}: {
  setting: Shown
  refused: string | null
  isTarget: boolean
}) {
  const { name, description, effective, stored, environment, locked } = setting
  const [open, setOpen] = useState(isTarget)
  const why = locked ? `${environment} is set in the environment, which decides.` : refused
  const parts = stored.filter(({ key }) => key !== name)
  const own = stored.find(({ key }) => key === name)
  return (
    <li id={name} aria-current={isTarget ? 'true' : undefined}>
      <div className="setting">
        <div>
          <code className="strong wraps">
            <Inert text={name} />
            {!setting.single && <span className="soft">.…</span>}
          </code>
          <p className="soft small">
            <Inert text={description} />
          </p>
        </div>
        <div className="wraps">
          <Value value={effective?.value ?? setting.fallback} />
          {effective?.problem && <p className="tone-critical small">Passed over: {effective.problem}</p>}
          {parts.map((part) => (
            <p key={part.key} className="small">
              <code>
                <Inert text={part.key.slice(name.length + 1)} />
              </code>{' '}
              <Value value={part.value} />
              {part.problem && <span className="tone-critical"> no effect: {part.problem}</span>}
            </p>
          ))}
        </div>
        <div className="small">
          {locked ? `locked: ${environment} decides` : sources[effective?.source ?? 'default']}
          {effective?.source === 'environment' && !locked && <span className="soft"> ({environment})</span>}
          {own && <LastChange stored={own} />}
        </div>
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Close' : 'Change'}
          <span className="visually-hidden"> {inertText(name)}</span>
        </button>
      </div>
      {open && (
        <div className="two">
          <Edit setting={setting} refused={why} />
          <History setting={setting} refused={why} />
        </div>
      )}
    </li>
  )
}

function Value({ value }: { value: unknown }) {
  if (value === null || value === undefined || value === '') return <span className="soft">not set</span>
  const text = typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : JSON.stringify(value)
  const short = text.length > 120 ? `${text.slice(0, 118)}…` : text
  return (
    <span className="mono">
      <Inert text={short} />
    </span>
  )
}

function LastChange({ stored }: { stored: Stored }) {
  return (
    <p className="soft">
      {moment(stored.updatedAt)} by <Inert text={stored.updatedBy.replace(/^user:/, '')} />
    </p>
  )
}
