import { useQuery } from '@tanstack/react-query'
import type { NearChange } from '../../domain/change.ts'
import { ask } from '../api.ts'
import { Inert, inertText } from '../inert.tsx'
import { Failed } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { formatMoment } from '../time.ts'

const mostShown = 10

/** What was deployed or configured of late, there and on what it needs. */
export function ResourceChanges({ kind, id }: { kind: string; id: string }) {
  const path = `/inventory/resources/${encodeURIComponent(kind)}/${encodeURIComponent(id)}/changes`
  const changes = useQuery({
    queryKey: ['resource-changes', kind, id],
    queryFn: ({ signal }) => ask<{ items: NearChange[]; found: number }>(path, { signal }),
  })
  const { data, error } = changes
  const rest = data ? data.found - Math.min(data.items.length, mostShown) : 0
  return (
    <section className="stack tight">
      <h2>Changes of the last 7 days</h2>
      {error && <Failed error={error} isKept={data !== undefined} again={() => void changes.refetch()} />}
      {data && data.items.length === 0 && <p className="soft">None was reported, of it or of what it needs.</p>}
      <ul className="things">
        {data?.items.slice(0, mostShown).map((change) => (
          <li key={change.id} className="wraps">
            <Change change={change} />
          </li>
        ))}
      </ul>
      {rest > 0 && <p className="soft small">{rest} more: nightshift changes list --resource has them.</p>}
    </section>
  )
}

function Change({ change: { at, title, url, author, revision, source, resource, steps } }: { change: NearChange }) {
  const about = resource ? `${resource.kind}:${resource.id}` : ''
  return (
    <>
      {formatMoment(at)}{' '}
      {url && /^https?:/.test(url) ? (
        <a href={url} rel="noreferrer noopener" target="_blank">
          {inertText(title)}
        </a>
      ) : (
        <Inert text={title} />
      )}{' '}
      <span className="soft small">
        <Inert text={[source, author, revision?.slice(0, 12)].filter(Boolean).join(', ')} />
      </span>
      {steps > 0 && (
        <>
          {' '}
          on <Link href={`/resources/${encodeURIComponent(about)}`}>{inertText(about)}</Link>, which it needs
        </>
      )}
    </>
  )
}
