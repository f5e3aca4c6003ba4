import { type FormEvent, useState } from 'react'
import { ask } from '../api.ts'
import { useDraft } from '../draft.ts'
import { Failed } from '../states.tsx'

/** A person's own row in the log. */
export function Note({ incidentId, refused }: { incidentId: string; refused: string | null | undefined }) {
  const [text, setText] = useDraft(`note on ${incidentId}`)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      await ask(`/incidents/${incidentId}/events`, {
        method: 'POST',
        body: { action: 'commented', detail: text.trim() },
      })
      setText('')
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form className="note stack" onSubmit={submit}>
      <label htmlFor="note">Add a note</label>
      <textarea
        id="note"
        rows={2}
        required
        maxLength={2000}
        disabled={Boolean(refused)}
        placeholder={refused ?? 'It stays in the log; the agent reads it only when it is asked again.'}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {error !== null && <Failed error={error} />}
      <div>
        <button type="submit" disabled={busy || Boolean(refused)} title={refused ?? undefined}>
          Add the note
        </button>
      </div>
    </form>
  )
}
