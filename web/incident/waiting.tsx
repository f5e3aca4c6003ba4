import { usePendingApprovals } from '../approvals/pending.ts'
import { Inert } from '../inert.tsx'
import { useNow } from '../now.ts'
import { Link } from '../router.tsx'
import { clock } from '../time.ts'

/** What this incident waits for, first thing on its page. */
export function Waiting({ incidentId }: { incidentId: string }) {
  const now = useNow()
  const { items } = usePendingApprovals()
  const approval = items.find((each) => each.incidentId === incidentId)
  if (!approval) return null
  return (
    <p className="said lamp row">
      <strong>
        Waits for a person: <Inert text={approval.dryRun.summary} />
      </strong>
      <span>{clock(Date.parse(approval.expiresAt) - now)} left</span>
      <Link href={`/approvals/${approval.id}`}>Look and decide</Link>
    </p>
  )
}
