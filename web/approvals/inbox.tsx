import type { Approval } from '../../domain/approval.ts'
import { formatClock } from '../../domain/format.ts'
import { formatAlsoAsked, formatReversible } from '../../domain/format-approval.ts'
import type { StandingGrant } from '../../domain/grant.ts'
import { ask, type ListPage, readAgain, useAsk } from '../api.ts'
import { type Column, Pager, Table } from '../data-table.tsx'
import { Inert, inertText, TextLink } from '../inert.tsx'
import { useCursorRow } from '../keys.tsx'
import { ApprovalMark, RiskMark } from '../marks.tsx'
import { Confirm, Failed, Heading, Loading, Nothing, QueryState, Section } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { PushDevices } from '../push.tsx'
import { navigate, pickSearch, usePlace } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'
import { grantsKey, listKey, usePendingApprovals } from './query.ts'

/** Lists standing grants, each with a button to end it. Empty if there are none. */
function Grants() {
  const now = useNow()
  const refused = useMissing('decide')
  const grants = useAsk<ListPage<StandingGrant>>(grantsKey, '/grants')
  if (grants.error) return <QueryState query={grants} what="standing grants" />
  const items = grants.data?.items ?? []
  if (items.length === 0) return null
  return (
    <Section className="stack tight" id="grants-title" title="Standing grants">
      <div className="sheet">
        <Table
          caption="Standing grants, newest first"
          items={items}
          columns={grantColumnsAt(now, refused)}
          toKey={({ id }) => id}
          toRowProps={(grant) => ({ className: getEnd(grant, now) ? 'soft' : '' })}
        />
      </div>
    </Section>
  )
}

function grantColumnsAt(now: number, refused: string | null): Column<StandingGrant>[] {
  return [
    {
      head: 'May run without asking',
      className: 'wraps',
      cell: (grant) => (
        <>
          <TextLink href={`/approvals/${grant.approvalId}`} text={grant.tool} /> on{' '}
          <Inert text={formatTargets(grant)} />
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
    await readAgain(grantsKey)
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
        <Inert text={tool} /> on <Inert text={on} /> requires approval again from now on. A run under way is not
        stopped.
      </p>
    </Confirm>
  )
}

function formatTargets({ targets }: StandingGrant): string {
  return targets.map(({ kind, id }) => `${kind} ${id}`).join(', ')
}

/** Returns how a grant ended. Null for a valid grant. */
function getEnd({ revokedAt, usesLeft, expiresAt }: StandingGrant, now: number): string | null {
  if (revokedAt) return 'revoked'
  if (usesLeft === 0) return 'used up'
  return Date.parse(expiresAt) <= now ? 'over' : null
}

/** Lists pending approvals, the soonest to expire first, and below them the decided ones. */
export function ApprovalsPage({ title }: { title: string }) {
  const place = usePlace()
  const search = pickSearch(place, ['cursor'], { limit: '30' })
  const pending = usePendingApprovals()
  const all = useAsk<ListPage<Approval>>([...listKey, search], `/approvals?${search}`)
  const waiting = listCards(pending.items)
  const known = new Set(pending.items.map(({ id }) => id))
  const earlier = (all.data?.items ?? []).filter(({ id }) => !known.has(id))
  const current = useCursorRow([...waiting, ...earlier], (approval) => navigate(`/approvals/${approval.id}`))
  const error = pending.error ?? all.error
  return (
    <div className="stack">
      <Heading title={title} />
      {error && <Failed error={error} again={() => void Promise.all([pending.refetch(), all.refetch()])} />}
      {pending.isPending && <Loading what="approvals" />}
      {pending.data && (
        <section className="sheet" aria-label="Awaiting approval">
          {waiting.length > 0 ? (
            <ApprovalTable items={waiting} current={current} caption="Awaiting approval" />
          ) : (
            <Nothing title="Nothing waits for you.">
              The agent asks before every high-risk write. Leave this page open: its tab shows how many approvals wait.
            </Nothing>
          )}
        </section>
      )}
      <PushDevices />
      <Grants />
      {earlier.length > 0 && (
        <Section className="stack tight" title="Earlier">
          <div className="sheet">
            <ApprovalTable items={earlier} current={current} caption="Earlier approvals, newest first" />
          </div>
        </Section>
      )}
      <Pager place={place} next={all.data?.nextCursor ?? null} />
    </div>
  )
}

type Listed = Approval & { alsoAsked?: number }

/**
 * Lists cards, the soonest to expire first. All calls of one card are one line, which is that of
 * the first call.
 */
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
          <TextLink className="title" href={`/approvals/${id}`} text={dryRun.summary} />
          {formatAlsoAsked(alsoAsked)}
          <div className="small soft">
            <Inert as="code" text={tool} /> · requested {formatMoment(requestedAt)}
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
          <div className="small soft">{formatReversible(reversible)}</div>
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
