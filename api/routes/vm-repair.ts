import { z } from '@hono/zod-openapi'
import { actionDigest } from '../../domain/digest.ts'
import { type VmAction, vmActions, vmTools } from '../../domain/platform.ts'
import { resourceRef } from '../../domain/registry.ts'
import { requirePlatform } from '../../effects/platform.ts'
import { runEffect } from '../../effects/run-effect.ts'
import { performRepair, prepareRepair, type ReadyVm, requireSameVm } from '../../effects/vm-repair.ts'
import { endpoint } from '../http/endpoint.ts'
import { actDirectly, directAnswer, directBody } from '../manual-change.ts'
import { answerEffect, tag } from './effects.ts'
import { incidentId } from './examples.ts'
import { resourceParams } from './resources.ts'

const summaries: Record<VmAction, string> = {
  start: 'Starts a VM on the host it is on',
  stop: 'Stops a VM and leaves it stopped',
  restart: 'Stops a VM and starts it again on the same host',
}

function dryRunEndpoint(action: VmAction) {
  return endpoint({
    method: 'get',
    path: `/vms/{id}/${action}`,
    permission: 'act_on_platform',
    tag,
    summary: `Dry run of a ${action} of a VM, from the current state of the platform`,
    description:
      'Nothing is changed. `stateFingerprint` is the `If-Match` of the POST. 409 if the action is not possible: the host is down, the VM is being moved, a plan is running, or the VM is already in that state.',
    params: resourceParams,
    query: z.object({ dry_run: z.literal('true') }),
    answer: z.object({
      targets: z.array(resourceRef),
      identity: z.record(z.string(), z.unknown()),
      stateFingerprint: z.string(),
      dryRun: z.object({ possible: z.boolean(), summary: z.string(), details: z.record(z.string(), z.unknown()) }),
    }),
    example: {
      targets: [
        { kind: 'vm', id: 'vm-osl-3' },
        { kind: 'host', id: 'host-osl-3' },
      ],
      identity: { id: 'vm-osl-3' },
      stateFingerprint: '5d41402abc4b2a76b9719d911017c592',
      dryRun: {
        possible: true,
        summary: `${action} vm-osl-3 on host-osl-3`,
        details: { rehearsal: { told: ['the VM is in the ha_group ha-web'], tried: true } },
      },
    },
    problems: [404, 409],
    run: async ({ params: { id } }, deps) => {
      requirePlatform(deps)
      return await prepareRepair(deps, action, id)
    },
  })
}

function repairEndpoint(action: VmAction) {
  const tool = vmTools[action]
  return endpoint({
    method: 'post',
    path: `/vms/{id}/${action}`,
    permission: 'act_on_platform',
    tag,
    summary: `${summaries[action]}, once per \`Idempotency-Key\``,
    description:
      '`If-Match` is the `stateFingerprint` of the approved dry run: 412 if the VM is on another host, or was started or stopped. An agent needs an approval that its run has used.',
    params: resourceParams,
    headers: z.object({ 'if-match': z.string().max(120).optional() }),
    body: z.strictObject(directBody),
    bodyExample: { reason: 'the VM does not answer any more' },
    answer: z.looseObject({ detail: z.string(), key: z.string(), ...directAnswer }),
    example: { detail: `vm-osl-3: ${action} done on host-osl-3`, key: `${incidentId}.1:4:tool_started:0` },
    problems: [404, 409, 412, 428, 502, 504],
    agent: { tool, approved: true, identity: ({ id }) => ({ id }) },
    async run({ params: { id }, body: { reason, alone }, principal, actor, key, judged, c }, deps) {
      const platform = requirePlatform(deps)
      const ifMatchOf = () => c.req.header('if-match')
      if (!judged) {
        const prepare = async () => {
          await requireSameVm(deps, action, id, { ifMatch: ifMatchOf(), incidentId: null })
          const { dryRun, ...prepared } = await prepareRepair(deps, action, id)
          return { ...prepared, summary: dryRun.summary }
        }
        const manual = await actDirectly(deps, { principal, actor, c, tool, args: { id, reason }, alone, prepare })
        if (manual) return manual
      }
      let ready: ReadyVm | null = null
      const effect = await runEffect(
        deps,
        { principal, key, judged, tool, actionDigest: actionDigest(tool, { id }) },
        {
          async before() {
            ready = await requireSameVm(deps, action, id, {
              ifMatch: ifMatchOf(),
              incidentId: judged?.incidentId ?? null,
            })
          },
          async perform(effectKey) {
            if (!ready) throw new Error('a repair begins after the state was compared')
            return await performRepair(deps, { platform, action, ready, key: effectKey })
          },
        },
      )
      return answerEffect(effect)
    },
  })
}

/** Routes for start, stop and restart of one VM on its host: dry run and write. */
export const vmRepairRoutes = vmActions.flatMap((action) => [dryRunEndpoint(action), repairEndpoint(action)])
