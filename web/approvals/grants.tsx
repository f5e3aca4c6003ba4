import { useQuery } from '@tanstack/react-query'
import type { StandingGrant } from '../../domain/approval.ts'
import { formatClock } from '../../domain/format.ts'
import { ask, type Page, queryClient } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert, inertText } from '../markdown.tsx'
import { Confirm, QueryState } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { missing, useSession } from '../sign-in.tsx'
import { formatMoment, useNow } from '../time.ts'
import { grantsKey } from './query.ts'

/** What may run again without asking, with a way to end it. Nothing where nothing was ever granted. */
export function Grants() {
  const { data: session } = useSession()
  const now = useNow()
  const grants = useQuery({
    queryKey: grantsKey,
    queryFn: ({ signal }) => ask<Page<StandingGrant>>('/grants', { signal }),
  })
  if (grants.error) return <QueryState query={grants} what="standing grants" />
  const items = grants.data?.items ?? []
  if (items.length === 0) return null
  return (
    <section className="stack tight" aria-labelledby="grants-title">
      <h2 id="grants-title">Standing grants</h2>
      <div className="sheet">
        <Table
          caption="Standing grants, newest first"
          items={items}
          columns={columnsAt(now, missing(session, 'decide'))}
          toKey={({ id }) => id}
          toRowProps={(grant) => ({ className: getEnd(grant, now) ? 'soft' : '' })}
        />
      </div>
    </section>
  )
}

function columnsAt(now: number, refused: string | null): Column<StandingGrant>[] {
  return [
    {
      head: 'May run without asking',
      className: 'wraps',
      cell: (grant) => (
        <>
          <Link href={`/approvals/${grant.approvalId}`}>
            <Inert text={grant.tool} />
          </Link>{' '}
          on <Inert text={formatTargets(grant)} />
        </>
      ),
    },
    {
      head: 'Granted',
      className: 'wide small',
      cell: ({ grantedBy, grantedAt }) => (
        <>
          by <Inert text={grantedBy} />, {formatMoment(grantedAt)}
        </>
      ),
    },
    { head: 'Left', className: 'num nowrap', cell: ({ usesLeft, uses }) => `${usesLeft} of ${uses}` },
    {
      head: 'Until',
      className: 'nowrap',
      cell: (grant) => getEnd(grant, now) ?? `${formatClock(Date.parse(grant.expiresAt) - now)} left`,
    },
    {
      head: '',
      className: 'num',
      cell: (grant) => !getEnd(grant, now) && <Revoke grant={grant} refused={refused} />,
    },
  ]
}

function Revoke({ grant, refused }: { grant: StandingGrant; refused: string | null }) {
  const { id, tool } = grant
  const on = formatTargets(grant)
  const revoke = async () => {
    await ask(`/grants/${id}/revoke`, { method: 'POST' })
    await queryClient.invalidateQueries({ queryKey: grantsKey })
  }
  return (
    <Confirm
      button="Revoke"
      label={`the grant for ${inertText(tool)} on ${inertText(on)}`}
      title="End this standing grant"
      refused={refused}
      run={revoke}
    >
      <p>
        <Inert text={tool} /> on <Inert text={on} /> requires approval again, from now on. What runs already runs on.
      </p>
    </Confirm>
  )
}

function formatTargets({ targets }: StandingGrant): string {
  return targets.map(({ kind, id }) => `${kind} ${id}`).join(', ')
}

/** How it ended; null while it counts. */
function getEnd({ revokedAt, usesLeft, expiresAt }: StandingGrant, now: number): string | null {
  if (revokedAt) return 'revoked'
  if (usesLeft === 0) return 'used up'
  return Date.parse(expiresAt) <= now ? 'over' : null
}
