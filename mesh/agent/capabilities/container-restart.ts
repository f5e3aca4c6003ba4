import { hostname } from 'node:os'
import { z } from 'zod'
import { stripText } from '../../../safety/redact.ts'
import { dockerRestartArgs } from '../../specs/docker.ts'
import { CapabilityError, type DeviceCapability, toOutcome } from '../capability.ts'
import { type ContainerEngine, containerOf, engineId, missingEngine, open, requestJson } from '../engine.ts'
import { enclosureOf, standingOf } from '../process-facts.ts'
import { reportOutcome, restsOnLines } from '../rehearsal-report.ts'

/** Seconds that the engine gives a container to end. */
const graceSeconds = 10
/** Milliseconds for which the container is watched, because it may end right after its start. */
const watchMs = 5_000

const inspected = z.looseObject({
  Id: engineId,
  Name: z.string(),
  Image: z.string().max(200),
  State: z.looseObject({
    Status: z.string().max(40),
    Running: z.boolean(),
    StartedAt: z.string().max(60),
    ExitCode: z.number().int().default(0),
    Health: z.looseObject({ Status: z.string().max(40) }).nullish(),
  }),
  RestartCount: z.number().int().default(0),
  Config: z.looseObject({ Image: z.string().max(500).default('') }),
  HostConfig: z.looseObject({ AutoRemove: z.boolean().default(false) }),
  Mounts: z.array(z.looseObject({ Type: z.string().max(40) })).default([]),
})
type Inspected = z.infer<typeof inspected>

/**
 * Restarts one container: `{ id, name, before, started_at, health }`. Watches the container for
 * five seconds, and fails if the container ended. The dry run reads the container. A person
 * approves this container and, if it is healthy, only its present run.
 */
export const containerRestart = (engine: ContainerEngine): DeviceCapability<z.infer<typeof dockerRestartArgs>> => ({
  capability: 'docker.container.restart',
  args: dockerRestartArgs,
  missingPrerequisite: () => missingEngine(engine),
  weigh: ({ container }) => ({ effect: 'write', reason: `restarts the container ${container}`, command: null }),
  run: ({ container }, { signal }) =>
    toOutcome(signal, async () => {
      const before = await inspect(engine, container, signal)
      requireRestartable(before)
      const answer = await open(engine, 'POST', `/containers/${before.Id}/restart?t=${graceSeconds}`, signal)
      answer.resume()
      const after = await watch(engine, before, signal)
      const result = {
        id: after.Id.slice(0, 12),
        name: nameOf(after),
        before: before.State.Status,
        started_at: after.State.StartedAt,
        health: after.State.Health?.Status ?? null,
      }
      return { ok: true, result, truncated: false }
    }),
  rehearse: ({ container }, { signal }) =>
    toOutcome(signal, async () => {
      const found = await inspect(engine, container, signal)
      requireRestartable(found)
      const { State, RestartCount, Config, Mounts } = found
      const isSteady = State.Running && RestartCount === 0
      const told = [
        `${nameOf(found)} (${found.Id.slice(0, 12)}) of the image ${clean(Config.Image)}`,
        `now ${State.Status} since ${State.StartedAt}, exit code ${State.ExitCode}, restarted ${RestartCount} times by the engine`,
        ...(State.Health ? [`health check: ${State.Health.Status}`] : ['the container has no health check']),
        `keeps: its file system and ${Mounts.length} mounts; loses: its data in memory`,
        'undo: none',
      ]
      const untried = ['Only the restart shows whether the container starts with its present configuration.']
      const rests = restsOnLines([found.Id, found.Image, isSteady ? State.StartedAt : 'unsteady'])
      return reportOutcome({ told, untried, rests, tried: true }, { container: nameOf(found) })
    }),
})

async function inspect(engine: ContainerEngine, container: string, signal: AbortSignal): Promise<Inspected> {
  const { id } = await containerOf(engine, container, signal)
  return requestJson(engine, { method: 'GET', path: `/containers/${id}/json` }, inspected, signal)
}

/** Refuses a container that cannot start again because the engine removes it when it ends. */
function requireRestartable(found: Inspected): void {
  if (found.HostConfig.AutoRemove)
    throw new CapabilityError(
      'conflict',
      `${nameOf(found)} is removed as soon as it ends (--rm): a restart would lose it`,
    )
  // Finds the container in which the agent runs by its host name or its control group.
  const own = [hostname(), enclosureOf(standingOf(process.pid)?.cgroups ?? [])]
  const isOwn = own.some((name) => name && /^[0-9a-f]{12,64}$/.test(name) && found.Id.startsWith(name))
  if (isOwn || /^nightshift/.test(nameOf(found)))
    throw new CapabilityError('blocked', `${nameOf(found)} is Nightshift itself`)
}

async function watch(engine: ContainerEngine, before: Inspected, signal: AbortSignal): Promise<Inspected> {
  const until = performance.now() + watchMs
  for (;;) {
    const now = await inspect(engine, before.Id, signal)
    if (!now.State.Running)
      throw new CapabilityError(
        'failed',
        `${nameOf(now)} did not stay up: ${now.State.Status}, exit code ${now.State.ExitCode}`,
      )
    if (performance.now() >= until) {
      if (now.State.StartedAt !== before.State.StartedAt) return now
      throw new CapabilityError('failed', `${nameOf(now)} still runs, and was not restarted`)
    }
    await new Promise((resolve) => setTimeout(resolve, 500))
    signal.throwIfAborted()
  }
}

const clean = (text: string) => stripText(text, { keepNewlines: false }).slice(0, 200)
const nameOf = ({ Name }: Inspected) => clean(Name.replace(/^\//, ''))
