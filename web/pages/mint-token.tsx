import { useEffect, useRef, useState } from 'react'
import type { NewApiToken, Role } from '../../domain/operator.ts'
import { ask } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { SelectField, TextField, toOptions } from '../fields.tsx'
import { queryClient } from '../query-client.ts'
import { allRoles, isOfPeople } from '../session.ts'

const lifetimes = [
  ['1', 'one day'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
  ['', 'ever (machines alone)'],
] as const

type Draft = { name: string; role: Role; operator: string; scopes: string; days: string }

/** Mints a token and shows it, once: it is in this page's memory until it is put away, and nowhere else. */
export function MintToken() {
  const [draft, setDraft] = useState<Draft>({ name: '', role: 'viewer', operator: '', scopes: '', days: '90' })
  const [minted, setMinted] = useState<NewApiToken | null>(null)
  const mint = async () => {
    setMinted(await ask<NewApiToken>('/tokens', { method: 'POST', body: toRequest(draft) }))
    setDraft({ ...draft, name: '', scopes: '' })
    await queryClient.invalidateQueries({ queryKey: ['tokens'] })
  }
  return (
    <>
      {minted && <MintedToken name={minted.name} token={minted.token} onDone={() => setMinted(null)} />}
      <div className="row">
        <Confirm button="Mint a token" label="" title="Mint a token" run={mint}>
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
        label="Name: where it will be used"
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
        label="Whose (empty: yours)"
        disabled={!isPerson}
        placeholder={isPerson ? '' : `a token of role ${role} belongs to nobody`}
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
      <SelectField label="Good for" value={days} options={lifetimes} onChange={(next) => change({ days: next })} />
    </>
  )
}

/** The plain token, this once. */
function MintedToken({ name, token, onDone }: { name: string; token: string; onDone(): void }) {
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
