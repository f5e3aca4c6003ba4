import { useQuery } from '@tanstack/react-query'
import type { StandingGrant } from '../../domain/approval.ts'
import { ask, type Page } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { Inert, inertText } from '../inert.tsx'
import { useNow } from '../now.ts'
import { queryClient } from '../query-client.ts'
import { Link } from '../router.tsx'
import { missing, useSession } from '../session.ts'
import { Failed } from '../states.tsx'
import { clock, moment } from '../time.ts'

export const grantsKey = ['grants']

/** What may run again without asking, with a way to end it. Nothing where nothing was ever granted. */
export function Grants() {
  const { data: session } = useSession()
  const now = useNow()
  const grants = useQuery({
    queryKey: grantsKey,
    queryFn: ({ signal }) => ask<Page<StandingGrant>>('/grants', { signal }),
  })
  if (grants.error)
    return <Failed error={grants.error} isKept={grants.data !== undefined} again={() => void grants.refetch()} />
  const items = grants.data?.items ?? []
  if (items.length === 0) return null
  const refused = missing(session, 'decide')
  return (
    <section className="stack tight" aria-labelledby="grants-title">
      <h2 id="grants-title">Standing grants</h2>
      <div className="sheet">
        <table>
          <caption className="visually-hidden">Standing grants, newest first</caption>
          <thead>
            <tr>
              <th scope="col">May run without asking</th>
              <th scope="col" className="wide">
                Granted
              </th>
              <th scope="col" className="num">
                Left
              </th>
              <th scope="col">Until</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {items.map((grant) => {
              const ended = endOf(grant, now)
              const on = grant.targets.map(({ kind, id }) => `${kind} ${id}`).join(', ')
              return (
                <tr key={grant.id} className={ended ? 'soft' : ''}>
                  <td className="wraps">
                    <Link href={`/approvals/${grant.approvalId}`}>
                      <Inert text={grant.tool} />
                    </Link>{' '}
                    on <Inert text={on} />
                  </td>
                  <td className="wide small">
                    by <Inert text={grant.grantedBy} />, {moment(grant.grantedAt)}
                  </td>
                  <td className="num nowrap">
                    {grant.usesLeft} of {grant.uses}
                  </td>
                  <td className="nowrap">{ended ?? `${clock(Date.parse(grant.expiresAt) - now)} left`}</td>
                  <td className="num">
                    {!ended && (
                      <Confirm
                        button="Revoke"
                        label={`the grant for ${inertText(grant.tool)} on ${inertText(on)}`}
                        title="End this standing grant"
                        refused={refused}
                        run={async () => {
                          await ask(`/grants/${grant.id}/revoke`, { method: 'POST' })
                          await queryClient.invalidateQueries({ queryKey: grantsKey })
                        }}
                      >
                        <p>
                          <Inert text={grant.tool} /> on <Inert text={on} /> is asked about again, at once. What runs
                          already runs on.
                        </p>
                      </Confirm>
                    )}
                  </td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </section>
  )
}

/** How it ended; null while it counts. */
function endOf({ revokedAt, usesLeft, expiresAt }: StandingGrant, now: number): string | null {
  if (revokedAt) return 'revoked'
  if (usesLeft === 0) return 'used up'
  return Date.parse(expiresAt) <= now ? 'over' : null
}
