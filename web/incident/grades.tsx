import { useMutation } from '@tanstack/react-query'
import type { Incident } from '../../domain/incident.ts'
import {
  type CauseGrade,
  causeGrades,
  type Grade,
  type IncidentTrust,
  type ShadowCard,
  shadowGrades,
  ungradedTypes,
} from '../../domain/trust.ts'
import { ask, readAgain, useAsk } from '../api.ts'
import { Exact, Inert } from '../inert.tsx'
import { Resource } from '../marks.tsx'
import { Failed } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'

/** Asks for grades of the cause that the agent found and of its recorded writes, in one press. */
export function Grades({ incident }: { incident: Incident }) {
  const isGraded = incident.attempt > 0 && !ungradedTypes.includes(incident.type)
  const trust = useAsk<IncidentTrust>(
    ['incident-trust', incident.id, incident.events],
    `/incidents/${incident.id}/trust`,
    {
      enabled: isGraded,
      placeholderData: (before) => before,
    },
  )
  if (!isGraded || !trust.data) return null
  const isClosed = ['resolved', 'escalated', 'cancelled'].includes(incident.status)
  return (
    <>
      {trust.data.shadow.map((card) => (
        <Shadow key={`${card.attempt} ${card.callId}`} incidentId={incident.id} card={card} />
      ))}
      {isClosed && <Cause incident={incident} given={trust.data.cause} />}
    </>
  )
}

const causeWords: Record<CauseGrade, string> = { right: 'Cause right', partly: 'Partly', wrong: 'Wrong' }

function Cause({ incident: { id, attempt }, given }: { incident: Incident; given: IncidentTrust['cause'] }) {
  return (
    <section className="stack tight" aria-label="Was the cause right?">
      <Presses
        incidentId={id}
        grades={causeGrades}
        words={causeWords}
        given={given?.verdict ?? null}
        by={given?.by ?? null}
        toBody={(verdict) => ({ verdict, attempt })}
      />
    </section>
  )
}

const shadowWords = { right: 'Right', wrong: 'Wrong', harmful: 'Would have been harmful' } as const

/**
 * Shows the card that people would have received for a write that was neither requested nor made.
 */
function Shadow({ incidentId, card }: { incidentId: string; card: ShadowCard }) {
  const { callId, attempt, tool, would, targets, summary, risk, grade, gradedBy } = card
  return (
    <section className="said stack tight" aria-label="Recorded in shadow, not carried out">
      <h2>
        {would === 'run' ? 'The agent would have done this without asking' : 'The agent would have asked to do this'}:{' '}
        <Inert text={tool} />
      </h2>
      <Inert as="p" className="wraps" text={summary ?? 'No dry run was made.'} />
      <p className="soft small wraps">
        In shadow mode nobody was asked and nothing ran. The risk is {risk}, on{' '}
        {targets.map((target, at) => (
          <span key={`${target.kind} ${target.id}`}>
            {at > 0 && ', '}
            <Resource resource={target} />
          </span>
        ))}
      </p>
      <details>
        <summary>Exact arguments</summary>
        <Exact value={card.arguments} label={`arguments of ${tool}`} />
      </details>
      <Presses
        incidentId={incidentId}
        grades={shadowGrades}
        words={shadowWords}
        given={grade}
        by={gradedBy}
        toBody={(verdict) => ({ verdict, call: { callId, attempt } })}
      />
    </section>
  )
}

type PressProps<G extends Grade> = {
  incidentId: string
  grades: readonly G[]
  words: Record<G, string>
  given: G | null
  by: string | null
  toBody(verdict: G): object
}

function Presses<G extends Grade>({ incidentId, grades, words, given, by, toBody }: PressProps<G>) {
  const refused = useMissing('manage_incident')
  const { mutate, error, isPending } = useMutation({
    mutationFn: (verdict: G) => ask(`/incidents/${incidentId}/grade`, { method: 'POST', body: toBody(verdict) }),
    onSettled: () => void readAgain(...['incident', 'events', 'incident-trust'].map((key) => [key, incidentId])),
  })
  return (
    <>
      <div className="tools">
        {grades.map((grade) => (
          <button
            type="button"
            key={grade}
            aria-pressed={grade === given}
            disabled={isPending || refused !== null}
            title={refused ?? undefined}
            onClick={() => mutate(grade)}
          >
            {words[grade]}
          </button>
        ))}
        {by !== null && (
          <span className="soft small">
            by <Inert text={by} />
          </span>
        )}
      </div>
      {error !== null && <Failed error={error} />}
    </>
  )
}
