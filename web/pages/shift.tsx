import type { ShiftView } from '../../domain/shift.ts'
import { useAsk } from '../api.ts'
import { FollowUpPresses, FollowUpWords } from '../follow-up.tsx'
import { Inert, TextLink } from '../inert.tsx'
import { Heading, Nothing, QueryState } from '../page-frame.tsx'

/** Shows the morning card, the hand-over, and open follow-ups, as in messages. */
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
      <Inert as="h2" id={`${id}-title`} text={title} />
      {lines.length > 0 && (
        <ul className="stack tight">
          {lines.map(({ text, path }) => (
            <li key={`${path} ${text}`} className="wraps">
              {path === null ? <Inert text={text} /> : <TextLink href={`/${path}`} text={text} />}
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
              <FollowUpWords followUp={each} /> <FollowUpPresses followUp={each} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
