import { z } from 'zod'
import { type VmAction, vmBefore, vmTools } from '../domain/platform.ts'
import { resourceRef } from '../domain/resource.ts'
import type { CorePort, Observation, Preparation, ToolContext } from '../domain/tool.ts'
import { defineTool, reason, resourceId, sayWrite, state } from './define.ts'
import { ProposalError } from './placement.ts'

/** Repairs of one VM on the host it is on. Always asked; elsewhere a VM goes by a plan. */

/** The repair cannot be done: the model reads why. */
class RepairError extends ProposalError {}

const preparation = z.object({
  targets: z.array(resourceRef),
  identity: z.record(z.string(), z.unknown()),
  stateFingerprint: z.string(),
  dryRun: z.object({ possible: z.boolean(), summary: z.string(), details: z.record(z.string(), z.unknown()) }),
})

async function prepare(action: VmAction, id: string, { core, signal }: ToolContext): Promise<Preparation> {
  const answer = await core.get(`/api/v1/vms/${id}/${action}?dry_run=true`, { signal })
  if (!answer.ok) throw new RepairError(answer.problem.detail || answer.problem.title)
  return preparation.parse(answer.data)
}

const vmNow = z.looseObject({
  host: z.string().nullable(),
  running: z.boolean(),
  startedAt: z.string().nullable().optional(),
  busy: z.string().nullable().optional(),
})
const effectNow = z.looseObject({
  status: z.string(),
  detail: z.string(),
  /** `newStart`: our own client of the platform asked for the age of the run, after the write. */
  result: z.looseObject({ before: vmBefore.optional(), newStart: z.boolean().optional() }),
})
type Seen = { id: string; vm: z.infer<typeof vmNow>; effect: z.infer<typeof effectNow> }

/** The VM as the platform reports it now, and what is stored of the write. Null: one of them cannot be read. */
async function look(core: CorePort, id: string, stepKey: string): Promise<Seen | null> {
  const [vm, effect] = await Promise.all([
    core.get(`/api/v1/vms/${id}`),
    core.get(`/api/v1/effects/${encodeURIComponent(stepKey)}`),
  ])
  return vm.ok && effect.ok ? { id, vm: vmNow.parse(vm.data), effect: effectNow.parse(effect.data) } : null
}

const where = ({ id, vm }: Seen) => `${id} ${vm.running ? 'runs' : 'is stopped'} on ${vm.host ?? 'no host'}`

function isStopped(seen: Seen): Observation {
  return { holds: !seen.vm.running, observed: where(seen) }
}

function isStarted(seen: Seen): Observation {
  const { vm, effect } = seen
  const host = effect.result.before?.host ?? vm.host
  return { holds: vm.running && vm.host === host, observed: where(seen) }
}

/** A later start than before proves it. That the platform took the order for done does not. */
function isRestarted(seen: Seen): Observation | null {
  const { vm, effect } = seen
  const there = isStarted(seen)
  if (!there.holds) return there
  const before = effect.result.before?.startedAt
  if (before && vm.startedAt) {
    const isNew = Date.parse(vm.startedAt) > Date.parse(before)
    return {
      holds: isNew,
      observed: `${there.observed}, since ${vm.startedAt}${isNew ? '' : ': it is the same run as before'}`,
    }
  }
  if (effect.result.newStart) return { holds: true, observed: `${there.observed}, in a run that began after the order` }
  if (effect.status === 'running') return null
  return { holds: null, observed: `${there.observed}; the platform reports no starts, so it may be the same run` }
}

const looks: Record<VmAction, (seen: Seen) => Observation | null> = {
  start: isStarted,
  stop: isStopped,
  restart: isRestarted,
}

const input = z.strictObject({ id: resourceId, reason })

function repair(
  action: VmAction,
  facts: Pick<Parameters<typeof defineTool>[0], 'description' | 'risk' | 'reversible' | 'proof'>,
) {
  return defineTool({
    name: vmTools[action],
    // On a host they are planned; what stops a VM is seldom its repair.
    firstFor: action === 'stop' ? [] : ['vm'],
    ...facts,
    input,
    output: z.looseObject({}),
    effect: 'write',
    names: { id: 'vm' },
    say: (output, { id }) => sayWrite(output, `${id}: ${action}`),
    discovers: () => [],
    prepare: ({ id }, context) => prepare(action, id, context),
    postcondition: {
      withinSeconds: 60,
      async check({ id }, _output, { core, stepKey }) {
        const seen = await look(core, id, stepKey)
        return seen && looks[action](seen)
      },
    },
    run: ({ id, reason: why }, { core, stepKey, ifMatch, signal }) =>
      core.post(
        `/api/v1/vms/${id}/${action}`,
        { reason: why },
        { idempotencyKey: stepKey, ...(ifMatch ? { ifMatch } : {}), ...(signal && { signal }) },
      ),
  })
}

export const vmStart = repair('start', {
  description: 'Start a stopped VM on the host it is on. Its host is down: plan instead.',
  risk: 'medium',
  reversible: true,
  proof: state('the VM runs on its host'),
})

export const vmStop = repair('stop', {
  description: 'Stop a VM and leave it stopped.',
  risk: 'high',
  reversible: true,
  proof: state('the VM does not run'),
})

export const vmRestart = repair('restart', {
  description: 'Restart a VM that runs and does not answer, on the host it is on.',
  risk: 'medium',
  reversible: false,
  proof: state('the VM runs on its host again, with a new start'),
})
