import type { ShiftView } from '../../domain/shift.ts'
import { useAsk } from '../api.ts'
import { FollowUpWords } from '../follow-up.tsx'
import { Inert } from '../inert.tsx'
import { Link } from '../router.tsx'

/** The rest stands on the page of the hand-over. */
const shownFollowUps = 3

/** The night in the words of its card, which leads to the hand-over, and what is left to do. */
export function ShiftLines() {
  const { data: shift } = useAsk<ShiftView>(['shift'], '/shift')
  if (!shift) return null
  const { count, first } = shift.followUps
  return (
    <section className="stack tight" aria-label="Morning and follow-ups">
      <p className="small wraps">
        <Link href="/shift">
          <Inert text={shift.morning.title} />
        </Link>
      </p>
      {count > 0 && (
        <ul className="stack tight small" aria-label="Follow-ups">
          {first.slice(0, shownFollowUps).map((each) => (
            <li key={each.incidentId} className="wraps">
              Follow-up: <FollowUpWords followUp={each} />
            </li>
          ))}
          {count > shownFollowUps && (
            <li>
              <Link href="/shift">{count - shownFollowUps} more</Link>
            </li>
          )}
        </ul>
      )}
    </section>
  )
}
