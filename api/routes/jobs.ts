import { z } from '@hono/zod-openapi'
import { attachmentFields } from '../../domain/attachment.ts'
import { actionDigest } from '../../domain/digest.ts'
import { proof } from '../../domain/envelope.ts'
import { jobName, listedJob, runJobTool, type ShownJob, shownJob } from '../../domain/job.ts'
import { inventoryKind, resourceRef } from '../../domain/registry.ts'
import { risks } from '../../domain/tool.ts'
import { observeJob, prepareJob } from '../../effects/jobs/check.ts'
import { listJobs, requireJob, showJob } from '../../effects/jobs/jobs.ts'
import { performJob, requireReady } from '../../effects/jobs/perform.ts'
import { runEffect } from '../../effects/run-effect.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { keyShape } from '../http/idempotency.ts'
import { actDirectly, directAnswer, directBody } from '../manual-change.ts'
import { answerEffect } from './effects.ts'
import { incidentId } from './examples.ts'

const tag = 'platform'
const params = z.object({ name: jobName })
const resourceId = z.string().min(1).max(128)
const about = z.object({
  kind: inventoryKind,
  id: resourceId,
  /**
   * The key of a check. While the check runs, a repeated request with the key gets the first
   * response.
   */
  key: z.string().regex(keyShape).max(400).optional(),
})

const prepared = z.object({
  targets: z.array(resourceRef),
  identity: z.record(z.string(), z.unknown()),
  stateFingerprint: z.string(),
  asks: z.object({ risk: z.enum(risks), why: z.string() }).optional(),
  dryRun: z.object({
    possible: z.boolean(),
    summary: z.string(),
    details: z.record(z.string(), z.unknown()),
    proof: proof.optional(),
    ...attachmentFields,
  }),
})

const listEndpoint = endpoint({
  method: 'get',
  path: '/jobs',
  permission: 'read',
  tag,
  summary: 'Jobs that JOBS_FILE declares: all, or those of one resource',
  query: z.object({ kind: inventoryKind.optional(), id: resourceId.optional() }),
  answer: pageOf(listedJob),
  example: {
    items: [
      {
        name: 'converge-web',
        about: 'Re-applies the web role',
        kind: 'node',
        system: 'command',
        hasCheck: true,
        isProvable: true,
      },
    ],
    nextCursor: null,
  },
  async run({ query: { kind, id } }, deps) {
    const fitting = listJobs(deps.jobs, kind !== undefined && id !== undefined ? { kind, id } : null)
    return { items: fitting.filter((job) => kind === undefined || job.kind === kind), nextCursor: null }
  },
})

const example: ShownJob = {
  name: 'converge-web',
  about: 'Re-applies the web role',
  kind: 'node',
  system: 'command',
  hasCheck: true,
  isProvable: true,
  parameters: ['id'],
  on: { ids: null, pattern: 'web-[0-9]+' },
  runs: 'ansible-playbook -i hosts.ini web.yml --limit {id}',
  timeoutSeconds: 900,
  check: {
    runs: 'ansible-playbook -i hosts.ini web.yml --limit {id} --check --diff',
    timeoutSeconds: 300,
    noChanges: ['output matches changed=0 '],
  },
  proof: null,
  lastRuns: [
    {
      key: `${incidentId}.1:4:tool_started:0`,
      status: 'done',
      detail: 'converge-web: ansible-playbook ended with code 0',
      resource: { kind: 'node', id: 'web-1' },
      incidentId,
      startedAt: '2026-11-21T01:45:40.120000Z',
      finishedAt: '2026-11-21T01:46:02.000000Z',
    },
  ],
}

const showEndpoint = endpoint({
  method: 'get',
  path: '/jobs/{name}',
  permission: 'read',
  tag,
  summary: 'A declared job: its parameters, where it may run, what it starts, its check mode, its last runs',
  description: 'Headers, variables and credentials are left out.',
  params,
  answer: shownJob,
  example,
  problems: [404],
  run: ({ params: { name } }, deps) => showJob(deps, name),
})

const preparationEndpoint = endpoint({
  method: 'get',
  path: '/jobs/{name}/preparation',
  permission: 'act_on_platform',
  tag,
  summary: 'Runs the check mode of a job, which shows what the job would change on a resource',
  description:
    'The check mode is declared to change nothing, and runs without approval. `done` is false while the check mode runs: send the request again with the same `key`. `stateFingerprint` is the `If-Match` of the run. `attachments` has output that is too long for the card.',
  params,
  query: about,
  answer: z.object({ done: z.boolean(), preparation: prepared.nullable() }),
  example: {
    done: true,
    preparation: {
      targets: [{ kind: 'node', id: 'web-1' }],
      identity: { job: 'converge-web', kind: 'node', id: 'web-1' },
      stateFingerprint: '0a1b2c3d4e5f6071.5d41402a',
      asks: { risk: 'medium', why: 'a declared job requires approval every time' },
      dryRun: {
        possible: true,
        summary: 'Run the job converge-web on node web-1: Re-applies the web role',
        details: { rehearsal: { told: ['web-1 : ok=3 changed=1 failed=0'], tried: true } },
        proof: { by: 'state', text: 'the check mode of the job reports that nothing would change' },
      },
    },
  },
  problems: [404, 409, 502],
  async run({ params: { name }, query: { kind, id, key }, principal }, deps) {
    await deps.state.refresh()
    const preparation = await prepareJob(deps, { name, kind, id }, key ?? principal.tokenId)
    return { done: preparation !== null, preparation }
  },
})

const observationEndpoint = endpoint({
  method: 'get',
  path: '/jobs/{name}/observation',
  permission: 'act_on_platform',
  tag,
  summary: 'Runs the check mode of a job again, to check whether the job worked',
  description:
    '`holds` is null if the job does not declare which output of its check mode means that nothing would change.',
  params,
  query: about,
  answer: z.object({
    done: z.boolean(),
    observation: z.object({ holds: z.boolean().nullable(), observed: z.string() }).nullable(),
  }),
  example: {
    done: true,
    observation: { holds: true, observed: 'the check mode of converge-web reports that nothing would change' },
  },
  problems: [404, 502],
  async run({ params: { name }, query: { kind, id, key }, principal }, deps) {
    const observation = await observeJob(deps, { name, kind, id }, key ?? principal.tokenId)
    return { done: observation !== null, observation }
  },
})

const runEndpoint = endpoint({
  method: 'post',
  path: '/jobs/{name}/run',
  permission: 'act_on_platform',
  tag,
  summary: 'Runs a declared job on a resource, once per `Idempotency-Key`',
  description:
    '`If-Match` is the `stateFingerprint` of the dry run that was approved: 412 if the declaration has changed. If the output of the check mode has changed, the run fails before it begins. An agent needs an approval that its run has used.',
  params,
  headers: z.object({ 'if-match': z.string().max(120).optional() }),
  body: z.strictObject({ kind: inventoryKind, id: resourceId, ...directBody }),
  bodyExample: { kind: 'node', id: 'web-1', reason: 'its configuration has drifted' },
  answer: z.looseObject({ detail: z.string(), key: z.string(), ...directAnswer }),
  example: {
    detail: 'converge-web: ansible-playbook ended with code 0',
    key: `${incidentId}.1:4:tool_started:0`,
    exit_code: 0,
    output: 'web-1 : ok=3 changed=1 failed=0',
    truncated: false,
  },
  problems: [404, 409, 412, 428, 502, 504],
  agent: {
    tool: runJobTool,
    approved: true,
    identity: ({ name }, { kind, id }) => ({ job: name, kind, id }),
  },
  async run({ params: { name }, body: { kind, id, reason, alone }, principal, actor, key, judged, c }, deps) {
    await deps.state.refresh()
    const job = await requireJob(deps, { name, kind, id })
    const ifMatch = c.req.header('if-match')
    if (!judged) {
      const prepare = async () => {
        requireReady(deps, job, ifMatch)
        const stateFingerprint = String(ifMatch).replace(/^(?:W\/)?"?|"$/g, '')
        return { targets: [{ kind, id }], summary: `Run the job ${name} on ${kind} ${id}`, stateFingerprint }
      }
      const args = { job: name, kind, id, reason }
      const manual = await actDirectly(deps, { principal, actor, c, tool: runJobTool, args, alone, prepare })
      if (manual) return manual
    }
    const effect = await runEffect(
      deps,
      { principal, key, judged, tool: runJobTool, actionDigest: actionDigest(runJobTool, { job: name, kind, id }) },
      {
        before: async () => requireReady(deps, job, ifMatch),
        perform: (effectKey) => performJob(deps, job, { key: effectKey, ifMatch: ifMatch ?? '', judged }),
      },
    )
    return answerEffect(effect)
  },
})

/** Routes for declared jobs: list, expected changes, verification, and run. */
export const jobRoutes = [listEndpoint, showEndpoint, preparationEndpoint, observationEndpoint, runEndpoint]
