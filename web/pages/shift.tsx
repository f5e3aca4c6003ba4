import { useQueryClient } from '@tanstack/react-query'
import { truncate } from '../../domain/format.ts'
import type { FollowUp, ShiftView } from '../../domain/shift.ts'
import { ask, useAsk } from '../api.ts'
import { ReasonField, useDraft } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'
import { Confirm, Heading, Nothing, QueryState } from '../page-frame.tsx'
import { missing } from '../permissions.ts'
import { Link } from '../router.tsx'
import { useSession } from '../session.ts'

/** The morning card, the hand-over, and what is left to do, as messages say them. */
export function ShiftPage({ title }: { title: string }) {
  const shift = useAsk<ShiftView>(['shift'], '/shift')
  return (
    <>
      <Heading title={title} />
      <QueryState query={shift} what="the shift" />
      {shift.data && (
        <div className="stack">
          <Card id="morning" card={shift.data.morning} />
          <Card id="hand-over" card={shift.data.handOver} />
          <FollowUps followUps={shift.data.followUps} />
        </div>
      )}
    </>
  )
}

function Card({ id, card: { title, lines } }: { id: string; card: ShiftView['morning'] }) {
  return (
    <section className="stack tight" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>
        <Inert text={title} />
      </h2>
      {lines.length > 0 && (
        <ul className="stack tight">
          {lines.map(({ text, path }) => (
            <li key={`${path} ${text}`} className="wraps">
              {path === null ? (
                <Inert text={text} />
              ) : (
                <Link href={`/${path}`}>
                  <Inert text={text} />
                </Link>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function FollowUps({ followUps: { count, first } }: Pick<ShiftView, 'followUps'>) {
  return (
    <section className="stack tight" aria-labelledby="follow-ups-title">
      <h2 id="follow-ups-title">
        Follow-ups <span className={count > 0 ? 'count waits' : 'count'}>{count}</span>
      </h2>
      {first.length === 0 ? (
        <Nothing title="No follow-up is open.">An incident that ends as mitigated leaves a follow-up here.</Nothing>
      ) : (
        <ul className="stack tight">
          {first.map((each) => (
            <li key={each.incidentId} className="wraps">
              <FollowUpWords followUp={each} /> <CloseFollowUp followUp={each} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** Its owner, its date, and its incident. */
export function FollowUpWords({
  followUp: { incidentId, title, owner, group, dueOn, isOverdue },
}: {
  followUp: FollowUp
}) {
  return (
    <>
      <Link href={`/incidents/${incidentId}`}>
        <Inert text={title} />
      </Link>
      , <Inert text={owner ?? group ?? 'nobody yet'} />,{' '}
      <span className={isOverdue ? 'tone-broken' : 'soft'}>
        {isOverdue ? `overdue since ${dueOn}` : `due ${dueOn}`}
      </span>
    </>
  )
}

function CloseFollowUp({ followUp: { incidentId, title } }: { followUp: FollowUp }) {
  const { data: session } = useSession()
  const client = useQueryClient()
  const [note, setNote] = useDraft(`follow-up of ${incidentId}`)
  const run = async () => {
    await ask(`/follow-ups/${incidentId}/close`, { method: 'POST', body: { note: note.trim() } })
    setNote('')
  }
  return (
    <Confirm
      button="Close"
      label={`the follow-up of ${truncate(inertText(title), 80)}`}
      title="What was done?"
      refused={missing(session ?? null, 'manage_incident')}
      run={() => run().finally(() => void client.invalidateQueries({ queryKey: ['shift'] }))}
    >
      <ReasonField id={`note-${incidentId}`} label="It stands in the log." value={note} onChange={setNote} />
    </Confirm>
  )
}
