import { useRef, useState } from 'react'
import type { ApprovalDetail } from '../../domain/approval.ts'
import { type Change, changes } from '../differences.ts'
import { useDraft } from '../draft.ts'
import { ReasonField } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { mustType } from './approve.tsx'
import { SecondPress } from './second-press.tsx'

type Edited = { args: Record<string, unknown>; reason: string }

/** Approves with other arguments: exactly what changes is shown while one types, and again before the second press. */
export function Edit({
  approval,
  disabled,
  onEdit,
}: {
  approval: ApprovalDetail
  disabled: boolean
  onEdit(edited: Edited): void
}) {
  const [open, setOpen] = useState(false)
  const [armed, setArmed] = useState(false)
  const [text, setText] = useState(() => JSON.stringify(approval.arguments, null, 2))
  const [reason, setReason] = useDraft(`edit of ${approval.id}`)
  const opener = useRef<HTMLButtonElement>(null)
  const read = argumentsIn(text)
  const made = read.ok ? changes(approval.arguments, read.value) : []
  const ready = read.ok && made.length > 0
  const focusOpener = () => requestAnimationFrame(() => opener.current?.focus())

  if (!open) {
    return (
      <div className="stack tight">
        <p className="soft">The changed call is judged and dry-run like any other, and asked again with your vote.</p>
        <div>
          <button type="button" disabled={disabled} onClick={() => setOpen(true)}>
            Edit the arguments…
          </button>
        </div>
      </div>
    )
  }
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        if (ready) setArmed(true)
      }}
    >
      <fieldset className="stack tight" disabled={disabled || armed}>
        <label htmlFor="edit-arguments">Arguments, as JSON</label>
        <textarea
          id="edit-arguments"
          className="mono grows"
          rows={4}
          spellCheck={false}
          // biome-ignore lint/a11y/noAutofocus: the press on Edit asked for exactly this field
          autoFocus
          value={text}
          aria-describedby="edit-changes"
          onChange={(event) => setText(event.target.value)}
        />
        <div id="edit-changes" role="status" className="small">
          {!read.ok && <p className="tone-critical">{read.problem}</p>}
          {read.ok && made.length === 0 && <p className="soft">Nothing is changed yet.</p>}
          {made.length > 0 && <Changes made={made} />}
        </div>
        <ReasonField id="edit-reason" label="Why, for the log" value={reason} onChange={setReason} />
      </fieldset>
      {armed && read.ok ? (
        <SecondPress
          button="Yes, approve these"
          mustType={mustType(approval)}
          disabled={disabled}
          onYes={() => onEdit({ args: read.value, reason: reason.trim() })}
          onBack={() => {
            setArmed(false)
            focusOpener()
          }}
        >
          <strong>
            Really: {made.length === 1 ? 'this change' : `these ${made.length} changes`} to{' '}
            <Inert text={approval.tool} />?
          </strong>{' '}
          This approval is withdrawn, the changed call is asked again, and your vote is in it. Where one person is
          enough, it is done at once.
        </SecondPress>
      ) : (
        <div className="row">
          <button type="submit" ref={opener} disabled={disabled || !ready}>
            Approve with these…
          </button>
          <button
            type="button"
            onClick={() => {
              setOpen(false)
              setText(JSON.stringify(approval.arguments, null, 2))
            }}
          >
            Leave it as it is
          </button>
        </div>
      )}
    </form>
  )
}

/** What stood there, struck through, and what stands there now. */
export function Changes({ made }: { made: Change[] }) {
  return (
    <ul className="changes">
      {made.map(({ path, from, to }) => (
        <li key={path} className="wraps">
          <code>
            <Inert text={path || 'everything'} />
          </code>{' '}
          {from !== undefined && (
            <del>
              <span className="visually-hidden">was </span>
              <Inert text={JSON.stringify(from)} />
            </del>
          )}{' '}
          {to !== undefined ? (
            <ins>
              <span className="visually-hidden">becomes </span>
              <Inert text={JSON.stringify(to)} />
            </ins>
          ) : (
            <span className="soft">left out</span>
          )}
        </li>
      ))}
    </ul>
  )
}

function argumentsIn(text: string): { ok: true; value: Record<string, unknown> } | { ok: false; problem: string } {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { ok: true, value: value as Record<string, unknown> }
    }
    return { ok: false, problem: 'Arguments are an object: { "name": value }.' }
  } catch (error) {
    return { ok: false, problem: `Not JSON yet: ${(error as Error).message}` }
  }
}
