import { useQuery } from '@tanstack/react-query'
import type { Approval } from '../../domain/approval.ts'
import { formatClock } from '../../domain/format.ts'
import { formatAlsoAsked } from '../../domain/format-approval.ts'
import { ask, type Page } from '../api.ts'
import { type Column, Pager, Table } from '../data-table.tsx'
import { useCursorRow } from '../keys.tsx'
import { Inert } from '../markdown.tsx'
import { ApprovalMark, RiskMark } from '../marks.tsx'
import { Failed, Heading, Loading, Nothing } from '../page-frame.tsx'
import { PushDevices } from '../push.tsx'
import { go, Link, usePlace } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'
import { Grants } from './grants.tsx'
import { listKey, usePendingApprovals } from './query.ts'

/** What waits, soonest to expire first; below it what was decided. */
export function ApprovalsPage({ title }: { title: string }) {
  const place = usePlace()
  const cursor = place.search.get('cursor')
  const pending = usePendingApprovals()
  const all = useQuery({
    queryKey: [...listKey, cursor],
    queryFn: ({ signal }) => ask<Page<Approval>>(`/approvals?limit=30${cursor ? `&cursor=${cursor}` : ''}`, { signal }),
  })
  const waiting = listCards(pending.items)
  const known = new Set(pending.items.map(({ id }) => id))
  const earlier = (all.data?.items ?? []).filter(({ id }) => !known.has(id))
  const current = useCursorRow([...waiting, ...earlier], (approval) => go(`/approvals/${approval.id}`))
  const error = pending.error ?? all.error
  return (
    <div className="stack">
      <header>
        <Heading title={title} />
      </header>
      {error && <Failed error={error} again={() => void Promise.all([pending.refetch(), all.refetch()])} />}
      {pending.isPending && <Loading what="approvals" />}
      {pending.data && (
        <section className="sheet" aria-label="Awaiting approval">
          {waiting.length > 0 ? (
            <ApprovalTable items={waiting} current={current} caption="Awaiting approval" />
          ) : (
            <Nothing title="Nothing waits for you.">
              The agent asks before every high-risk write. Leave this page open: the tab counts what waits.
            </Nothing>
          )}
        </section>
      )}
      <PushDevices />
      <Grants />
      {earlier.length > 0 && (
        <section className="stack tight">
          <h2>Earlier</h2>
          <div className="sheet">
            <ApprovalTable items={earlier} current={current} caption="Earlier approvals, newest first" />
          </div>
        </section>
      )}
      <Pager place={place} next={all.data?.nextCursor ?? null} />
    </div>
  )
}

type Listed = Approval & { alsoAsked?: number }

/** Soonest to expire first; what waits on one card is one line, that of the first call. */
function listCards(pending: readonly Approval[]): Listed[] {
  const cards = Map.groupBy(pending, ({ id, askedWith }) => askedWith ?? id)
  const first = [...cards.values()].map((calls) => {
    const lead = calls.find(({ id, askedWith }) => id === askedWith) ?? calls[0]
    return { ...(lead as Approval), alsoAsked: calls.length - 1 }
  })
  return first.sort((a, b) => a.expiresAt.localeCompare(b.expiresAt))
}

function ApprovalTable({ items, current, caption }: { items: Listed[]; current: string | null; caption: string }) {
  const now = useNow()
  return (
    <Table
      caption={caption}
      items={items}
      columns={columnsAt(now)}
      toKey={({ id }) => id}
      toRowProps={({ id }) => ({ id: `row-${id}`, 'data-current': id === current })}
    />
  )
}

function columnsAt(now: number): Column<Listed>[] {
  return [
    {
      head: 'What',
      cell: ({ id, dryRun, tool, requestedAt, alsoAsked }) => (
        <>
          <Link className="title" href={`/approvals/${id}`}>
            <Inert text={dryRun.summary} />
          </Link>
          {formatAlsoAsked(alsoAsked)}
          <div className="small soft">
            <code>
              <Inert text={tool} />
            </code>{' '}
            · requested {formatMoment(requestedAt)}
          </div>
        </>
      ),
    },
    {
      head: 'Risk',
      className: 'wide',
      cell: ({ risk, reversible }) => (
        <>
          <RiskMark risk={risk} />
          <div className="small soft">{reversible ? 'reversible' : 'cannot be undone'}</div>
        </>
      ),
    },
    { head: 'Status', cell: ({ status }) => <ApprovalMark status={status} /> },
    {
      head: 'Decided by',
      className: 'wide',
      cell: ({ decisions }) => decisions.map(({ operator }) => operator).join(', ') || '–',
    },
    {
      head: 'Time left',
      className: 'num nowrap',
      cell: ({ status, expiresAt }) => {
        const left = Date.parse(expiresAt) - now
        return status === 'pending' && left > 0 ? formatClock(left) : '–'
      },
    },
  ]
}
