import { useEffect, useRef, useState } from 'react'
import type { Role } from '../../domain/operator.ts'
import { ask } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { queryClient } from '../query-client.ts'
import { allRoles, isOfPeople } from '../session.ts'

/** Mints a token and shows it, once: it is in this page's memory until it is put away, and nowhere else. */
export function Mint() {
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [operator, setOperator] = useState('')
  const [scopes, setScopes] = useState('')
  const [days, setDays] = useState('90')
  const [minted, setMinted] = useState<{ name: string; token: string } | null>(null)
  const isPerson = isOfPeople(role)

  const mint = async () => {
    const answer = await ask<{ name: string; token: string }>('/tokens', {
      method: 'POST',
      body: {
        ...{ name: name.trim(), role, operator: isPerson ? operator.trim() || null : null },
        scopes: scopes.split(/[\s,]+/).filter(Boolean),
        expiresInDays: days === '' ? null : Number(days),
      },
    })
    setMinted(answer)
    setName('')
    setScopes('')
    await queryClient.invalidateQueries({ queryKey: ['tokens'] })
  }
  return (
    <>
      {minted && <Minted name={minted.name} token={minted.token} onDone={() => setMinted(null)} />}
      <div className="row">
        <Confirm button="Mint a token" label="" title="Mint a token" run={mint}>
          <label htmlFor="mint-name">Name: where it will be used</label>
          <input
            id="mint-name"
            type="text"
            required
            maxLength={64}
            placeholder="anna, laptop"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <label className="row">
            Role
            <select value={role} onChange={(event) => setRole(event.target.value as Role)}>
              {allRoles.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <label htmlFor="mint-operator">Whose (empty: yours)</label>
          <input
            id="mint-operator"
            type="text"
            disabled={!isPerson}
            placeholder={isPerson ? '' : `a token of role ${role} belongs to nobody`}
            value={isPerson ? operator : ''}
            onChange={(event) => setOperator(event.target.value)}
          />
          <label htmlFor="mint-scopes">Only for these permissions or types (empty: all that the role may)</label>
          <input
            id="mint-scopes"
            type="text"
            className="mono"
            placeholder="read type:disk_pressure"
            value={scopes}
            onChange={(event) => setScopes(event.target.value)}
          />
          <label className="row">
            Good for
            <select value={days} onChange={(event) => setDays(event.target.value)}>
              <option value="1">one day</option>
              <option value="30">30 days</option>
              <option value="90">90 days</option>
              <option value="365">a year</option>
              <option value="">ever (machines alone)</option>
            </select>
          </label>
        </Confirm>
      </div>
    </>
  )
}

/** The plain token, this once. */
export function Minted({ name, token, onDone }: { name: string; token: string; onDone(): void }) {
  const box = useRef<HTMLElement>(null)
  const [said, setSaid] = useState('')
  useEffect(() => box.current?.focus(), [])
  const copy = async () => {
    // A page over plain http has no clipboard: the text is selected instead.
    if (!navigator.clipboard) {
      getSelection()?.selectAllChildren(document.getElementById('minted-token') as HTMLElement)
      setSaid('Selected: copy it with your keys.')
      return
    }
    await navigator.clipboard.writeText(token).then(
      () => setSaid('Copied.'),
      () => setSaid('The browser did not let it be copied: select it.'),
    )
  }
  return (
    <section className="said good stack tight" aria-label="The new token" tabIndex={-1} ref={box}>
      <p>
        <strong>{name}</strong> is minted. This is the only time it is shown.
      </p>
      <code id="minted-token" className="wraps">
        {token}
      </code>
      <div className="row">
        <button type="button" onClick={() => void copy()}>
          Copy
        </button>
        <button type="button" onClick={onDone}>
          I have it: put it away
        </button>
        <span role="status">{said}</span>
      </div>
    </section>
  )
}
