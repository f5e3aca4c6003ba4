import { useQueries } from '@tanstack/react-query'
import { ask, type Page } from '../api.ts'
import { Inert } from '../inert.tsx'
import { Failed } from '../states.tsx'
import { moment } from '../time.ts'

type Revision = {
  version: number
  oldValue: string | null
  newValue: string | null
  actor: string | null
  reason: string | null
  at: string
}

/** Every change of the stored values of a setting, newest first. */
export function History({ keys }: { keys: string[] }) {
  const answers = useQueries({
    queries: keys.map((key) => ({
      queryKey: ['revisions', key],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        ask<Page<Revision>>(`/config/${encodeURIComponent(key)}/revisions?limit=20`, { signal }),
    })),
  })
  const changes = answers
    .flatMap(({ data }, index) => (data?.items ?? []).map((revision) => ({ ...revision, key: keys[index] ?? '' })))
    .sort((a, b) => b.at.localeCompare(a.at))
  const failed = answers.find(({ error }) => error)
  return (
    <section className="stack tight" aria-label="History">
      <h2>History</h2>
      {failed && <Failed error={failed.error} again={() => void failed.refetch()} />}
      {changes.length === 0 ? (
        <p className="soft">Never changed.</p>
      ) : (
        <ol className="stack tight">
          {changes.map((change) => (
            <li key={`${change.key}-${change.version}`} className="small wraps">
              <span className="soft">{moment(change.at)}</span>{' '}
              <Inert text={(change.actor ?? 'sql').replace(/^user:/, '')} />
              {keys.length > 1 && (
                <>
                  {' '}
                  <code>{change.key}</code>
                </>
              )}
              <br />
              <code>
                <Inert text={brief(change.oldValue)} />
              </code>{' '}
              →{' '}
              <code>
                <Inert text={brief(change.newValue)} />
              </code>
              {change.reason && (
                <span>
                  {' '}
                  · <Inert text={change.reason} />
                </span>
              )}
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

function brief(value: string | null): string {
  if (value === null) return 'not set'
  return value.length > 80 ? `${value.slice(0, 79)}…` : value
}
