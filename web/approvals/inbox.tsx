import { useQuery } from '@tanstack/react-query'
import type { Approval } from '../../domain/approval.ts'
import { ask, type Page } from '../api.ts'
import { Heading } from '../heading.tsx'
import { Inert } from '../inert.tsx'
import { useCursorRow } from '../keys.tsx'
import { ApprovalMark, RiskMark } from '../marks.tsx'
import { useNow } from '../now.ts'
import { go, Link, usePlace, withSearch } from '../router.tsx'
import { Failed, Loading, Nothing } from '../states.tsx'
import { clock, moment } from '../time.ts'
import { Grants } from './grants.tsx'
import { usePendingApprovals } from './pending.ts'

/** What waits, soonest to expire first; below it what was decided. */
export function ApprovalsPage() {
  const place = usePlace()
  const cursor = place.search.get('cursor')
  const pending = usePendingApprovals()
  const all = useQuery({
    queryKey: ['approvals', 'list', cursor],
    queryFn: ({ signal }) => ask<Page<Approval>>(`/approvals?limit=30${cursor ? `&cursor=${cursor}` : ''}`, { signal }),
  })
  const waiting = [...pending.items].sort((a, b) => a.expiresAt.localeCompare(b.expiresAt))
  const known = new Set(waiting.map(({ id }) => id))
  const earlier = (all.data?.items ?? []).filter(({ id }) => !known.has(id))
  const current = useCursorRow([...waiting, ...earlier], (approval) => go(`/approvals/${approval.id}`))
  const error = pending.error ?? all.error
  return (
    <div className="stack">
      <header>
        <Heading title="Approvals" />
      </header>
      {error && <Failed error={error} again={() => void Promise.all([pending.refetch(), all.refetch()])} />}
      {pending.isPending && <Loading what="approvals" />}
      {pending.data && (
        <section className="sheet" aria-label="Waiting for a person">
          {waiting.length > 0 ? (
            <ApprovalTable items={waiting} current={current} caption="Waiting for a person" />
          ) : (
            <Nothing title="Nothing waits for you.">
              The agent asks before every high-risk write. Leave this page open: the tab counts what waits.
            </Nothing>
          )}
        </section>
      )}
      <Grants />
      {earlier.length > 0 && (
        <section className="stack tight">
          <h2>Earlier</h2>
          <div className="sheet">
            <ApprovalTable items={earlier} current={current} caption="Earlier approvals, newest first" />
          </div>
        </section>
      )}
      <nav className="pager" aria-label="Pages of the list">
        {cursor ? <Link href={withSearch(place, { cursor: null })}>← Newest</Link> : <span />}
        {all.data?.nextCursor && <Link href={withSearch(place, { cursor: all.data.nextCursor })}>Older →</Link>}
      </nav>
    </div>
  )
}

function ApprovalTable({ items, current, caption }: { items: Approval[]; current: string | null; caption: string }) {
  const now = useNow()
  return (
    <table>
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col" className="wide">
            Risk
          </th>
          <th scope="col">Status</th>
          <th scope="col" className="wide">
            Decided by
          </th>
          <th scope="col" className="num">
            Time left
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((approval) => {
          const left = Date.parse(approval.expiresAt) - now
          return (
            <tr key={approval.id} id={`row-${approval.id}`} data-current={approval.id === current}>
              <td>
                <Link className="title" href={`/approvals/${approval.id}`}>
                  <Inert text={approval.dryRun.summary} />
                </Link>
                <div className="small soft">
                  <code>
                    <Inert text={approval.tool} />
                  </code>{' '}
                  · asked {moment(approval.requestedAt)}
                </div>
              </td>
              <td className="wide">
                <RiskMark risk={approval.risk} />
                <div className="small soft">{approval.reversible ? 'reversible' : 'cannot be undone'}</div>
              </td>
              <td>
                <ApprovalMark status={approval.status} />
              </td>
              <td className="wide">{approval.decisions.map(({ operator }) => operator).join(', ') || '–'}</td>
              <td className="num nowrap">{approval.status === 'pending' && left > 0 ? clock(left) : '–'}</td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}
