import { ChevronDown } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import type { EscalationCategory, Incident, ResolveOutcome, ReviewVerdict } from '../../domain/incident.ts'
import type { PersonAction, Surroundings } from '../../domain/incident-detail.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { categoryWords, outcomeWords } from '../../domain/status-words.ts'
import { trustLostType } from '../../domain/trust.ts'
import { ask, readAgain } from '../api.ts'
import { Dropdown } from '../dropdown.tsx'
import { Choice, forgetDrafts, PersonText, SelectField, toIsoTime, UntilField, useDraft } from '../fields.tsx'
import { inertText } from '../inert.tsx'
import { Confirm } from '../page-frame.tsx'
import { useSession } from '../session.ts'
import { StopKind } from '../stops.tsx'
import { getRefusal } from './rows.ts'

type EndingProps = { incident: Incident; refused: string | null }
type DialogProps = EndingProps & {
  button: string
  path: string
  title: string
  body?(): unknown
  children: ReactNode
}

/** Shows a button for an action on this incident, with the dialog for its fields. */
export function ActionDialog({ incident, refused, button, path, title, body, children }: DialogProps) {
  const run = async () => {
    await ask(`/incidents/${incident.id}/${path}`, { method: 'POST', body: body?.() })
    forgetDrafts(incident.id)
    const keys = ['incident', 'brief', 'surroundings', 'events'].map((key) => [key, incident.id])
    void readAgain(...keys, ['expectations'])
  }
  return (
    <Confirm button={button} label="this incident" title={title} refused={refused} run={run}>
      {children}
    </Confirm>
  )
}

const outcomes: Exclude<ResolveOutcome, 'expected'>[] = ['repaired', 'self_resolved', 'no_fault']

/** Asks a person for the outcome. Nothing is preselected. */
function Resolve(props: EndingProps) {
  const { incident } = props
  const [outcome, setOutcome] = useState<ResolveOutcome | null>(null)
  const [text, setText] = useDraft(`resolution of ${incident.id}`)
  const options = outcomes.map((each) => [each, outcomeWords[each]] as const)
  return (
    <ActionDialog
      {...props}
      button="Resolve"
      path="resolve"
      title="Close this incident as resolved"
      body={() => ({ outcome, resolution: text.trim() })}
    >
      <Choice name="outcome" legend="What was it?" options={options} value={outcome} onChange={setOutcome} />
      <PersonText id="action-resolve" label="What was wrong, and what was done?" value={text} onChange={setText} />
      {incident.alerts.firing > 0 && (
        <p className="soft">
          The alert still fires. You get one reminder, then the digest lists the incident until the alert ends.
        </p>
      )}
    </ActionDialog>
  )
}

const categoryOptions = [['', 'not said'], ...Object.entries(categoryWords)] as [EscalationCategory | '', string][]

function Escalate(props: EndingProps) {
  const { incident } = props
  const [text, setText] = useDraft(`escalation of ${incident.id}`)
  const [next, setNext] = useDraft(`next step of ${incident.id}`)
  const [category, setCategory] = useState<EscalationCategory | ''>('')
  const body = () => ({
    reason: text.trim(),
    ...(category && { category }),
    ...(next.trim() && { next_step: next.trim() }),
  })
  return (
    <ActionDialog {...props} body={body} button="Escalate" path="escalate" title="Escalate the incident">
      <PersonText id="action-escalate" label="Why can the agent not continue?" value={text} onChange={setText} />
      <PersonText
        id="action-escalate-next"
        label="What should be done first? (optional)"
        required={false}
        value={next}
        onChange={setNext}
      />
      <SelectField label="Kind" value={category} options={categoryOptions} onChange={setCategory} />
      {category === 'mitigated' && <p className="soft">The impact is gone but the cause remains. Nobody is woken.</p>}
    </ActionDialog>
  )
}

function Cancel(props: EndingProps) {
  const { incident } = props
  const [text, setText] = useDraft(`cancellation of ${incident.id}`)
  const [until, setUntil] = useState('')
  const iso = toIsoTime(until)
  return (
    <ActionDialog
      {...props}
      button="Cancel"
      path="cancel"
      title="Stop the investigation"
      body={() => ({ reason: text.trim(), ...(iso && { until: iso }) })}
    >
      <PersonText id="action-cancel" label="Why is there nothing to do?" value={text} onChange={setText} />
      <UntilField
        id="action-cancel-until"
        label="Until when? Empty means one day. Later alerts are investigated."
        required={false}
        value={until}
        onChange={setUntil}
      />
    </ActionDialog>
  )
}

type Subject = 'alert' | 'resource' | 'type'

/**
 * Marks firing alerts as expected until a date. When the alerts fire again, code compares the state
 * with today's, and notifies nobody while they are equal.
 */
function Expect({ incident, hasAlert, refused }: { incident: Incident; hasAlert: boolean; refused: string | null }) {
  const subjects: (readonly [Subject, string])[] = [
    ...(hasAlert ? ([['alert', 'this alert']] as const) : []),
    ...(incident.resource
      ? ([['resource', `every alert on ${incident.resource.kind} ${inertText(incident.resource.id)}`]] as const)
      : []),
    ['type', `all incidents of type ${incident.type}`],
  ]
  const [chosen, setSubject] = useState<Subject | null>(null)
  const [until, setUntil] = useState('')
  const [reason, setReason] = useDraft(`expectation of ${incident.id}`)
  const subject = chosen ?? subjects[0]?.[0] ?? 'type'
  return (
    <ActionDialog
      incident={incident}
      refused={refused}
      button="Mark as expected"
      path="expected"
      title="Mark it as expected"
      body={() => ({ subject, until: toIsoTime(until), reason: reason.trim() })}
    >
      <p className="soft">
        The incident ends now. When the alert fires again, code reads the state of the resource. If the state is the
        same as now, the incident ends as expected and nobody is notified. Otherwise the agent investigates.
      </p>
      <Choice name="subject" legend="What is expected?" options={subjects} value={subject} onChange={setSubject} />
      <UntilField id="expected-until" label="Until when?" required value={until} onChange={setUntil} />
      <PersonText id="expected-reason" label="Why is it expected?" value={reason} onChange={setReason} />
    </ActionDialog>
  )
}

/**
 * The actions of a person on an incident. An action that is not possible is shown with its reason,
 * not hidden.
 */
type ActionProps = {
  incident: Incident
  surroundings: Surroundings | null
  /** Tools of the writes that the agent proposed in this incident. */
  tools: readonly string[]
}

const isOfPeople = ({ type }: Incident) => type === manualChangeType || type === trustLostType

export function Actions({ incident, surroundings, tools }: ActionProps) {
  const { data: session } = useSession()
  const refused = (action: PersonAction) => getRefusal(surroundings, action)
  const isMine = incident.owner !== null && incident.owner.name === session?.name
  return (
    <div className="tools">
      {incident.reviewWantedAt !== null && <Review incident={incident} refused={refused('review')} />}
      {!isMine && <Take incident={incident} refused={refused('take')} />}
      {incident.owner && (
        <ActionDialog
          incident={incident}
          refused={refused('give_back')}
          button="Give back"
          path="give-back"
          title="Give this incident back"
        >
          <p>
            The incident stays escalated. If its alert still fires, the digest lists the incident. If its alert begins
            again, the agent investigates.
          </p>
        </ActionDialog>
      )}
      <Dropdown
        className="actions"
        summary={
          <>
            Actions <ChevronDown aria-hidden="true" />
          </>
        }
      >
        <Resolve incident={incident} refused={refused('resolve')} />
        <Escalate incident={incident} refused={refused('escalate')} />
        <Cancel incident={incident} refused={refused('cancel')} />
        {incident.type !== manualChangeType && (
          <Expect incident={incident} hasAlert={(surroundings?.alerts.length ?? 0) > 0} refused={refused('expected')} />
        )}
        {!isOfPeople(incident) && <StopKind type={incident.type} tools={tools} />}
        {!isOfPeople(incident) && (
          <ActionDialog
            incident={incident}
            refused={refused('investigate')}
            button={incident.status === 'open' ? 'Investigate now' : 'Re-run investigation'}
            path="investigate"
            title="Start an investigation"
          >
            <p>An attempt begins at the queue's next tick. You cannot approve its critical actions yourself.</p>
          </ActionDialog>
        )}
      </Dropdown>
    </div>
  )
}

const verdicts = [
  ['right', 'right'],
  ['wrong', 'wrong'],
] as const

/** Asks another person to review a write that an admin made alone. */
function Review(props: EndingProps) {
  const { incident } = props
  const [verdict, setVerdict] = useState<ReviewVerdict | null>(null)
  const [text, setText] = useDraft(`review of ${incident.id}`)
  return (
    <ActionDialog
      {...props}
      button="Review"
      path="review"
      title="Review a write that one person did alone"
      body={() => ({ verdict, text: text.trim() })}
    >
      <Choice name="verdict" legend="Was the write right?" options={verdicts} value={verdict} onChange={setVerdict} />
      <PersonText id="action-review" label="Your comment" value={text} onChange={setText} />
    </ActionDialog>
  )
}

function Take(props: EndingProps) {
  return (
    <ActionDialog
      {...props}
      button="Take"
      path="take"
      title={props.incident.owner ? 'Take it over' : 'Take this incident'}
    >
      <p>
        The run ends first; if a write is running, its result is still checked. While you have the incident, the agent
        does not investigate it and nobody is reminded. You are notified when its alert fires again or ends. If you do
        nothing about the incident for half a day, it is given back.
      </p>
    </ActionDialog>
  )
}
