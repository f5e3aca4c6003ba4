import { useState } from 'react'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { ask } from '../api.ts'
import { Choice, forgetDrafts, PersonText, toIsoTime, UntilField, useDraft } from '../fields.tsx'
import { Inert, TextLink } from '../inert.tsx'
import { Confirm } from '../page-frame.tsx'
import { missing } from '../permissions.ts'
import { useSession } from '../session.ts'

type Refused = { incident: ListedIncident; why: string }
/**
 * The result of an action on several incidents: how many succeeded, and the reasons of refusals.
 */
type Outcome = { word: string; done: number; refused: Refused[] }

type SeveralProps = {
  chosen: readonly ListedIncident[]
  /** Sets which incidents stay selected: the refused ones, or none. */
  onLeft(ids: readonly string[]): void
}

/** Acts on several incidents one after the other, so that a refusal does not stop the others. */
export function Several({ chosen, onLeft }: SeveralProps) {
  const { data: session } = useSession()
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const refused = missing(session, 'manage_incident') ?? (chosen.length === 0 ? 'No incident is chosen.' : null)
  const act = async (word: string, path: string, body?: unknown) => {
    const failed: Refused[] = []
    for (const incident of chosen) {
      const asking = { method: 'POST', body } as const
      await ask(`/incidents/${incident.id}/${path}`, asking).catch((error: Error) =>
        failed.push({ incident, why: error.message }),
      )
    }
    setOutcome({ word, done: chosen.length - failed.length, refused: failed })
    onLeft(failed.map(({ incident }) => incident.id))
  }
  const isShown = chosen.length > 0 || outcome !== null
  const leave = () => {
    setOutcome(null)
    onLeft([])
  }
  return (
    <section className={isShown ? 'several' : undefined} aria-label="Chosen incidents">
      {isShown && (
        <div className="row">
          <strong>{chosen.length} chosen</strong>
          <TakeAll chosen={chosen} refused={refused} me={session?.name} run={() => act('taken', 'take')} />
          <ExpectAll chosen={chosen} refused={refused} run={(body) => act('marked as expected', 'expected', body)} />
          <button type="button" className="bare" onClick={leave}>
            Choose none
          </button>
        </div>
      )}
      <div role="status">{outcome && <SaidOutcome {...outcome} />}</div>
    </section>
  )
}

function SaidOutcome({ word, done, refused }: Outcome) {
  return (
    <>
      <p>
        <strong>
          {done} {word}
          {refused.length > 0 && `, ${refused.length} refused and still chosen`}.
        </strong>
      </p>
      <ul>
        {refused.map(({ incident: { id, title }, why }) => (
          <li key={id} className="wraps">
            <TextLink href={`/incidents/${id}`} text={title} />: <Inert text={why} />
          </li>
        ))}
      </ul>
    </>
  )
}

type ActProps = { chosen: readonly ListedIncident[]; refused: string | null }

function TakeAll({ chosen, refused, me, run }: ActProps & { me: string | undefined; run(): Promise<void> }) {
  const others = chosen.filter(({ owner }) => owner !== null && owner.name !== me).length
  return (
    <Confirm button="Take" label="the chosen incidents" title={`Take ${countOf(chosen)}`} refused={refused} run={run}>
      <p>
        The runs end first; if a write is running, its result is still checked. While you have the incidents, the agent
        does not investigate them and nobody is reminded. If you do nothing about an incident for half a day, it is
        given back.
      </p>
      {others > 0 && <p className="tone-act">Somebody else owns {others} of these incidents. You take them over.</p>}
    </Confirm>
  )
}

type Subject = 'alert' | 'resource'
const subjects = [
  ['alert', 'the alert of each incident'],
  ['resource', 'every alert on the resource of each incident'],
] as const

const draft = 'expectation of several'

function ExpectAll({ chosen, refused, run }: ActProps & { run(body: unknown): Promise<void> }) {
  const [subject, setSubject] = useState<Subject>('alert')
  const [until, setUntil] = useState('')
  const [reason, setReason] = useDraft(draft)
  const send = async () => {
    await run({ subject, until: toIsoTime(until), reason: reason.trim() })
    forgetDrafts(draft)
    setReason('')
  }
  return (
    <Confirm
      button="Mark as expected"
      label="the chosen incidents"
      title={`Mark ${countOf(chosen)} as expected`}
      refused={refused}
      run={send}
    >
      <p className="soft">
        The incidents end now. When an alert fires again, code reads the state of its resource. If the state is the same
        as now, the incident ends as expected and nobody is notified. Otherwise the agent investigates.
      </p>
      <Choice name="subject" legend="What is expected?" options={subjects} value={subject} onChange={setSubject} />
      <UntilField id="several-until" label="Until when?" required value={until} onChange={setUntil} />
      <PersonText id="several-reason" label="Why is it expected?" value={reason} onChange={setReason} />
    </Confirm>
  )
}

const countOf = ({ length }: readonly unknown[]) => (length === 1 ? '1 incident' : `${length} incidents`)
