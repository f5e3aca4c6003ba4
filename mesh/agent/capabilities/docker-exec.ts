import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { quote } from '../../../safety/command/quote.ts'
import { readEnvironment } from '../../../safety/command/surroundings.ts'
import type { DeviceCapability } from '../capability.ts'
import { type Container, containerName, containerOf, engineId } from '../container.ts'
import { rehearseInContainer } from '../container-rehearsal.ts'
import { apart, ask, type Engine, lacksEngine, open } from '../engine.ts'
import { collect } from '../output.ts'
import { pids, processOf } from '../processes.ts'
import { answered, Refused, stopped } from '../refused.ts'
import { argvVerdict, defaultDirectory, weightOf } from '../verdict.ts'

const args = z.strictObject({
  container: containerName,
  argv: z
    .array(
      z
        .string()
        .max(32_768)
        .refine((word) => !word.includes('\0'), 'holds a NUL'),
    )
    .min(1)
    .max(1_000),
  user: z
    .string()
    .regex(/^[a-z_0-9][a-z0-9_-]{0,63}(?::[a-z_0-9][a-z0-9_-]{0,63})?$/, 'is no user')
    .optional(),
})

/**
 * Runs a program in a container, without a shell, a terminal or more rights than the container has: `{ container, stdout, stderr,
 * exit_code, cmd_executed }`. Judged as the same words on the device would be; what a read runs is the container's own program, with
 * the network and the files that the container has. At the deadline its processes are killed, where the agent can see that they
 * belong to the container; else `still_running` says that they go on.
 */
export function dockerExec(engine: Engine): DeviceCapability<z.infer<typeof args>> {
  return dockerExecIn(engine, new Map())
}

/** `lookedAt`: the container that a rehearsal of these arguments found last, by its id: what a person agrees to. */
const dockerExecIn = (engine: Engine, lookedAt: Map<string, string>): DeviceCapability<z.infer<typeof args>> => ({
  capability: 'docker.container.exec',
  args,
  lacks: () => lacksEngine(engine),
  weigh: ({ argv, container }) =>
    weightOf(argvVerdict(argv, defaultDirectory, { canLook: false }), `in ${container}: ${argv.map(quote).join(' ')}`),
  rehearse: ({ container, argv, user }, { signal }) =>
    answered(signal, async () => {
      const outcome = await rehearseInContainer(engine, { container, argv, user }, signal)
      if (outcome.ok) noteLook(lookedAt, keyOf({ container, argv, user }), String(outcome.result.container_id))
      return outcome
    }),
  run: ({ container, argv, user }, { manifest, signal, emit }) =>
    answered(signal, async () => {
      const { verdict, environment: switches } = argvVerdict(argv, defaultDirectory, { canLook: false })
      const environment = verdict === 'run' ? { ...readEnvironment, ...switches } : {}
      const found = await containerOf(engine, container, signal)
      const before = lookedAt.get(keyOf({ container, argv, user }))
      if (verdict !== 'run' && before !== undefined && before !== found.id)
        throw new Refused('conflict', `${container} is another container than the one that was looked at before`)
      const body = {
        ...{ AttachStdin: false, AttachStdout: true, AttachStderr: true, Tty: false, Privileged: false },
        Cmd: argv,
        Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
        ...(user !== undefined && { User: user }),
      }
      const path = `/containers/${found.id}/exec`
      const { Id: id } = await ask(engine, { method: 'POST', path, body }, z.looseObject({ Id: engineId }), signal)
      const output = collect(manifest.limits.output_bytes, emit)
      const told = (exit: object) => ({
        ...{ container: found.name, stdout: output.text('stdout'), stderr: output.text('stderr') },
        ...{ exit_code: null, cmd_executed: argv.map(quote).join(' '), ...exit },
      })
      try {
        const body = await open(engine, 'POST', `/exec/${id}/start`, signal, { Detach: false, Tty: false })
        try {
          for await (const { stream, bytes } of apart(body, false)) if (!output.take(stream, bytes)) break
        } finally {
          body.destroy()
          output.end()
        }
      } catch (error) {
        if (!signal.aborted) throw error
      }
      // A stream that ends with its connection ends without an error, too.
      if (signal.aborted) {
        const still = await end(engine, id, found)
        return { ...stopped(signal, told({ still_running: still })), truncated: output.truncated }
      }
      if (output.truncated) {
        const still = await end(engine, id, found)
        return { ok: true, result: told({ still_running: still }), truncated: true }
      }
      return { ok: true, result: told({ exit_code: await exitOf(engine, id, signal) }), truncated: false }
    }),
})

const keyOf = ({ container, argv, user }: z.infer<typeof args>): string =>
  JSON.stringify([container, argv, user ?? null])

/** More calls than these do not wait for a person at one time. */
const mostLooks = 200

function noteLook(lookedAt: Map<string, string>, key: string, id: string): void {
  lookedAt.delete(key)
  lookedAt.set(key, id)
  const [oldest] = lookedAt.keys()
  if (lookedAt.size > mostLooks && oldest !== undefined) lookedAt.delete(oldest)
}

const started = z.looseObject({
  Running: z.boolean(),
  ExitCode: z.number().int().nullish(),
  Pid: z.number().int().default(0),
})
const look = (engine: Engine, id: string, signal: AbortSignal) =>
  ask(engine, { method: 'GET', path: `/exec/${id}/json` }, started, signal)

/** The output may end a moment before the engine has heard of the end. */
async function exitOf(engine: Engine, id: string, signal: AbortSignal): Promise<number | null> {
  for (let round = 0; round < 40; round++) {
    const { Running, ExitCode } = await look(engine, id, signal)
    if (!Running) return ExitCode ?? null
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return null
}

/**
 * Kills what was started, and answers whether some of it goes on. The API has no call for that, so it is done by pid, and only where
 * the control group of the process names the container: an engine elsewhere counts pids of its own.
 */
async function end(engine: Engine, id: string, container: Container): Promise<boolean> {
  const patience = AbortSignal.timeout(3_000)
  try {
    const { Running, Pid } = await look(engine, id, patience)
    if (!Running) return false
    if (Pid <= 1 || !(await belongs(Pid, container))) return true
    for (const pid of await below(Pid)) if (await belongs(pid, container)) process.kill(pid, 'SIGKILL')
    return (await exitOf(engine, id, patience)) === null && (await look(engine, id, patience)).Running
  } catch {
    return true
  }
}

async function belongs(pid: number, { id }: Container): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')).includes(id)
}

/** A process and all that descend from it, as they stand now. */
async function below(first: number): Promise<number[]> {
  const parents = new Map<number, number>()
  for (const pid of await pids()) {
    const found = await processOf(pid)
    if (found) parents.set(pid, found.ppid)
  }
  const found = [first]
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child)
  return found
}
