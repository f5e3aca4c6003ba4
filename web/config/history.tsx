import { useQueries } from '@tanstack/react-query'
import { useState } from 'react'
import type { SettingRevision, StoredSetting } from '../../domain/setting-row.ts'
import { ask, type Page } from '../api.ts'
import { Inert, inertText } from '../markdown.tsx'
import { Confirm, Failed } from '../page-frame.tsx'
import { formatMoment } from '../time.ts'
import { Change } from './edit.tsx'
import { invalidateSettings, type Setting } from './query.ts'

/** Every change of the stored values of a setting, newest first, each with the way back to it. */
export function History({ setting: { stored, secret }, refused }: { setting: Setting; refused: string | null }) {
  const answers = useQueries({
    queries: stored.map(({ key }) => ({
      queryKey: ['revisions', key],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        ask<Page<SettingRevision>>(`/config/${encodeURIComponent(key)}/revisions?limit=20`, { signal }),
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
                    refused={secret ? 'Old values of a secret are shown to nobody: set it again.' : refused}
                  />
                )}
              </div>
              <Change from={oldValue} to={newValue} />
              {reason && (
                <span>
                  <Inert text={reason} />
                </span>
              )}
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

/** Sets a value to what it was at an earlier version: a change like any other, over exactly the version that is shown. */
export function RollBack({
  now,
  to,
  refused,
}: {
  now: StoredSetting
  to: { version: number; value: string }
  refused: string | null
}) {
  const [reason, setReason] = useState('')
  const id = `back-${now.key}-${to.version}`
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
      <label htmlFor={id}>Reason, for the history</label>
      <input
        id={id}
        type="text"
        maxLength={500}
        placeholder={`back to version ${to.version}`}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
    </Confirm>
  )
}
