import { useQuery } from '@tanstack/react-query'
import type { EnvironmentVariable } from '../../domain/setting-row.ts'
import { ask, type Page } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert } from '../markdown.tsx'
import { QueryState } from '../page-frame.tsx'

/** What the API process was started with. It is read-only: a change takes a restart. */
export function Environment({ refused }: { refused: string | null }) {
  const environment = useQuery({
    queryKey: ['environment'],
    enabled: refused === null,
    queryFn: ({ signal }) => ask<Page<EnvironmentVariable>>('/config/environment', { signal }),
  })
  const items = environment.data?.items ?? []
  const groups = [...new Set(items.map(({ group }) => group))]
  return (
    <section className="stack tight" aria-labelledby="environment">
      <h2 id="environment">Environment</h2>
      <p className="soft small">
        What this API process was started with. A change takes a restart. The worker has an environment of its own. Of a
        secret it is shown only whether it is set.
      </p>
      {refused ? (
        <p>It is shown to those who may change settings.</p>
      ) : (
        <QueryState query={environment} what="the environment" />
      )}
      {groups.map((group) => {
        const own = items.filter((each) => each.group === group)
        const count = own.filter(({ state }) => state === 'set').length
        return (
          <details key={group} className="sheet group">
            <summary>
              <strong>{group}</strong>{' '}
              <span className="soft small">
                {count} of {own.length} set
              </span>
            </summary>
            <Table caption={`Environment: ${group}`} items={own} columns={columns} toKey={({ name }) => name} />
          </details>
        )
      })}
    </section>
  )
}

const columns: Column<EnvironmentVariable>[] = [
  {
    head: 'Variable',
    className: 'wraps',
    cell: ({ name, description }) => (
      <>
        <code className="strong">{name}</code>
        <div className="small soft">
          <Inert text={description} />
        </div>
      </>
    ),
  },
  {
    head: 'In force',
    className: 'wraps',
    cell: ({ value, state }) =>
      value !== null ? (
        <span className="mono">
          <Inert text={value} />
        </span>
      ) : state === 'set' ? (
        <strong>set</strong>
      ) : (
        <span className="soft">not set</span>
      ),
  },
  { head: 'From', className: 'nowrap', cell: ({ state }) => froms[state] },
]

const froms: Record<EnvironmentVariable['state'], string> = { set: 'environment', default: 'default', not_set: '–' }
