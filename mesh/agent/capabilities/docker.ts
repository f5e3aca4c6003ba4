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
 * `{ container, stdout, stderr, exit_code, cmd_executed }`. Judged as the same words on the device
 * would be; what a read runs is the container's own program, with the network and the files that
 * the container has. At the deadline its processes are killed, where the agent can see that they
 * belong to the container; else `still_running` says that they go on.
 */
function dockerExec(engine: ContainerEngine): DeviceCapability<z.infer<typeof dockerExecArgs>> {
  return dockerExecIn(engine, new Map())
}

type ExecArgs = z.infer<typeof dockerExecArgs>

/**
 * `lookedAt`: the container that a rehearsal of these arguments found last, by its id: what a
 * person agrees to.
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

/** Runs a command in a container. `agreedId`: the container of the look before the agreement. */
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
    throw new CapabilityError('conflict', `${container} is another container than the one that was looked at before`)
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
  // A stream that ends with its connection ends without an error, too.
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

/** More calls than these do not wait for a person at one time. */
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

/** The output may end a moment before the engine has heard of the end. */
async function exitOf(engine: ContainerEngine, id: string, signal: AbortSignal): Promise<number | null> {
  for (let round = 0; round < 40; round++) {
    const { Running, ExitCode } = await inspectExec(engine, id, signal)
    if (!Running) return ExitCode ?? null
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return null
}

/**
 * Kills what was started, and answers whether some of it goes on. The API has no call for that, so
 * it is done by pid, and only where the control group of the process names the container: an engine
 * on another machine has other pids.
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

/** A process and all that descend from it, as they stand now. */
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
    // Seconds since 1970, as far as a date of four digits goes.
    Created: z.number().int().min(0).max(253_402_300_799),
    State: word(40),
    Status: word(),
    Ports: z.array(port).nullish(),
  }),
)

const max = 500
const maxPorts = 50

/**
 * Containers that run, with `all` the stopped ones too:
 * `{ containers: [{ id, name, image, command, state, status, created, ports }] }`.
 */
const dockerList = (engine: ContainerEngine): DeviceCapability<z.infer<typeof dockerListArgs>> => ({
  capability: 'docker.container.list',
  args: dockerListArgs,
  missingPrerequisite: () => missingEngine(engine),
  weigh: () => ({ effect: 'read', reason: 'only looks', command: null }),
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
 * The last lines of a container, both outputs as they came: `{ container, id, output }`. Each line
 * is emitted as it comes. What was read until a deadline or cancel is kept.
 */
const dockerLogs = (engine: ContainerEngine): DeviceCapability<z.infer<typeof dockerLogsArgs>> => ({
  capability: 'docker.container.logs',
  args: dockerLogsArgs,
  missingPrerequisite: () => missingEngine(engine),
  weigh: () => ({ effect: 'read', reason: 'only looks', command: null }),
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
        // Ended by us: what was heard until then is the answer.
        if (follow_seconds === undefined || signal.aborted || !body.destroyed) throw error
      } finally {
        clearTimeout(enough)
        body.destroy()
        output.end()
      }
      const text = output.text('stdout')
      const result = { container: found.name, id: found.id.slice(0, 12), output: text }
      // As many lines as were asked for: there may be older ones.
      return { ok: true, result, truncated: output.truncated || text.split('\n').length > tail }
    }),
})

/** The four on one engine; `host` as DOCKER_HOST writes it, which only an entry file reads. */
export function dockerOn(host: string | undefined) {
  const engine = engineAt(host)
  return {
    list: dockerList(engine),
    logs: dockerLogs(engine),
    exec: dockerExec(engine),
    restart: containerRestart(engine),
  }
}
