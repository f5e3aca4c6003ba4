import { useMutation } from '@tanstack/react-query'
import type { FormEvent } from 'react'
import type { Incident } from '../domain/incident.ts'
import { ask } from './api.ts'
import { useDraft } from './fields.tsx'
import { Failed } from './page-frame.tsx'
import { missing } from './permissions.ts'
import { navigate } from './router.tsx'
import type { BrowserSession } from './session.ts'

/** A question opens a separate incident; its answer is in the timeline, with what it rests on. */
export function AskBox({ session }: { session: BrowserSession | null }) {
  const [question, setQuestion] = useDraft('question')
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask<Incident>('/agent', { method: 'POST', body: { question: question.trim() } }),
    onSuccess: ({ id }) => {
      setQuestion('')
      navigate(`/incidents/${id}`)
    },
  })
  const why = missing(session, 'manage_incident')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
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
        <button type="submit" disabled={isPending || why !== null} title={why ?? undefined}>
          Ask
        </button>
      </div>
      {error !== null && <Failed error={error} />}
    </form>
  )
}
