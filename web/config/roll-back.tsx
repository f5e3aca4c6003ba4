import { useState } from 'react'
import { ask } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { inertText } from '../inert.tsx'
import { Change } from './change.tsx'
import { forgetSettings, type Stored } from './query.ts'

/** Sets a value to what it was at an earlier version: a change like any other, over exactly the version that is shown. */
export function RollBack({
  now,
  to,
  refused,
}: {
  now: Stored
  to: { version: number; value: string }
  refused: string | null
}) {
  const [reason, setReason] = useState('')
  const id = `back-${now.key}-${to.version}`
  const put = async () => {
    await ask(`/config/${encodeURIComponent(now.key)}`, {
      method: 'PUT',
      ifMatch: `"${now.version}"`,
      body: { value: to.value, reason: reason.trim() || `back to version ${to.version}` },
    }).finally(forgetSettings)
  }
  return (
    <Confirm
      button="Roll back"
      label={`${now.key} to version ${to.version}`}
      title={`Back to version ${to.version}`}
      refused={refused}
      run={put}
    >
      <p>
        <code>{inertText(now.key)}</code>
      </p>
      <Change from={now.value} to={to.value} />
      <label htmlFor={id}>Reason, for the history</label>
      <input
        id={id}
        type="text"
        maxLength={500}
        placeholder={`back to version ${to.version}`}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
    </Confirm>
  )
}
