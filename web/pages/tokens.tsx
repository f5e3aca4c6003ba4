import { useEffect, useRef, useState } from 'react'
import type { ApiToken, NewApiToken } from '../../domain/api-token.ts'
import { formatSpan } from '../../domain/format.ts'
import type { Role } from '../../domain/permissions.ts'
import { ask, type ListPage, readAgain, useAsk } from '../api.ts'
import { CopyButton, CopyId } from '../copy.tsx'
import { type Column, DataTable } from '../data-table.tsx'
import { SelectField, TextField, toOptions } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'
import { Confirm, Heading, Nothing } from '../page-frame.tsx'
import { allRoles, isOfPeople } from '../permissions.ts'
import { pickSearch, usePlace } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'

const lifetimes = [
  ['1', 'one day'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
  ['', 'never (service accounts only)'],
] as const

type Draft = { name: string; role: Role; operator: string; scopes: string; days: string }

/**
 * Makes a token and shows it once. The token is only in the memory of this page, until it is
 * closed.
 */
function MintToken() {
  const [draft, setDraft] = useState<Draft>({ name: '', role: 'viewer', operator: '', scopes: '', days: '90' })
  const [minted, setMinted] = useState<NewApiToken | null>(null)
  const mint = async () => {
    setMinted(await ask<NewApiToken>('/tokens', { method: 'POST', body: toRequest(draft) }))
    setDraft({ ...draft, name: '', scopes: '' })
    await readAgain(['tokens'])
  }
  return (
    <>
      {minted && <MintedToken name={minted.name} token={minted.token} onDone={() => setMinted(null)} />}
      <div className="row">
        <Confirm button="Create a token" label="" title="Create a token" run={mint}>
          <Fields draft={draft} change={(part) => setDraft({ ...draft, ...part })} />
        </Confirm>
      </div>
    </>
  )
}

function toRequest({ name, role, operator, scopes, days }: Draft) {
  return {
    name: name.trim(),
    role,
    operator: isOfPeople(role) ? operator.trim() || null : null,
    scopes: scopes.split(/[\s,]+/).filter(Boolean),
    expiresInDays: days === '' ? null : Number(days),
  }
}

function Fields({ draft, change }: { draft: Draft; change(part: Partial<Draft>): void }) {
  const { name, role, operator, scopes, days } = draft
  const isPerson = isOfPeople(role)
  return (
    <>
      <TextField
        id="mint-name"
        label="Name: say where you will use it"
        required
        maxLength={64}
        placeholder="anna, laptop"
        value={name}
        onChange={(next) => change({ name: next })}
      />
      <SelectField
        label="Role"
        value={role}
        options={toOptions(allRoles)}
        onChange={(next) => change({ role: next })}
      />
      <TextField
        id="mint-operator"
        label="Owner (empty: you)"
        disabled={!isPerson}
        placeholder={isPerson ? '' : `a token of role ${role} has no owner`}
        value={isPerson ? operator : ''}
        onChange={(next) => change({ operator: next })}
      />
      <TextField
        id="mint-scopes"
        label="Only for these permissions or types (empty: all that the role may)"
        className="mono"
        placeholder="read type:disk_pressure"
        value={scopes}
        onChange={(next) => change({ scopes: next })}
      />
      <SelectField label="Expires after" value={days} options={lifetimes} onChange={(next) => change({ days: next })} />
    </>
  )
}

/** Shows the plain token, only once. */
function MintedToken({ name, token, onDone }: { name: string; token: string; onDone(): void }) {
  const box = useRef<HTMLElement>(null)
  useEffect(() => box.current?.focus(), [])
  return (
    <section className="said good stack tight" aria-label="The new token" tabIndex={-1} ref={box}>
      <p>
        <strong>{name}</strong> is created. The token is shown only once.
      </p>
      <code id="minted-token" className="wraps">
        {token}
      </code>
      <div className="row">
        <CopyButton text={token} label="the token" of="minted-token" />
        <button type="button" onClick={onDone}>
          I have saved it: hide it
        </button>
      </div>
    </section>
  )
}

/** Lists tokens of people and machines, but never the secret tokens themselves. */
export function TokensPage({ title }: { title: string }) {
  const place = usePlace()
  const search = pickSearch(place, ['cursor'], { limit: '50' })
  const tokens = useAsk<ListPage<ApiToken>>(['tokens', search], `/tokens?${search}`)
  const now = useNow()
  return (
    <>
      <Heading title={title} />
      <div className="stack">
        <MintToken />
        <DataTable
          query={tokens}
          what="tokens"
          place={place}
          caption="Tokens, newest first"
          columns={columnsAt(now)}
          toKey={({ id }) => id}
          toRowProps={(token) => ({ className: getEnd(token, now) ? 'soft' : '' })}
          empty={<Nothing title="No tokens.">Create one above.</Nothing>}
        />
      </div>
    </>
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
          <Inert as="strong" text={token.name} />
          <div className="small mono">
            {token.kind === 'sign_in' ? 'signed in through a provider' : <Inert text={token.prefix} />}
          </div>
          <CopyId id={token.id} label={`the id of ${inertText(token.name)}`} />
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
      head: 'Expires',
      className: 'nowrap',
      hint: ({ expiresAt }) => (expiresAt ? formatMoment(expiresAt) : undefined),
      cell: (token) => getEnd(token, now) ?? formatLeft(token),
    },
    { head: '', className: 'num', cell: (token) => !getEnd(token, now) && <Revoke token={token} /> },
  ]
}

function formatHolder({ role, operator }: ApiToken): string {
  return `${role}${operator ? ` (owner: ${operator})` : ''}`
}

/** Returns how a token ended. Null for a valid token. */
function getEnd({ revokedAt, expiresAt }: ApiToken, now: number): string | null {
  if (revokedAt) return 'revoked'
  return expiresAt && Date.parse(expiresAt) <= now ? 'expired' : null
}

function Revoke({ token: { id, name, prefix } }: { token: ApiToken }) {
  const revoke = async () => {
    await ask(`/tokens/${id}/revoke`, { method: 'POST' })
    await readAgain(['tokens'])
  }
  return (
    <Confirm button="Revoke" label={inertText(name)} title={`Revoke ${inertText(name)}`} run={revoke}>
      <p>
        <Inert as="code" text={prefix} /> stops working, and every browser signed in with it is signed out. You cannot
        undo this.
      </p>
    </Confirm>
  )
}
