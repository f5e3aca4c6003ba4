import { useState } from 'react'
import { truncate } from '../domain/format.ts'
import type { FollowUp } from '../domain/shift.ts'
import { ask, readAgain } from './api.ts'
import { ReasonField, TextField, useDraft } from './fields.tsx'
import { Inert, inertText, TextLink } from './inert.tsx'
import { Confirm } from './page-frame.tsx'
import { useMissing } from './permissions.ts'

type Props = { followUp: FollowUp }

/** Shows the incident, owner and date of a follow-up. */
export function FollowUpWords({ followUp }: Props) {
  const { incidentId, title } = followUp
  return (
    <>
      <TextLink href={`/incidents/${incidentId}`} text={title} />, <FollowUpState followUp={followUp} />
    </>
  )
}

/** Shows the owner, and the date or how it ended. */
export function FollowUpState({ followUp: { owner, group, dueOn, isOverdue, closedAt, closedBy } }: Props) {
  return (
    <>
      <Inert text={owner ?? group ?? 'nobody yet'} />,{' '}
      {closedAt !== null ? (
        <span className="soft">
          closed {closedAt.slice(0, 10)} by <Inert text={closedBy ?? 'nobody'} />
        </span>
      ) : (
        <span className={isOverdue ? 'tone-broken' : 'soft'}>
          {isOverdue ? `overdue since ${dueOn}` : `due ${dueOn}`}
        </span>
      )}
    </>
  )
}

/** Shows the buttons of an open follow-up: another owner or date, and its end. */
export function FollowUpPresses({ followUp }: Props) {
  return (
    <>
      <Change followUp={followUp} /> <Close followUp={followUp} />
    </>
  )
}

const labelOf = ({ title }: FollowUp) => `the follow-up of ${truncate(inertText(title), 80)}`

/** Reads the lists of follow-ups and the incident's page again, whose log has one more row. */
const readListsAgain = (incidentId: string) =>
  void readAgain(['shift'], ['follow-up', incidentId], ['incident', incidentId], ['events', incidentId])

/** The owner (a person, or a name for several people) and a day. */
type Whose = { owner: string; group: string; dueOn: string }

function Change({ followUp }: Props) {
  const { incidentId, dueOn } = followUp
  const refused = useMissing('manage_incident')
  const asItIs = { owner: followUp.owner ?? '', group: followUp.group ?? '', dueOn }
  const [wish, setWish] = useState<Whose>(asItIs)
  const run = async () => {
    const names = (['owner', 'group', 'dueOn'] as const).filter((name) => wish[name] && wish[name] !== asItIs[name])
    const body = Object.fromEntries(names.map((name) => [name, wish[name].trim()]))
    await ask(`/follow-ups/${incidentId}`, { method: 'POST', body })
  }
  const field = (name: keyof Whose) => `${incidentId}-${name}`
  return (
    <Confirm
      button="Change"
      label={labelOf(followUp)}
      title="Who does this follow-up, and until when?"
      refused={refused}
      onOpen={() => setWish(asItIs)}
      run={() => run().finally(() => readListsAgain(incidentId))}
    >
      <TextField
        id={field('owner')}
        label="Person, by name"
        maxLength={100}
        required={wish.group === ''}
        value={wish.owner}
        onChange={(owner) => setWish({ ...wish, owner, group: '' })}
      />
      <TextField
        id={field('group')}
        label="Or a group, as free text"
        maxLength={100}
        value={wish.group}
        onChange={(group) => setWish({ ...wish, group, owner: '' })}
      />
      <TextField
        id={field('dueOn')}
        type="date"
        label="Due"
        required
        value={wish.dueOn}
        onChange={(day) => setWish({ ...wish, dueOn: day })}
      />
    </Confirm>
  )
}

function Close({ followUp }: Props) {
  const { incidentId } = followUp
  const refused = useMissing('manage_incident')
  const [note, setNote] = useDraft(`follow-up of ${incidentId}`)
  const run = async () => {
    await ask(`/follow-ups/${incidentId}/close`, { method: 'POST', body: { note: note.trim() } })
    setNote('')
  }
  return (
    <Confirm
      button="Close"
      label={labelOf(followUp)}
      title="What was done?"
      refused={refused}
      run={() => run().finally(() => readListsAgain(incidentId))}
    >
      <ReasonField
        id={`${incidentId}-note`}
        label="Your answer is recorded in the log."
        value={note}
        onChange={setNote}
      />
    </Confirm>
  )
}
