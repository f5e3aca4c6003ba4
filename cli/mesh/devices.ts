import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { deviceTerms, executable, guests, listedDevice } from '../../domain/device.ts'
import { meshMode } from '../../domain/mesh.ts'
import { isThisMachine } from '../../domain/mesh-connection.ts'
import { listFaults } from '../../domain/schema-faults.ts'
import { findSandboxLack, sandboxRemedy } from '../../domain/status-words.ts'
import { journalLack } from '../../mesh/specs/host.ts'
import { serviceVerbs, sudoersLine, unitName } from '../../mesh/specs/unit.ts'
import { quote } from '../../safety/command/unwrapped.ts'
import { type ApiClient, ApiProblem } from '../api.ts'
import { type CliCommand, type ConnectionOptions, connect } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { listAll } from '../read-api.ts'
import { formatMoment, formatTable } from '../ui/table.ts'
import { collectValues, inert, parseOneOf, parseWholeNumber, print, printJson, printNote } from '../ui/terminal.ts'

// Accepts further fields, so that fields of a newer API still appear in --json.
export const apiDevice = listedDevice.loose()
type ApiDevice = z.infer<typeof apiDevice>

export function addDevicesCommand(parent: CliCommand): void {
  parent
    .command('devices')
    .description('devices, the resource that each acts for, and their state')
    .connected('\nExample:\n  nightshift mesh devices')
    .calls(async (api, options: ConnectionOptions) => {
      const devices = await listAll(api, '/api/v1/devices', apiDevice)
      if (options.json) return printJson(devices)
      const rows = devices.map((device) => [
        inert(device.id),
        inert(`${device.resource.kind}:${device.resource.id}`),
        device.mode,
        String(device.tools.length),
        inert(describeState(device)),
      ])
      print(formatTable(['NAME', 'FOR', 'MODE', 'TOOLS', 'STATE'], rows, 4))
      for (const device of devices)
        if (device.connection?.isConnected && !device.revokedAt)
          print(inert(`${device.id} ${describeConnection(device)}`))
      for (const { id, health, revokedAt } of devices) {
        const lack = revokedAt ? null : findSandboxLack(health)
        if (lack !== null) print(inert(`${id} does not confine what it reads (${lack}): ${sandboxRemedy}.`))
      }
      for (const { id, health, revokedAt } of devices) {
        const lack = revokedAt ? undefined : health?.unavailable[journalLack]
        if (lack !== undefined) print(inert(`${id}: ${lack}`))
      }
      for (const { id, terms } of devices)
        for (const words of terms.root_reads ?? [])
          print(inert(`root reads on ${id} with: sudo -n ${words.map(quote).join(' ')}`))
    })
}

function describeState(device: ApiDevice): string {
  const { revokedAt, enrolledAt, enabled, manifestExpiresAt, health, healthProblem, url, connection } = device
  if (revokedAt) return 'revoked'
  if (!enrolledAt) return 'not enrolled'
  if (!enabled) return 'switched off'
  if (manifestExpiresAt && Date.parse(manifestExpiresAt) <= Date.now()) return 'its manifest has expired'
  if (url === null && !connection?.isConnected) return describeConnection(device)
  if (healthProblem) return `no answer: ${healthProblem}`
  if (!health) return 'not checked yet'
  if (health.status !== 'ready') return `refuses: ${health.reason ?? 'the agent gives no reason'}`
  return findSandboxLack(health) === null ? 'ready' : 'ready, but each read needs approval'
}

/**
 * Describes the connection of an agent that connects to the API: since when it exists or is lost,
 * from which address, and to which process.
 */
function describeConnection({ connection }: ApiDevice): string {
  if (!connection) return 'calls out, has not connected yet'
  const { isConnected, since, address, process, agentVersion } = connection
  if (!isConnected) return `calls out, not connected since ${since ? formatMoment(since) : 'some time ago'}`
  return `is connected since ${since ? formatMoment(since) : 'some time'}, from ${address}, to ${process} (agent ${agentVersion})`
}

type Root = { path: string; writable: boolean }
type EnrollOptions = ConnectionOptions & {
  address?: string
  callsOut?: boolean
  addressVariable?: string
  mode?: string
  root: Root[]
  for?: { kind: string; id: string }
  tool: string[]
  capability: string[]
  program: string[]
  rootRead: string[][]
  rootReads: boolean
  gitHost: string[]
  service: string[]
  agentUser: string
  check: { path: string; argv: string[] }[]
  guests?: string
  timeoutSeconds?: number
  days?: number
  reason?: string
}

/** Adds the options of `mesh enroll`: the calls that a device allows, and its address. */
const declareEnroll = (parent: CliCommand): CliCommand =>
  parent
    .command('enroll')
    .description('add or change a device; prints the command that enrols it, which works once, within 15 minutes')
    .argument('<name>', 'name of the node, host or VM; --for names another resource')
    .option(
      '--address <url>',
      'the agent listens at this address: https, or http on a private network; without it the agent calls out',
    )
    .option('--calls-out', 'let the agent of a device connect out from now on instead of listening')
    .option(
      '--address-variable <name>',
      'an environment variable of the API that overrides the address: <NAME>_DEVICE_MESH_URL',
    )
    .option('--mode <mode>', `one of ${meshMode.options.join(', ')}`, parseOneOf(meshMode.options))
    .option('--root <path>', 'directory with readable files; with :rw also writable; repeatable', collectRoot, [])
    .option('--for <resource>', 'the resource that the device represents, such as host:host-osl-1', parseResource)
    .option('--tool <name>', 'allow only this tool; repeatable', collectValues, [])
    .option('--capability <name>', 'list only this capability in the manifest; repeatable', collectValues, [])
    .option('--program <name>', 'let only this reading program run without approval; repeatable', collectValues, [])
    .option(
      '--root-read <command>',
      'let root run exactly this command without approval: words between spaces, or a JSON list; repeatable',
      collectRootRead,
      [],
    )
    .option('--no-root-reads', 'let root run no command without approval')
    .option(
      '--service <unit>',
      'print the sudoers lines that let the agent restart, start and stop this service; repeatable',
      collectUnit,
      [],
    )
    .option('--agent-user <name>', 'the user that the agent runs as, for the sudoers lines', 'nightshift-agent')
    .option('--git-host <host>', 'host that may be cloned from and pushed to; repeatable', collectValues, [])
    .option(
      '--check <path=command>',
      'this command checks a copy before the file at this path is written; {path} is the copy',
      collectCheck,
      [],
    )
    .option(
      '--guests <how>',
      `reach guests without an agent by: ${guests.options.join(', ')}`,
      parseOneOf(guests.options),
    )
    .option('--timeout-seconds <n>', 'how long one call may take (default 60)', parseWholeNumber)
    .option('--days <n>', 'how long a manifest is valid (default 90)', parseWholeNumber)
    .option('--reason <text>', 'reason, recorded in the audit log')

export function addEnrollCommand(parent: CliCommand): void {
  declareEnroll(parent)
    .connected(
      '\nExample:\n  nightshift mesh enroll node-osl-1 --mode user --root /srv:rw --root /var/log\n  nightshift mesh enroll node-osl-2 --mode user --address http://10.42.0.11:7474',
    )
    .action(async (name: string, options: EnrollOptions) => {
      const { api, target } = connect(options)
      const path = `/api/v1/devices/${encodeURIComponent(name)}`
      const before = await findDevice(api, path)
      const settings = buildSettings(name, before, options)
      await api.put(path, settings)
      const minted = mintedToken.parse(await api.post(`${path}/enrolment`))
      const command = buildCommand(minted, settings.url, target.url)
      const sudoers = options.service.map((unit) => sudoersLine(options.agentUser, ...buildVerbs(unit)))
      if (options.json) return printJson({ device: name, ...minted, command, sudoers })
      print(command)
      printNote(
        `Run this command on ${inert(name)} before ${formatMoment(minted.expiresAt)}. The command works once and is not shown again.`,
      )
      printNote(inert(describeWay(name, settings.url, minted.url ?? target.url)))
      if (sudoers.length === 0) return
      printNote(
        'For repairs of services, put these lines into /etc/sudoers.d/nightshift on the device, and check the file with "visudo -c":',
      )
      print(sudoers.join('\n'))
    })
}

const mintedToken = z.looseObject({
  token: z.string(),
  expiresAt: z.string(),
  url: z.string().nullish(),
  caSha256: z.string().nullish(),
})

/** Builds the command to run on the host, for an agent that connects to the API or that listens. */
function buildCommand(
  { token, url, caSha256 }: z.infer<typeof mintedToken>,
  address: string | null,
  asked: string,
): string {
  const api = url ?? asked
  if (address !== null) return `nightshift mesh agent enroll --api ${api} --token ${token}`
  return `nightshift agent --connect ${api} --token ${token}${caSha256 ? ` --ca-sha256 ${caSha256}` : ''}`
}

/** Explains whether the agent connects or listens, and why. */
function describeWay(name: string, address: string | null, api: string): string {
  if (address !== null)
    return `${name} listens at ${address}, because an address is set. The API connects to this address, so open the port to the API. To open no port: --calls-out.`
  const { protocol, hostname } = new URL(api)
  const way = `${name} calls out, because no address is set. Its agent keeps one connection to ${api} and opens no port.`
  if (isThisMachine(hostname))
    return `${way} Only this machine reaches that address. For another host, set PUBLIC_URL of the API.`
  if (protocol === 'http:')
    return `${way} That address is plain http, which an agent on another machine refuses. Put TLS before the API (docs/how-to/production.md).`
  return way
}

const buildVerbs = (unit: string) => serviceVerbs.map((verb) => ['/usr/bin/systemctl', verb, unit])

function collectUnit(text: string, before: string[]): string[] {
  const unit = unitName.safeParse(text.includes('.service') ? text : `${text}.service`)
  if (!unit.success) throw new InvalidArgumentError(`${text} ${listFaults(unit.error)[0]?.message}.`)
  return [...before, unit.data]
}

async function findDevice(api: ApiClient, path: string): Promise<ApiDevice | null> {
  return await api.get(path).then(apiDevice.parse, (error: unknown) => {
    if (error instanceof ApiProblem && error.problem.status === 404) return null
    throw error
  })
}

/**
 * Builds the settings of the device from the options. A setting without an option keeps its value.
 */
function buildSettings(
  name: string,
  before: ApiDevice | null,
  options: EnrollOptions,
): Record<string, unknown> & { url: string | null } {
  if (options.callsOut && options.address) throw new CommandFailed('usage', 'Give --calls-out or --address, not both.')
  const url = options.callsOut ? null : (options.address ?? before?.url ?? null)
  const mode = options.mode ?? before?.mode
  if (!mode) throw new CommandFailed('usage', `There is no device ${name} yet: give --mode.`)
  const orOld = <T>(list: T[], old: T[] | undefined) => (list.length > 0 ? list : (old ?? []))
  const terms = before?.terms
  const rootReads = options.rootReads ? orOld(options.rootRead, terms?.root_reads) : []
  return {
    ...(!before && options.for && { resource: options.for }),
    url,
    mode,
    urlEnv: options.addressVariable ?? before?.urlEnv ?? null,
    guests: options.guests ?? before?.guests ?? null,
    timeoutSeconds: options.timeoutSeconds ?? before?.timeoutSeconds ?? 60,
    manifestDays: options.days ?? before?.manifestDays ?? 90,
    toolsAllowed: orOld(options.tool, before?.toolsAllowed),
    enabled: before?.enabled ?? true,
    terms: deviceTerms.parse({
      ...terms,
      capabilities: orOld(options.capability, terms?.capabilities),
      roots: orOld(options.root, terms?.roots),
      auto_approve: orOld(options.program, terms?.auto_approve),
      // Leaves the field out if it is empty, because an older API does not accept it.
      root_reads: rootReads.length > 0 ? rootReads : undefined,
      git_hosts: orOld(options.gitHost, terms?.git_hosts),
      checks: orOld(options.check, terms?.checks),
    }),
    reason: options.reason ?? null,
  }
}

function collectRoot(text: string, before: Root[]): Root[] {
  const [, path, way] = /^(\/.*?)(?::(rw|ro))?$/.exec(text) ?? []
  if (!path) throw new InvalidArgumentError('Write an absolute path, with :rw if the agent may write there.')
  return [...before, { path, writable: way === 'rw' }]
}

/**
 * Adds a check, such as `/etc/nginx/nginx.conf=nginx -t -c {path}`. Spaces separate the words of
 * the command, which runs without a shell.
 */
function collectCheck(text: string, before: EnrollOptions['check']): EnrollOptions['check'] {
  const [, path, command] = /^(\/[^=]*)=(.+)$/.exec(text) ?? []
  if (!path || !command) throw new InvalidArgumentError('Write <path>=<command>.')
  return [...before, { path, argv: command.split(/ +/).filter(Boolean) }]
}

/**
 * Adds a read as root, such as `/usr/bin/ss -tlnp`, or `["/usr/bin/cat", "/var/log/app log"]` for
 * arguments with spaces. The read runs without a shell.
 */
function collectRootRead(text: string, before: string[][]): string[][] {
  try {
    const words: unknown = text.startsWith('[') ? JSON.parse(text) : text.split(/ +/).filter(Boolean)
    const parsed = deviceTerms.shape.root_reads.unwrap().safeParse([words])
    if (parsed.success) return [...before, ...parsed.data]
  } catch {}
  throw new InvalidArgumentError('Write a program with its arguments, or a JSON list of them.')
}

function parseResource(text: string): { kind: string; id: string } {
  const [kind, id] = text.split(':')
  const parsed = executable.safeParse({ kind, id })
  if (!parsed.success) throw new InvalidArgumentError('Write node:<id>, host:<id> or vm:<id>.')
  return parsed.data
}
