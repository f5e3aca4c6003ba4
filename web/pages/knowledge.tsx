import { formatList } from '../../domain/format.ts'
import type { KnowledgeList, ListedRunbook, Runbook, RunbookOrigin } from '../../domain/runbook.ts'
import { useAsk } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { Inert, inertText } from '../inert.tsx'
import { Markdown } from '../markdown.tsx'
import { Fact } from '../marks.tsx'
import { spelled } from '../own-command.ts'
import { Heading, Nothing, QueryState } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { formatMoment } from '../time.ts'

const originWords: Record<RunbookOrigin, string> = {
  shipped: 'shipped',
  repository: "the site's repository",
  folder: "the site's folder",
}

const formatOrigin = ({ origin, replaces }: Pick<ListedRunbook, 'origin' | 'replaces'>): string =>
  replaces.length === 0
    ? originWords[origin]
    : `${originWords[origin]}, instead of the runbook of ${formatList(replaces.map((each) => (each === 'shipped' ? 'the product' : originWords[each])))}`

const formatNames = (names: readonly string[]): string => names.join(', ').replaceAll('_', ' ') || 'any'

const columns: Column<ListedRunbook>[] = [
  {
    head: 'Runbook',
    className: 'wraps',
    cell: ({ name, description }) => (
      <>
        <Link href={`/knowledge/${name}`}>{name}</Link>
        <Inert as="div" className="soft small" text={description} />
      </>
    ),
  },
  { head: 'From', cell: formatOrigin },
  { head: 'Kinds', className: 'wide wraps', cell: ({ resourceKinds }) => formatNames(resourceKinds) },
  { head: 'Reviewed', className: 'wide', cell: ({ reviewedAt }) => reviewedAt ?? 'never' },
]

/** Shows the runbooks for investigations, which are files. */
export function KnowledgePage({ title }: { title: string }) {
  const known = useAsk<KnowledgeList>(['knowledge'], '/knowledge')
  return (
    <>
      <Heading title={title} />
      {known.data && <Troubles known={known.data} />}
      <DataTable
        query={known}
        what="runbooks"
        caption="Runbooks"
        columns={columns}
        toKey={({ name }) => name}
        empty={<Nothing title="No runbook is read yet.">The API reads runbooks when it starts.</Nothing>}
      />
    </>
  )
}

function Troubles({ known: { refused, places } }: { known: KnowledgeList }) {
  return (
    <>
      {places.map(({ origin, at, commit, readAt, error }) => (
        <p key={origin} className={error === null ? 'soft small wraps' : 'said lamp wraps'}>
          {originWords[origin]}: <Inert text={at} /> {commit && `at ${commit.slice(0, 12)}, `}
          read {readAt ? formatMoment(readAt) : 'never'}
          {error !== null && (
            <>
              ; <Inert text={error} />
            </>
          )}
        </p>
      ))}
      {refused.map(({ origin, file, why, remedy }) => (
        <p key={`${origin} ${file}`} className="said lamp wraps">
          <strong>
            <Inert text={file} /> was not read:
          </strong>{' '}
          <Inert text={spelled(`${why}. ${remedy}.`)} />
        </p>
      ))}
    </>
  )
}

export function RunbookPage({ id }: { id: string }) {
  const name = decodeURIComponent(id)
  const runbook = useAsk<Runbook>(['runbook', name], `/knowledge/${encodeURIComponent(name)}`)
  return (
    <>
      <Heading title={inertText(name)} of={{ href: '/knowledge', title: 'Runbooks' }} />
      <QueryState query={runbook} what="the runbook" />
      {runbook.data && <Shown runbook={runbook.data} />}
    </>
  )
}

function Shown({ runbook }: { runbook: Runbook }) {
  const { description, incidentTypes, resourceKinds, owner, reviewedAt, digest, body } = runbook
  return (
    <article className="about">
      <Inert as="p" className="wraps" text={description} />
      <dl className="facts">
        <Fact name="From">{formatOrigin(runbook)}</Fact>
        <Fact name="Incident types" isWhole>
          <Inert text={incidentTypes.join(', ') || 'any'} />
        </Fact>
        <Fact name="Kinds">{formatNames(resourceKinds)}</Fact>
        <Fact name="Owner">
          <Inert text={owner ?? 'not said'} />
        </Fact>
        <Fact name="Reviewed">{reviewedAt ?? 'never'}</Fact>
        <Fact name="Content">
          <span className="mono">{digest.slice(0, 12)}</span>
        </Fact>
      </dl>
      <Markdown text={body} />
      <p className="soft small">A runbook only makes suggestions. It allows nothing, and no rule reads a runbook.</p>
    </article>
  )
}
