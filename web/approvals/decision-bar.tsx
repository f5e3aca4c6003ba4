import { useMutation, useQuery } from '@tanstack/react-query'
import type { Approval } from '../../domain/approval.ts'
import { formatClock } from '../../domain/format.ts'
import { formatApprovalEnd, formatConsequences } from '../../domain/format-approval.ts'
import type { Surroundings } from '../../domain/incident-detail.ts'
import { ask, queryClient } from '../api.ts'
import { getRefusal } from '../incident/rows.ts'
import { Inert } from '../markdown.tsx'
import { RiskMark } from '../marks.tsx'
import { Confirm } from '../page-frame.tsx'
import { go, Link } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'
import { invalidateApproval } from './query.ts'

/** Always in sight: how long there is, how risky it is, and the way to each decision. Nothing here decides by itself. */
export function DecisionBar({
  approval,
  chosen,
  refused,
  isArmed,
  onDeny,
  onApprove,
}: {
  approval: Approval
  /** How many calls of the card the decision is for. */
  chosen: number
  /** Why this person may not decide; null when they may. */
  refused: string | null
  isArmed: boolean
  onDeny(): void
  onApprove(): void
}) {
  const left = Date.parse(approval.expiresAt) - useNow()
  const isOff = refused !== null || chosen === 0
  const count = chosen > 1 ? ` ${chosen}` : ''
  return (
    <section className="decision-bar" aria-label="Decide">
      <div className="row">
        <span title={`until ${formatMoment(approval.expiresAt)}`}>
          <strong className="countdown">{formatClock(left)}</strong> left
        </span>
        <RiskMark risk={approval.risk} />
        <span className={approval.reversible ? 'soft' : 'tone-critical strong'}>
          {approval.reversible ? 'reversible' : 'cannot be undone'}
        </span>
      </div>
      <div className="row buttons">
        <button type="button" disabled={isOff} onClick={onDeny}>
          Deny{count}…
        </button>
        <button
          type="button"
          className="main"
          disabled={isOff}
          aria-disabled={isArmed}
          onClick={() => !isArmed && onApprove()}
        >
          Approve{count}…
        </button>
        <MoreTime approval={approval} refused={refused} />
      </div>
    </section>
  )
}

function MoreTime({ approval, refused }: { approval: Approval; refused: string | null }) {
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask(`/approvals/${approval.id}/extend`, { method: 'POST' }),
    onSettled: () => invalidateApproval(approval.id),
  })
  return (
    <>
      <button
        type="button"
        className="small"
        disabled={isPending || refused !== null}
        title="At most until four hours after the request"
        onClick={() => mutate()}
      >
        +15 minutes
      </button>
      {error && (
        <span className="small tone-critical" role="alert">
          {error.message}
        </span>
      )}
    </>
  )
}

/** What each answer leads to, before anything else on the card; once it is over, what became of the platform. */
export function ConsequencesOrEnd({ approval }: { approval: Approval }) {
  const now = useNow()
  const left = Date.parse(approval.expiresAt) - now
  if (approval.status !== 'pending' || left <= 0) return <Over approval={approval} />
  const { approve, deny, wait } = formatConsequences(approval, formatMoment)
  const lines: [string, string][] = [
    ['If you approve', approve],
    ['If you deny', deny],
    ['If you do nothing', wait],
  ]
  return (
    <dl className="consequences">
      {lines.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className="wraps">
            <Inert text={text} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Over({ approval }: { approval: Approval }) {
  const { status, expiresAt, incidentId } = approval
  const isExpired = status === 'expired' || status === 'pending'
  return (
    <div className={`said stack tight ${isExpired ? 'wrong' : ''}`} role="status">
      <p>
        <strong>{formatApprovalEnd({ status: isExpired ? 'expired' : status })}</strong>{' '}
        {isExpired && <span className="soft">It could be decided until {formatMoment(expiresAt)}.</span>}
      </p>
      {isExpired && <RequestAgain incidentId={incidentId} />}
    </div>
  )
}

/**
 * Asks for an expired action again. What was approved must be what is true now, so the agent looks again and asks only if the
 * action is still needed.
 */
function RequestAgain({ incidentId }: { incidentId: string }) {
  const surroundings = useQuery({
    queryKey: ['surroundings', incidentId],
    queryFn: ({ signal }) => ask<Surroundings>(`/incidents/${incidentId}/surroundings`, { signal }),
  })
  const refused = getRefusal(surroundings.data ?? null, 'investigate')
  const run = async () => {
    await ask(`/incidents/${incidentId}/investigate`, { method: 'POST' })
    await queryClient.invalidateQueries({ queryKey: ['incident', incidentId] })
    void queryClient.invalidateQueries({ queryKey: ['surroundings', incidentId] })
    go(`/incidents/${incidentId}`)
  }
  return (
    <div className="row">
      <Confirm button="Request again" label="this action" title="Request it again" refused={refused} run={run}>
        <p>
          The agent investigates again from the start. If the action is still needed, it makes a new dry run and asks
          again. You cannot approve critical actions of an investigation that you started.
        </p>
      </Confirm>
      <Link href={`/incidents/${incidentId}`}>See the incident</Link>
    </div>
  )
}
