import type { Approval } from '../../domain/approval.ts'
import { tellConsequences, tellSettled } from '../../domain/told-consequences.ts'
import { Inert } from '../inert.tsx'
import { useNow } from '../now.ts'
import { moment } from '../time.ts'
import { RequestAgain } from './request-again.tsx'

/** What each answer leads to, before anything else on the card; once it is over, what became of the platform. */
export function ConsequencesOf({ approval }: { approval: Approval }) {
  const now = useNow()
  const left = Date.parse(approval.expiresAt) - now
  if (approval.status !== 'pending' || left <= 0) return <Over approval={approval} />
  const { approve, deny, wait } = tellConsequences(approval, moment)
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
        <strong>{tellSettled({ status: isExpired ? 'expired' : status })}</strong>{' '}
        {isExpired && <span className="soft">It could be decided until {moment(expiresAt)}.</span>}
      </p>
      {isExpired && <RequestAgain incidentId={incidentId} />}
    </div>
  )
}
