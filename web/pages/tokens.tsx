import { useQuery } from '@tanstack/react-query'
import type { Role } from '../../domain/operator.ts'
import { ask, type Page } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { Heading } from '../heading.tsx'
import { Inert, inertText } from '../inert.tsx'
import { useNow } from '../now.ts'
import { queryClient } from '../query-client.ts'
import { Link, usePlace, withSearch } from '../router.tsx'
import { missing, useSession } from '../session.ts'
import { Failed, Loading, Nothing } from '../states.tsx'
import { moment, span } from '../time.ts'
import { Mint } from './mint.tsx'

type Token = {
  id: string
  name: string
  prefix: string
  kind: 'token' | 'sign_in'
  role: Role
  scopes: string[]
  operator: string | null
  expiresAt: string | null
  lastUsedAt: string | null
  revokedAt: string | null
}

/** What lets people and machines in: never the tokens themselves. */
export function TokensPage() {
  const { data: session } = useSession()
  const refused = missing(session, 'manage_tokens')
  return (
    <>
      <header>
        <Heading title="Tokens" />
      </header>
      {refused ? <p className="said">{refused} Ask an admin for a token.</p> : <Tokens />}
    </>
  )
}

function Tokens() {
  const place = usePlace()
  const cursor = place.search.get('cursor')
  const tokens = useQuery({
    queryKey: ['tokens', cursor],
    queryFn: ({ signal }) => ask<Page<Token>>(`/tokens?limit=50${cursor ? `&cursor=${cursor}` : ''}`, { signal }),
  })
  return (
    <div className="stack">
      <Mint />
      {tokens.error && (
        <Failed error={tokens.error} isKept={tokens.data !== undefined} again={() => void tokens.refetch()} />
      )}
      {tokens.isPending && <Loading what="tokens" />}
      {tokens.data && (
        <div className="sheet">
          {tokens.data.items.length > 0 ? (
            <Table items={tokens.data.items} />
          ) : (
            <Nothing title="No tokens.">Mint one above.</Nothing>
          )}
        </div>
      )}
      <nav className="pager" aria-label="Pages of the list">
        {cursor ? <Link href={withSearch(place, { cursor: null })}>← Newest</Link> : <span />}
        {tokens.data?.nextCursor && <Link href={withSearch(place, { cursor: tokens.data.nextCursor })}>Older →</Link>}
      </nav>
    </div>
  )
}

function Table({ items }: { items: Token[] }) {
  const now = useNow()
  return (
    <table>
      <caption className="visually-hidden">Tokens, newest first</caption>
      <thead>
        <tr>
          <th scope="col">Token</th>
          <th scope="col" className="wide">
            For
          </th>
          <th scope="col" className="wide">
            Last used
          </th>
          <th scope="col">Ends</th>
          <td />
        </tr>
      </thead>
      <tbody>
        {items.map((token) => {
          const used = token.lastUsedAt ? `${span(now - Date.parse(token.lastUsedAt))} ago` : 'never'
          const ended = endOf(token, now)
          const who = `${token.role}${token.operator ? ` of ${token.operator}` : ''}`
          return (
            <tr key={token.id} className={ended ? 'soft' : ''}>
              <td className="wraps">
                <strong>
                  <Inert text={token.name} />
                </strong>
                <div className="small mono">
                  {token.kind === 'sign_in' ? 'signed in through a provider' : <Inert text={token.prefix} />}
                </div>
                <div className="under small soft">
                  <Inert text={who} />, used {used}
                </div>
              </td>
              <td className="wide wraps">
                <Inert text={who} />
                {token.scopes.length > 0 && (
                  <div className="small mono">
                    only <Inert text={token.scopes.join(', ')} />
                  </div>
                )}
              </td>
              <td className="wide nowrap" title={token.lastUsedAt ? moment(token.lastUsedAt) : undefined}>
                {used}
              </td>
              <td className="nowrap" title={token.expiresAt ? moment(token.expiresAt) : undefined}>
                {ended ?? (token.expiresAt ? `in ${span(Date.parse(token.expiresAt) - now)}` : 'never')}
              </td>
              <td className="num">{!ended && <Revoke token={token} />}</td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

function Revoke({ token: { id, name, prefix } }: { token: Token }) {
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

/** How it ended; null while it is good. */
function endOf({ revokedAt, expiresAt }: Token, now: number): string | null {
  if (revokedAt) return 'revoked'
  return expiresAt && Date.parse(expiresAt) <= now ? 'expired' : null
}
