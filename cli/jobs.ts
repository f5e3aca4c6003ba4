import { randomUUID } from 'node:crypto'
import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { jobName, listedJob, type ShownJob, shownJob } from '../domain/job.ts'
import { parseResourceKey, type ResourceRef, resourceKey } from '../domain/registry.ts'
import { type ActOptions, carryOut, declareAct } from './act.ts'
import { type ApiClient, ApiProblem } from './api.ts'
import { type CliCommand, type ConnectionOptions, connect } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { formatMoment, printList } from './ui/table.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

export function addJobsCommand(program: CliCommand): void {
  const parent = program
    .command('jobs')
    .description('jobs that JOBS_FILE declares to repair resources')
    .addHelpText('after', '\nExample:\n  nightshift jobs check converge-web --on node:web-1')
  addListCommand(parent)
  addShowCommand(parent)
  addCheckCommand(parent)
  addRunCommand(parent)
}

function parseName(text: string): string {
  if (!jobName.safeParse(text).success)
    throw new InvalidArgumentError('Begin with a small letter, then use small letters, digits and dashes, 40 at most.')
  return text
}

function parseResource(text: string): ResourceRef {
  const ref = parseResourceKey(text)
  if (!ref) throw new InvalidArgumentError('Write the resource as kind:id, such as node:web-1.')
  return ref
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('jobs by name; with --on, those of one resource')
    .option('--on <kind:id>', 'only jobs that may run on this resource', parseResource)
    .connected('\nExample:\n  nightshift jobs list --on node:web-1')
    .calls(async (api, { on, ...options }: ConnectionOptions & { on?: ResourceRef }) => {
      const query = on ? `?kind=${on.kind}&id=${encodeURIComponent(on.id)}` : ''
      const { items } = z.object({ items: z.array(listedJob.loose()) }).parse(await api.get(`/api/v1/jobs${query}`))
      const nothing = on ? `No job may run on ${resourceKey(on)}.` : none
      printList(options, items, nothing, {
        NAME: ({ name }) => inert(name),
        KIND: ({ kind }) => inert(kind),
        BY: ({ system }) => inert(system),
        CHECK: ({ hasCheck, isProvable }) => (hasCheck ? (isProvable ? 'yes, verifies runs' : 'yes') : 'no'),
        'WHAT IT DOES': ({ about }) => inert(about),
      })
    })
}

const none = 'No jobs. Declare a job in a file, and set JOBS_FILE of the API to that file: docs/how-to/jobs.md.'

function addShowCommand(parent: CliCommand): void {
  parent
    .command('show')
    .description('one job: its parameters, where it may run, its check mode, its last runs')
    .argument('<name>', 'its name', parseName)
    .connected('\nExample:\n  nightshift jobs show converge-web')
    .action(async (name: string, options: ConnectionOptions) => {
      const found = shownJob.loose().parse(await askForJob(connect(options).api, `/api/v1/jobs/${name}`))
      if (options.json) printJson(found)
      else printJob(found)
    })
}

function printJob({ name, about, kind, on, system, runs, parameters, check, ...job }: ShownJob): void {
  const row = (head: string, text: string) => print(`  ${head.padEnd(11)}  ${inert(text)}`)
  print(`${inert(name)}  ${inert(about)}`)
  row('runs on', `${kind} ${on.ids ? on.ids.join(', ') : `whose full id matches ${on.pattern}`}`)
  row('by', `${system}: ${runs}`)
  row('is given', parameters.map((word) => `{${word}}`).join(', ') || 'no parameters: the job is for this one resource')
  row('within', `${job.timeoutSeconds} s`)
  row(
    'check mode',
    check
      ? `${check.runs} (${check.timeoutSeconds} s)`
      : 'none: each run has a high risk, and nothing verifies that it worked',
  )
  if (check) row('no change', check.noChanges.join(', ') || 'not declared: nothing verifies that a run worked')
  if (job.proof !== null) row('proof', job.proof)
  if (job.lastRuns.length === 0) row('last runs', 'none')
  for (const { startedAt, status, resource, incidentId, detail } of job.lastRuns)
    row(status, [formatMoment(startedAt), resource ? resourceKey(resource) : '', incidentId ?? '', detail].join('  '))
}

const checked = z.looseObject({
  done: z.boolean(),
  preparation: z
    .looseObject({
      stateFingerprint: z.string(),
      dryRun: z.looseObject({
        possible: z.boolean(),
        summary: z.string(),
        details: z.looseObject({ rehearsal: z.looseObject({ told: z.array(z.string()) }).optional() }),
      }),
    })
    .nullable(),
})

function addCheckCommand(parent: CliCommand): void {
  parent
    .command('check')
    .description('run the check mode of a job on a resource: shows what the job would change, and changes nothing')
    .argument('<name>', 'its name', parseName)
    .requiredOption('--on <kind:id>', 'the resource', parseResource)
    .connected('\nExample:\n  nightshift jobs check converge-web --on node:web-1')
    .action(async (name: string, { on, ...options }: ConnectionOptions & { on: ResourceRef }) => {
      const found = await check(connect(options).api, name, on)
      if (options.json) return printJson(found)
      if (found.preparation === null) return print(`${name} would change nothing on ${resourceKey(on)}.`)
      const { possible, summary, details } = found.preparation.dryRun
      print(inert(summary))
      if (!possible) return printNote('The job declares no check mode, so nobody knows what it would change.')
      for (const line of details.rehearsal?.told ?? []) print(`  ${inert(line)}`)
      printNote(
        'Nothing was changed. Run the job with "jobs run", or let an investigation propose the job: each run requires approval.',
      )
    })
}

function addRunCommand(parent: CliCommand): void {
  const command = parent
    .command('run')
    .description('run a job on a resource yourself; its check mode runs first')
    .argument('<name>', 'its name', parseName)
    .requiredOption('--on <kind:id>', 'the resource', parseResource)
  declareAct(command, 'nightshift jobs run converge-web --on node:web-1 --reason "it has drifted"').calls(
    async (api, name: string, { on, ...options }: ActOptions & { on: ResourceRef }) => {
      const { preparation } = await check(api, name, on)
      if (preparation === null)
        return printNote(`${name} would change nothing on ${resourceKey(on)}, so the job was not run.`)
      const { stateFingerprint: ifMatch, dryRun } = preparation
      const { summary, details } = dryRun
      const act = { path: `/api/v1/jobs/${name}/run`, body: on, summary, told: details.rehearsal?.told, ifMatch }
      await carryOut(api, act, options)
    },
  )
}

/** Polls until the check of a job has ended. "Nothing would change" is a result, not a failure. */
async function check(
  api: ApiClient,
  name: string,
  { kind, id }: ResourceRef,
): Promise<{ wouldChange: boolean | null; preparation: z.infer<typeof checked>['preparation'] }> {
  const query = new URLSearchParams({ kind, id, key: randomUUID() })
  try {
    for (;;) {
      const { done, preparation } = checked.parse(await askForJob(api, `/api/v1/jobs/${name}/preparation?${query}`))
      if (done) return { wouldChange: preparation?.dryRun.possible ? true : null, preparation }
    }
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    if (error.problem.code === 'NOTHING_TO_CHANGE') return { wouldChange: false, preparation: null }
    if (error.problem.code === 'CHECK_FAILED') throw new CommandFailed('error', error.problem.detail)
    throw error
  }
}

/** Reads a job. If the job is missing, the remedy is the list of jobs. */
async function askForJob(api: ApiClient, path: string): Promise<unknown> {
  try {
    return await api.get(path)
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.problem.status !== 404) throw error
    throw new ApiProblem(
      error.problem,
      '"nightshift jobs list" shows the jobs, "nightshift resources list" the resources.',
    )
  }
}
