import { useMutation, useQueries } from '@tanstack/react-query'
import { useState } from 'react'
import { truncate } from '../../domain/format.ts'
import type { SettingRevision, StoredSetting } from '../../domain/setting-row.ts'
import { ask, type ListPage } from '../api.ts'
import { CopyCommand } from '../copy.tsx'
import { type DiffLine, lines } from '../differences.ts'
import { ReasonField, TextArea, TextField } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'
import { Confirm, Failed, PageForm } from '../page-frame.tsx'
import { formatMoment } from '../time.ts'
import { invalidateSettings, type SettingView } from './query.ts'

const unitWords: Record<string, string> = { s: 'in seconds', $: 'in dollars' }

/**
 * Changes exactly the version that is shown. The server checks the value with the schema of the
 * setting.
 */
export function EditSetting({ setting, refused }: { setting: SettingView; refused: string | null }) {
  const { name, stored, secret } = setting
  const [part, setPart] = useState('')
  const key = part ? `${name}.${part}` : name
  const now = stored.find((each) => each.key === key)
  const [typed, setTyped] = useState<string | null>(null)
  const [reason, setReason] = useState('')
  const current = now?.value ?? ''
  const value = typed ?? (secret ? '' : current)
  const { mutate, error, isPending, isSuccess } = useMutation({
    mutationFn: () => {
      const body = { value, reason: reason.trim() }
      return ask(`/config/${encodeURIComponent(key)}`, { method: 'PUT', ifMatch: `"${now?.version ?? 0}"`, body })
    },
    onSuccess: () => {
      setReason('')
      setTyped(null)
    },
    onSettled: invalidateSettings,
  })
  return (
    <PageForm className="stack tight" onSubmit={() => mutate()}>
      <fieldset className="stack tight" disabled={refused !== null || isPending}>
        <legend className="strong">Change it</legend>
        {refused && <p>{refused}</p>}
        {setting.family && <PartField setting={setting} part={part} onChange={setPart} />}
        <TextArea
          id={`edit-${name}-value`}
          label={`Value${setting.unit ? `, ${unitWords[setting.unit] ?? setting.unit}` : ''}`}
          className="mono"
          rows={name.endsWith('system_prompt') ? 10 : 1}
          required
          maxLength={20_000}
          value={value}
          onChange={setTyped}
        />
        {typed !== null && typed !== current && !secret && (
          <div role="status" className="small wraps">
            <Change from={now?.value ?? null} to={typed} />
          </div>
        )}
        <ReasonField id={`edit-${name}-reason`} label="Reason, for the history" value={reason} onChange={setReason} />
        {error !== null && <Failed error={error} />}
        <div className="row">
          <button type="submit">Save</button>
          <span role="status">{isSuccess && 'Saved. The change takes effect at the next cycle.'}</span>
        </div>
        {!secret && (
          <details>
            <summary>As a command</summary>
            <CopyCommand command={toCommand(key, value, reason)} label="the command" />
          </details>
        )}
      </fieldset>
    </PageForm>
  )
}

/** Formats the equivalent terminal command. */
function toCommand(key: string, value: string, reason: string): string {
  const because = reason.trim() ? ` --reason ${quote(reason.trim())}` : ''
  return `nightshift config set ${key} ${quote(value)}${because}`
}

/** Quotes a text as one word for a shell. */
function quote(text: string): string {
  return /^[\w.:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

type PartProps = { setting: SettingView; part: string; onChange(part: string): void }

/** Asks for the part after the dot of a key: an incident type or a tool. */
function PartField({ setting: { name, single }, part, onChange }: PartProps) {
  const kind = name.startsWith('approval.') ? 'tool' : 'incident type'
  return (
    <TextField
      id={`edit-${name}-part`}
      label={`For which ${kind}${single ? ' (empty: for all)' : ''}`}
      required={!single}
      pattern="[a-z0-9_.]{1,64}"
      title="Small letters, digits, dots and underscores, 64 at most."
      value={part}
      onChange={onChange}
    />
  )
}

/** Shows the old and the new value: side by side if they are short, otherwise line by line. */
function Change({ from, to }: { from: string | null; to: string | null }) {
  if (from !== null && to !== null && (from + to).includes('\n')) {
    return (
      <pre className="changes">
        {lines(from, to).map(({ sign, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place
          <ChangedText key={index} sign={sign} text={`${sign} ${text}`} />
        ))}
      </pre>
    )
  }
  return (
    <span className="changes inline">
      {from === null ? <span className="soft">not set</span> : <ChangedText sign="-" text={truncate(from, 200)} />}{' '}
      {to === null ? <span className="soft">not set</span> : <ChangedText sign="+" text={truncate(to, 200)} />}
    </span>
  )
}

export function ChangedText({ sign, text }: DiffLine) {
  if (sign === ' ') return <Inert text={text} />
  const Element = sign === '-' ? 'del' : 'ins'
  return (
    <Element>
      <span className="visually-hidden">{sign === '-' ? 'was ' : 'becomes '}</span>
      <Inert text={text} />
    </Element>
  )
}

/** Lists every change of a setting, newest first, each with a button to restore it. */
export function History({ setting: { stored, secret }, refused }: { setting: SettingView; refused: string | null }) {
  const answers = useQueries({
    queries: stored.map(({ key }) => ({
      queryKey: ['revisions', key],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        ask<ListPage<SettingRevision>>(`/config/${encodeURIComponent(key)}/revisions?limit=20`, { signal }),
    })),
  })
  const changes = stored
    .flatMap((now, index) => {
      const items = answers[index]?.data?.items ?? []
      return items.map((revision) => ({ ...revision, now, isNewest: revision === items[0] }))
    })
    .sort((a, b) => b.at.localeCompare(a.at))
  const failed = answers.find(({ error }) => error)
  return (
    <section className="stack tight" aria-label="History">
      <h2>History</h2>
      {failed && <Failed error={failed.error} isKept={failed.data !== undefined} again={() => void failed.refetch()} />}
      {changes.length === 0 ? (
        <p className="soft">Never changed.</p>
      ) : (
        <ol className="stack">
          {changes.map(({ now, isNewest, version, at, actor, oldValue, newValue, reason }) => (
            <li key={`${now.key}-${version}`} className="small wraps stack tight">
              <div className="row between">
                <span>
                  <strong>version {version}</strong> <span className="soft">{formatMoment(at)}</span>{' '}
                  <Inert text={(actor ?? 'sql').replace(/^user:/, '')} />
                  {stored.length > 1 && (
                    <>
                      {' '}
                      <code>{inertText(now.key)}</code>
                    </>
                  )}
                </span>
                {!isNewest && newValue !== null && (
                  <RollBack
                    now={now}
                    to={{ version, value: newValue }}
                    refused={
                      secret
                        ? 'Nobody can see old values of a secret. To restore an old value, set the value again.'
                        : refused
                    }
                  />
                )}
              </div>
              <Change from={oldValue} to={newValue} />
              {reason && <Inert as="span" text={reason} />}
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

/**
 * Restores the value of an earlier version, by a change like any other, based on the version that
 * is shown.
 */
function RollBack({
  now,
  to,
  refused,
}: {
  now: StoredSetting
  to: { version: number; value: string }
  refused: string | null
}) {
  const [reason, setReason] = useState('')
  const put = async () => {
    await ask(`/config/${encodeURIComponent(now.key)}`, {
      method: 'PUT',
      ifMatch: `"${now.version}"`,
      body: { value: to.value, reason: reason.trim() || `back to version ${to.version}` },
    }).finally(invalidateSettings)
  }
  return (
    <Confirm
      button="Roll back"
      label={`${now.key} to version ${to.version}`}
      title={`Back to version ${to.version}`}
      refused={refused}
      run={put}
    >
      <p>
        <code>{inertText(now.key)}</code>
      </p>
      <Change from={now.value} to={to.value} />
      <TextField
        id={`back-${now.key}-${to.version}`}
        label="Reason, for the history"
        maxLength={500}
        placeholder={`back to version ${to.version}`}
        value={reason}
        onChange={setReason}
      />
    </Confirm>
  )
}
