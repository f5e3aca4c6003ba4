import type { ListedJob, ShownJob } from '../../domain/job.ts'
import { type ListPage, useAsk } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { Inert, inertText, TextLink } from '../inert.tsx'
import { Fact } from '../marks.tsx'
import { Heading, Nothing, QueryState, Section } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { formatMoment } from '../time.ts'
import { ResourceLink } from './resources.tsx'

const columns: Column<ListedJob>[] = [
  {
    head: 'Job',
    className: 'wraps',
    cell: ({ name, about }) => (
      <>
        <TextLink href={`/jobs/${encodeURIComponent(name)}`} text={name} />
        <Inert as="div" className="soft small" text={about} />
      </>
    ),
  },
  { head: 'Runs on', cell: ({ kind }) => kind.replaceAll('_', ' ') },
  { head: 'By', className: 'wide', cell: ({ system }) => system },
  { head: 'Check mode', className: 'wide', cell: ({ hasCheck, isProvable }) => formatCheck(hasCheck, isProvable) },
]

const formatCheck = (hasCheck: boolean, isProvable: boolean): string =>
  hasCheck ? (isProvable ? 'yes, and it verifies a run' : 'yes') : 'none'

/** Shows the jobs of the operator, which a file declares. */
export function JobsPage({ title }: { title: string }) {
  const jobs = useAsk<ListPage<ListedJob>>(['jobs'], '/jobs')
  return (
    <>
      <Heading title={title} />
      <DataTable
        query={jobs}
        what="jobs"
        caption="Declared jobs"
        columns={columns}
        toKey={({ name }) => name}
        empty={
          <Nothing title="No job is declared.">
            A playbook, a job template or a service of yours can repair a resource. Declare it in a file, and name that
            file in <code>JOBS_FILE</code>.
          </Nothing>
        }
      />
    </>
  )
}

export function JobPage({ id }: { id: string }) {
  const name = decodeURIComponent(id)
  const job = useAsk<ShownJob>(['job', name], `/jobs/${encodeURIComponent(name)}`)
  return (
    <>
      <Heading title={inertText(name)} of={{ href: '/jobs', title: 'Jobs' }} />
      <QueryState query={job} what="the job" />
      {job.data && <Job job={job.data} />}
    </>
  )
}

function Job({ job }: { job: ShownJob }) {
  const { kind, on, parameters, runs, system, timeoutSeconds, check, proof } = job
  return (
    <article className="about">
      <Inert as="p" className="wraps" text={job.about} />
      <dl className="facts">
        <Fact name="Runs on" isWhole>
          {kind.replaceAll('_', ' ')} <Inert text={on.ids?.join(', ') ?? `whose full id matches ${on.pattern}`} />
        </Fact>
        <Fact name="Parameters">{parameters.map((word) => `{${word}}`).join(', ') || 'nothing'}</Fact>
        <Fact name="Within">{timeoutSeconds} s</Fact>
        <Fact name="What it starts" isWhole>
          {system}: <Inert as="code" text={runs} />
        </Fact>
        <Fact name="Check mode" isWhole>
          {check ? (
            <Inert as="code" text={check.runs} />
          ) : (
            'none: each run has a high risk, and nothing verifies that it worked'
          )}
        </Fact>
        {check && (
          <Fact name="Output when nothing would change" isWhole>
            <Inert text={check.noChanges.join(', ') || 'not declared: nothing verifies that a run worked'} />
          </Fact>
        )}
        {proof !== null && (
          <Fact name="True after a successful run" isWhole>
            <Inert text={proof} />
          </Fact>
        )}
      </dl>
      <p className="soft small">Each run requires approval. The card shows the output of the check mode.</p>
      <LastRuns runs={job.lastRuns} />
    </article>
  )
}

function LastRuns({ runs }: { runs: ShownJob['lastRuns'] }) {
  return (
    <Section className="stack tight" title="Last runs">
      {runs.length === 0 && <p className="soft">This job has not run yet.</p>}
      <ul className="things">
        {runs.map(({ key, status, startedAt, resource, incidentId, detail }) => (
          <li key={key} className="wraps">
            <strong>{status}</strong> {formatMoment(startedAt)}{' '}
            {resource && <ResourceLink name={`${resource.kind}:${resource.id}`} />}{' '}
            {incidentId && <Link href={`/incidents/${incidentId}`}>Incident</Link>}
            <Inert as="div" className="soft small" text={detail} />
          </li>
        ))}
      </ul>
    </Section>
  )
}
