import { type FormEvent, useState } from 'react'
import type { Incident } from '../../domain/incident.ts'
import { ask } from '../api.ts'
import { useDraft } from '../draft.ts'
import { go } from '../router.tsx'
import { missing, type Session } from '../session.ts'
import { Failed } from '../states.tsx'

/** A question opens a separate incident; its answer is in the timeline, with what it rests on. */
export function AskBox({ session }: { session: Session | null }) {
  const [question, setQuestion] = useDraft('question')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const why = missing(session, 'manage_incident')
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      const opened = await ask<Incident>('/agent', { method: 'POST', body: { question: question.trim() } })
      setQuestion('')
      go(`/incidents/${opened.id}`)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <form onSubmit={submit} className="stack ask-form">
      <div className="ask">
        <input
          type="text"
          aria-label="Ask the agent a question"
          placeholder={why ? 'Only operators may ask' : 'Ask: which host runs vm-osl-3 now?'}
          title={why ?? undefined}
          disabled={why !== null}
          minLength={3}
          maxLength={2000}
          required
          value={question}
          onChange={(event) => setQuestion(event.target.value)}
        />
        <button type="submit" disabled={busy || why !== null} title={why ?? undefined}>
          Ask
        </button>
      </div>
      {error !== null && <Failed error={error} />}
    </form>
  )
}
