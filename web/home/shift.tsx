import type { ShiftView } from '../../domain/shift.ts'
import { useAsk } from '../api.ts'
import { FollowUpWords } from '../follow-up.tsx'
import { TextLink } from '../inert.tsx'
import { Link } from '../router.tsx'

/** Number of follow-ups shown. The hand-over page shows the rest. */
const shownFollowUps = 3

/** Shows the night as its card describes it, with a link to the hand-over, and open follow-ups. */
export function ShiftLines() {
  const { data: shift } = useAsk<ShiftView>(['shift'], '/shift')
  if (!shift) return null
  const { count, first } = shift.followUps
  return (
    <section className="stack tight" aria-label="Morning and follow-ups">
      <p className="small wraps">
        <TextLink href="/shift" text={shift.morning.title} />
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
