import { z } from 'zod'
import { containerFound } from '../domain/approval.ts'
import { executable } from '../domain/device.ts'
import { proof } from '../domain/envelope.ts'
import { onMachines } from '../domain/kinds.ts'
import { resourceRef } from '../domain/registry.ts'
import { type CoreAnswer, type Preparation, risks, type Tool, type ToolContext } from '../domain/tool.ts'
import { descriptionOf, type MeshSpec, meshSpecs, type Offering, toolsOf } from '../mesh/registry.ts'
import { defineTool, discoveredThing, nothing, reason, resourceId, state } from './define.ts'
import { ProposalError } from './placement.ts'

/** The effect of the call on the device cannot be determined. The model gets the reason. */
class DevicePreparationError extends ProposalError {}

const prepared = z.looseObject({
  resource: executable,
  touches: z.array(resourceRef).default([]),
  stateFingerprint: z.string(),
  dryRun: z.object({
    possible: z.boolean(),
    summary: z.string(),
    details: z.record(z.string(), z.unknown()),
    proof: proof.optional(),
  }),
  asks: z.object({ risk: z.enum(risks), why: z.string() }).optional(),
  rootReads: z.array(z.array(z.string())).optional(),
})
const observed = z.object({ holds: z.boolean().nullable(), observed: z.string() })
/** The core API reports which resource the call reached. */
const output = z.looseObject({ on: executable })

/**
 * The age after which the dry run of a command is outdated: people and timers change the files and
 * processes of a device.
 */
const rehearsalAgesAfterSeconds = 1_800

type Input = { on: string; reason?: string } & Record<string, unknown>

/**
 * Defines the tools that run on devices. The tools know nothing about a single device: the core API
 * finds the executor, signs the requests, makes the dry runs and checks the results. A tool passes
 * on the step key.
 */
export const deviceTools: readonly Tool[] = meshSpecs.map(toolOf)

/**
 * Lists the device tools that at least one of these devices offers. Other tools are not offered to
 * the model.
 */
export function deviceToolsOf(devices: readonly Offering[]): Set<string> {
  return new Set(devices.flatMap((device) => toolsOf(device).map(({ name, calledBy }) => calledBy ?? name)))
}

function toolOf(spec: MeshSpec): Tool {
  const asking = spec.effect === 'read' ? {} : { reason: spec.command ? reason.optional() : reason }
  return defineTool<Input, z.infer<typeof output>>({
    name: spec.name,
    description: descriptionOf(spec),
    input: spec.input.extend({ on: resourceId.describe('machine id'), ...asking }) as unknown as z.ZodType<Input>,
    output,
    effect: spec.effect,
    risk: spec.risk,
    reversible: spec.reversible,
    ...(spec.grantable && { grantable: true }),
    names: { on: ['node', 'host', 'vm'] },
    ...(spec.inside && { inside: true }),
    ...(spec.isRare ? { firstFor: [] } : !spec.command && { firstFor: spec.firstFor ?? onMachines }),
    ...(spec.isSituational && { isSituational: true }),
    ...(spec.command && { command: spec.command, dryRunAgesAfterSeconds: rehearsalAgesAfterSeconds }),
    say: ({ on, ...result }, { on: _, reason: __, ...input }) =>
      `${on.id}: ${spec.say?.(result, input) ?? `${spec.summary(input, null)}: done`}`,
    discovers: ({ on }) => [discoveredThing(on.kind, on.id)],
    ...(spec.lists && {
      lists: ({ on, ...result }: z.infer<typeof output>, { on: _, reason: __, ...input }: Input) => {
        const names = spec.lists?.(result, input) ?? []
        return names.length > 0 ? { on, names } : null
      },
    }),
    prepare: ({ reason: _, ...input }, context) => prepareOnDevice(input.on, input, context),
    proof: spec.proof.promised === null ? nothing(spec.proof.otherwise) : state(spec.proof.promised),
    postcondition: {
      withinSeconds: 15,
      check: async ({ on }, _output, context) => observed.parse(await ask(context, on, 'observation')),
    },
    ...(spec.undo && { undo: undoOf(spec.undo) }),
    run: ({ on, reason: why, ...args }, { core, stepKey, ifMatch, signal }) =>
      core.post(
        `/api/v1/devices/${on}/calls`,
        { capability: spec.capability, args, ...(why !== undefined && { reason: why }) },
        { idempotencyKey: stepKey, ...(ifMatch ? { ifMatch } : {}), ...(signal && { signal }) },
      ),
  })
}

/** Builds the undo for the same device, under the name that the call used. */
function undoOf({ does, of }: NonNullable<MeshSpec['undo']>): NonNullable<Tool<Input>['undo']> {
  return {
    does: ({ on, reason: _, ...input }) => `${does(input)}, on ${on}`,
    of({ on, reason: _, ...input }, answer) {
      const undo = of(input, answer)
      return 'none' in undo ? undo : { ...undo, arguments: { on, ...undo.arguments } }
    },
  }
}

/** Has the core API determine the effects of a call on a device. Throws DevicePreparationError. */
export async function prepareOnDevice(
  on: string,
  identity: Record<string, unknown>,
  context: ToolContext,
): Promise<Preparation> {
  const { resource, touches, ...rest } = prepared.parse(await ask(context, on, 'preparation'))
  const container = containerFound(rest.dryRun)
  return { targets: [resource, ...touches], identity, ...(container !== null && { container }), ...rest }
}

async function ask({ core, stepKey, signal }: ToolContext, on: string, what: string): Promise<unknown> {
  const path = `/api/v1/devices/${on}/${what}?key=${encodeURIComponent(stepKey)}`
  const answer: CoreAnswer = await core.get(path, signal ? { signal } : {})
  if (answer.ok) return answer.data
  throw new DevicePreparationError(answer.problem.detail || answer.problem.title)
}
