import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { formatSpan } from '../../domain/format.ts'
import type { ApiToken } from '../../domain/operator.ts'
import { ask, type Page } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { type Column, DataTable } from '../data-table.tsx'
import { Heading } from '../heading.tsx'
import { Inert, inertText } from '../inert.tsx'
import { queryClient } from '../query-client.ts'
import { type Place, usePlace } from '../router.tsx'
import { Nothing } from '../states.tsx'
import { formatMoment, useNow } from '../time.ts'
import { MintToken } from './mint-token.tsx'

/** What lets people and machines in: never the tokens themselves. */
export function TokensPage({ title }: { title: string }) {
  const place = usePlace()
  const cursor = place.search.get('cursor')
  const tokens = useQuery({
    queryKey: ['tokens', cursor],
    queryFn: ({ signal }) => ask<Page<ApiToken>>(`/tokens?limit=50${cursor ? `&cursor=${cursor}` : ''}`, { signal }),
  })
  return (
    <>
      <header>
        <Heading title={title} />
      </header>
      <div className="stack">
        <MintToken />
        <TokenTable tokens={tokens} place={place} />
      </div>
    </>
  )
}

function TokenTable({ tokens, place }: { tokens: UseQueryResult<Page<ApiToken>>; place: Place }) {
  const now = useNow()
  return (
    <DataTable
      query={tokens}
      what="tokens"
      place={place}
      caption="Tokens, newest first"
      columns={columnsAt(now)}
      toKey={({ id }) => id}
      toRowProps={(token) => ({ className: getEnd(token, now) ? 'soft' : '' })}
      empty={<Nothing title="No tokens.">Mint one above.</Nothing>}
    />
  )
}

function columnsAt(now: number): Column<ApiToken>[] {
  const formatUse = ({ lastUsedAt }: ApiToken) =>
    lastUsedAt ? `${formatSpan(now - Date.parse(lastUsedAt))} ago` : 'never'
  const formatLeft = ({ expiresAt }: ApiToken) =>
    expiresAt ? `in ${formatSpan(Date.parse(expiresAt) - now)}` : 'never'
  return [
    {
      head: 'Token',
      className: 'wraps',
      cell: (token) => (
        <>
          <strong>
            <Inert text={token.name} />
          </strong>
          <div className="small mono">
            {token.kind === 'sign_in' ? 'signed in through a provider' : <Inert text={token.prefix} />}
          </div>
          <div className="under small soft">
            <Inert text={formatHolder(token)} />, used {formatUse(token)}
          </div>
        </>
      ),
    },
    {
      head: 'For',
      className: 'wide wraps',
      cell: (token) => (
        <>
          <Inert text={formatHolder(token)} />
          {token.scopes.length > 0 && (
            <div className="small mono">
              only <Inert text={token.scopes.join(', ')} />
            </div>
          )}
        </>
      ),
    },
    {
      head: 'Last used',
      className: 'wide nowrap',
      hint: ({ lastUsedAt }) => (lastUsedAt ? formatMoment(lastUsedAt) : undefined),
      cell: formatUse,
    },
    {
      head: 'Ends',
      className: 'nowrap',
      hint: ({ expiresAt }) => (expiresAt ? formatMoment(expiresAt) : undefined),
      cell: (token) => getEnd(token, now) ?? formatLeft(token),
    },
    { head: '', className: 'num', cell: (token) => !getEnd(token, now) && <Revoke token={token} /> },
  ]
}

function formatHolder({ role, operator }: ApiToken): string {
  return `${role}${operator ? ` of ${operator}` : ''}`
}

/** How it ended; null while it is good. */
function getEnd({ revokedAt, expiresAt }: ApiToken, now: number): string | null {
  if (revokedAt) return 'revoked'
  return expiresAt && Date.parse(expiresAt) <= now ? 'expired' : null
}

function Revoke({ token: { id, name, prefix } }: { token: ApiToken }) {
  const revoke = async () => {
    await ask(`/tokens/${id}/revoke`, { method: 'POST' })
    await queryClient.invalidateQueries({ queryKey: ['tokens'] })
  }
  return (
    <Confirm button="Revoke" label={inertText(name)} title={`Revoke ${inertText(name)}`} run={revoke}>
      <p>
        <code>
          <Inert text={prefix} />
        </code>{' '}
        lets nobody in any more, and every browser that is signed in with it is signed out. This cannot be taken back.
      </p>
    </Confirm>
  )
}
