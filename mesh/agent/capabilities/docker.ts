import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { readEnvironment } from '../../../safety/command/surroundings.ts'
import { quote } from '../../../safety/command/unwrapped.ts'
import { redact, stripText } from '../../../safety/redact.ts'
import { dockerExecArgs, dockerListArgs, dockerLogsArgs } from '../../specs/docker.ts'
import {
  type CapabilityContext,
  CapabilityError,
  type CapabilityOutcome,
  type DeviceCapability,
  stoppedOutcome,
  toOutcome,
} from '../capability.ts'
import { rehearseInContainer } from '../container-rehearsal.ts'
import {
  type Container,
  type ContainerEngine,
  containerOf,
  demultiplex,
  engineAt,
  engineId,
  missingEngine,
  open,
  requestJson,
  word,
} from '../engine.ts'
import { argvVerdict, defaultDirectory, weightOf } from '../guard.ts'
import { pids, processOf } from '../programs.ts'
import { collect } from '../run.ts'
import { containerRestart } from './container-restart.ts'

/**
 * Runs a program in a container, without a shell, a terminal or more rights than the container has:
 * `{ container, stdout, stderr, exit_code, cmd_executed }`. The guard judges the command like a
 * command on the device. Even a read runs the container's own program, with the container's network
 * and files. At the deadline the processes are killed if the agent can see that they belong to the
 * container; otherwise `still_running` reports that they continue.
 */
function dockerExec(engine: ContainerEngine): DeviceCapability<z.infer<typeof dockerExecArgs>> {
  return dockerExecIn(engine, new Map())
}

type ExecArgs = z.infer<typeof dockerExecArgs>

/**
 * `lookedAt`: the id of the container that the last dry run found, by the call's arguments. A
 * person approves this container.
 */
const dockerExecIn = (engine: ContainerEngine, lookedAt: Map<string, string>): DeviceCapability<ExecArgs> => ({
  capability: 'docker.container.exec',
  args: dockerExecArgs,
  missingPrerequisite: () => missingEngine(engine),
  weigh: ({ argv, container }) =>
    weightOf(argvVerdict(argv, defaultDirectory, { canLook: false }), `in ${container}: ${argv.map(quote).join(' ')}`),
  rehearse: ({ container, argv, user }, { signal }) =>
    toOutcome(signal, async () => {
      const outcome = await rehearseInContainer(engine, { container, argv, user }, signal)
      if (outcome.ok) noteLook(lookedAt, keyOf({ container, argv, user }), String(outcome.result.container_id))
      return outcome
    }),
  run: (args, context) =>
    toOutcome(context.signal, () => execInContainer(engine, args, lookedAt.get(keyOf(args)), context)),
})

/** Runs a command in a container. `agreedId` is the id of the container that a dry run found. */
async function execInContainer(
  engine: ContainerEngine,
  args: ExecArgs,
  agreedId: string | undefined,
  { manifest, signal, emit }: CapabilityContext,
): Promise<CapabilityOutcome> {
  const { container, argv } = args
  const { verdict, environment: switches } = argvVerdict(argv, defaultDirectory, { canLook: false })
  const found = await containerOf(engine, container, signal)
  if (verdict !== 'run' && agreedId !== undefined && agreedId !== found.id)
    throw new CapabilityError('conflict', `${container} is not the container that was checked before`)
  const id = await createExec(engine, found, args, verdict === 'run' ? { ...readEnvironment, ...switches } : {}, signal)
  const output = collect(manifest.limits.output_bytes, emit)
  try {
    const body = await open(engine, 'POST', `/exec/${id}/start`, signal, { Detach: false, Tty: false })
    try {
      for await (const { stream, bytes } of demultiplex(body, false)) if (!output.take(stream, bytes)) break
    } finally {
      body.destroy()
      output.end()
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  const report = (exit: object) => ({
    container: found.name,
    stdout: output.text('stdout'),
    stderr: output.text('stderr'),
    exit_code: null,
    cmd_executed: argv.map(quote).join(' '),
    ...exit,
  })
  // Checks the signal: an output that ends with its connection causes no error.
  if (signal.aborted) {
    const still = await killExec(engine, id, found)
    return { ...stoppedOutcome(signal, report({ still_running: still })), truncated: output.truncated }
  }
  if (output.truncated) {
    const still = await killExec(engine, id, found)
    return { ok: true, result: report({ still_running: still }), truncated: true }
  }
  return { ok: true, result: report({ exit_code: await exitOf(engine, id, signal) }), truncated: false }
}

async function createExec(
  engine: ContainerEngine,
  found: { id: string },
  { argv, user }: ExecArgs,
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<string> {
  const body = {
    AttachStdin: false,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    Privileged: false,
    Cmd: argv,
    Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    ...(user !== undefined && { User: user }),
  }
  const path = `/containers/${found.id}/exec`
  const answered = z.looseObject({ Id: engineId })
  return (await requestJson(engine, { method: 'POST', path, body }, answered, signal)).Id
}

const keyOf = ({ container, argv, user }: ExecArgs): string => JSON.stringify([container, argv, user ?? null])

/** The most dry runs that are remembered. Fewer calls wait for an approval at one time. */
const maxLooks = 200

function noteLook(lookedAt: Map<string, string>, key: string, id: string): void {
  lookedAt.delete(key)
  lookedAt.set(key, id)
  const [oldest] = lookedAt.keys()
  if (lookedAt.size > maxLooks && oldest !== undefined) lookedAt.delete(oldest)
}

const started = z.looseObject({
  Running: z.boolean(),
  ExitCode: z.number().int().nullish(),
  Pid: z.number().int().default(0),
})
const inspectExec = (engine: ContainerEngine, id: string, signal: AbortSignal) =>
  requestJson(engine, { method: 'GET', path: `/exec/${id}/json` }, started, signal)

/** Reads the exit code repeatedly, because the output may end before the engine knows the code. */
async function exitOf(engine: ContainerEngine, id: string, signal: AbortSignal): Promise<number | null> {
  for (let round = 0; round < 40; round++) {
    const { Running, ExitCode } = await inspectExec(engine, id, signal)
    if (!Running) return ExitCode ?? null
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return null
}

/**
 * Kills the started processes, and returns whether some may continue. The engine's API cannot end
 * them, so they are killed by pid. Kills a process only if its control group names the container:
 * an engine on another machine has other pids.
 */
async function killExec(engine: ContainerEngine, id: string, container: Container): Promise<boolean> {
  const patience = AbortSignal.timeout(3_000)
  try {
    const { Running, Pid } = await inspectExec(engine, id, patience)
    if (!Running) return false
    if (Pid <= 1 || !(await isInContainer(Pid, container))) return true
    for (const pid of await descendantsOf(Pid)) if (await isInContainer(pid, container)) process.kill(pid, 'SIGKILL')
    return (await exitOf(engine, id, patience)) === null && (await inspectExec(engine, id, patience)).Running
  } catch {
    return true
  }
}

async function isInContainer(pid: number, { id }: Container): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')).includes(id)
}

/** Lists a process and all its present descendants by pid. */
async function descendantsOf(first: number): Promise<number[]> {
  const parents = new Map<number, number>()
  for (const pid of await pids()) {
    const found = await processOf(pid)
    if (found) parents.set(pid, found.ppid)
  }
  const found = [first]
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child)
  return found
}

const port = z.looseObject({
  IP: word(64).optional(),
  PrivatePort: z.number(),
  PublicPort: z.number().optional(),
  Type: word(10),
})
const listed = z.array(
  z.looseObject({
    Id: engineId,
    Names: z.array(word()).default([]),
    Image: word(),
    Command: z.string().default(''),
    // Seconds since 1970, up to the year 9999.
    Created: z.number().int().min(0).max(253_402_300_799),
    State: word(40),
    Status: word(),
    Ports: z.array(port).nullish(),
  }),
)

const max = 500
const maxPorts = 50

/**
 * Lists running containers, and with `all` stopped ones too: `{ containers: [{ id, name, image,
 * command, state, status, created, ports }] }`.
 */
const dockerList = (engine: ContainerEngine): DeviceCapability<z.infer<typeof dockerListArgs>> => ({
  capability: 'docker.container.list',
  args: dockerListArgs,
  missingPrerequisite: () => missingEngine(engine),
  weigh: () => ({ effect: 'read', reason: 'only reads', command: null }),
  run: ({ all }, { signal }) =>
    toOutcome(signal, async () => {
      const found = await requestJson(engine, { method: 'GET', path: `/containers/json?all=${all}` }, listed, signal)
      const containers = found.slice(0, max).map((one) => ({
        id: one.Id.slice(0, 12),
        name: one.Names[0]?.replace(/^\//, '') ?? null,
        image: one.Image,
        command: redact(stripText(one.Command, { keepNewlines: false }))
          .slice(0, 300)
          .toWellFormed(),
        state: one.State,
        status: one.Status,
        created: new Date(one.Created * 1_000).toISOString(),
        ports: (one.Ports ?? [])
          .slice(0, maxPorts)
          .map(
            ({ IP, PrivatePort, PublicPort, Type }) =>
              `${PublicPort === undefined ? '' : `${IP ?? ''}:${PublicPort}->`}${PrivatePort}/${Type}`,
          ),
      }))
      return { ok: true, result: { containers, total: found.length }, truncated: found.length > max }
    }),
})

/**
 * Reads a container's last lines of both outputs, in order: `{ container, id, output }`. Emits each
 * line when it comes. Keeps the output that came before a deadline or cancellation.
 */
const dockerLogs = (engine: ContainerEngine): DeviceCapability<z.infer<typeof dockerLogsArgs>> => ({
  capability: 'docker.container.logs',
  args: dockerLogsArgs,
  missingPrerequisite: () => missingEngine(engine),
  weigh: () => ({ effect: 'read', reason: 'only reads', command: null }),
  run: ({ container, tail, since_seconds, follow_seconds }, { manifest, signal, emit }) =>
    toOutcome(signal, async () => {
      const found = await containerOf(engine, container, signal)
      const query = new URLSearchParams({ stdout: 'true', stderr: 'true', tail: String(tail) })
      if (since_seconds !== undefined) query.set('since', String(Math.floor(Date.now() / 1_000) - since_seconds))
      if (follow_seconds !== undefined) query.set('follow', 'true')
      const body = await open(engine, 'GET', `/containers/${found.id}/logs?${query}`, signal)
      const enough = setTimeout(() => body.destroy(), (follow_seconds ?? 3_600) * 1_000)
      const output = collect(manifest.limits.output_bytes, emit)
      try {
        for await (const { bytes } of demultiplex(body, found.terminal)) if (!output.take('stdout', bytes)) break
      } catch (error) {
        // Returns the output up to now if the agent itself ended the reading.
        if (follow_seconds === undefined || signal.aborted || !body.destroyed) throw error
      } finally {
        clearTimeout(enough)
        body.destroy()
        output.end()
      }
      const text = output.text('stdout')
      const result = { container: found.name, id: found.id.slice(0, 12), output: text }
      // Reports as many lines as requested as cut, because older lines may exist.
      return { ok: true, result, truncated: output.truncated || text.split('\n').length > tail }
    }),
})

/**
 * Returns the four capabilities of one engine. `host` has the form of DOCKER_HOST, which only entry
 * files read.
 */
export function dockerOn(host: string | undefined) {
  const engine = engineAt(host)
  return {
    list: dockerList(engine),
    logs: dockerLogs(engine),
    exec: dockerExec(engine),
    restart: containerRestart(engine),
  }
}
