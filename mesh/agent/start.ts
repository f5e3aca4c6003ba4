import { createHash, createPrivateKey } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { readPublicKey } from '../sign.ts'
import { type Agent, openAgent } from './agent.ts'
import { bootId, groupMembersOf, lock, startTicksOf, terminate } from './agent-processes.ts'
import type { MachineOverrides } from './agent-state.ts'
import { describeConfinement, keepConfinement } from './confine.ts'
import { keepConnected } from './connection.ts'
import { keepIfBelieved, type Places, readConnection } from './enrolment.ts'
import { type Journal, type JournalOptions, openJournal } from './journal.ts'
import { type AgentAddress, whyTls } from './manifest.ts'
import { rehearsalsIn, sweepRehearsals } from './rehearsal.ts'
import type { HiddenPaths } from './sandboxes.ts'
import { serve } from './server.ts'
import { endStanding, keepStanding } from './standing.ts'
import { enrolledName, leaveFormerName, pinName } from './state-folder.ts'
import { openNonces } from './verify-request.ts'

export type AgentOptions = {
  manifestFile: string
  /**
   * The address where the agent listens. Null if the agent connects to the API of its enrolment.
   */
  address: AgentAddress | null
  state: string
  rootKeyFile: string
  tls: { cert: string; key: string } | null
  acceptLostJournal: boolean
  version: string
} & MachineOverrides

/** Milliseconds between disk writes of journal entries for reads. A write waits for its entry. */
const syncMs = 1_000
/**
 * Seconds after which a temporary copy counts as orphaned. No request may take more than an hour.
 */
const rehearsalSeconds = 7_200

/**
 * Starts the agent, and resolves when it accepts requests. Throws the reason in words if the agent
 * may not start with these options.
 */
export async function startAgent(options: AgentOptions, journalOptions: JournalOptions = {}) {
  const { address, tls } = options
  // Resolves the path once, because commands and dry runs use other directories.
  const state = resolve(options.state)
  const refusal = tls || !address ? null : whyTls(address)
  if (refusal) throw new Error(refusal)
  mkdirSync(rehearsalsIn(state), { recursive: true, mode: 0o700 })
  closeToOthers(state)
  const rootKey = readRootKey(options.rootKeyFile)
  const certificate = tls && { cert: readOr(tls.cert, 'The certificate'), key: readOr(tls.key, 'Its key') }

  const release = lock(state)
  leaveFormerName(state)
  // Opens the journal before the nonces. A file of nonces without a journal means that the journal
  // was lost.
  const journal = openJournal(state, journalOptions)
  const nonces = openNonces(state, Date.now())
  journal.append({ kind: 'started', version: options.version, boot: bootId() })
  if (options.acceptLostJournal && journal.lost() !== null) journal.append({ kind: 'loss_accepted' })
  await endLeftovers(journal)
  await journal.durable()

  await sweepRehearsals(state, 0)
  const hidden = hiddenFor(state, [options.rootKeyFile, options.manifestFile, ...(tls ? [tls.key] : [])])
  const confinement = await keepConfinement(hidden, (words) => console.error(`Now ${words}.`))
  const agent = await openAgent({
    state,
    hidden: hidden.paths,
    manifestFile: options.manifestFile,
    rootKey,
    device: enrolledName(state),
    version: options.version,
    journal,
    nonces,
    confinement,
    dockerHost: options.dockerHost,
    aptOptions: options.aptOptions,
    systemctl: options.systemctl,
    journalctl: options.journalctl,
    nowMs: Date.now,
  })
  pinNameOf(agent, state)
  const reload = async () => {
    await agent.reload()
    pinNameOf(agent, state)
  }
  const door = address ? await listen(agent, address, certificate) : callOut(agent, { ...options, state }, reload)
  if (address) endStanding(state)
  const syncing = setInterval(() => {
    void journal.durable().catch(report)
    door.note()
  }, syncMs)
  const sweeping = setInterval(() => void sweepRehearsals(state, rehearsalSeconds).catch(() => undefined), 600_000)

  return {
    agent,
    confined: describeConfinement(confinement),
    url: door.url,
    reload,
    async stop() {
      clearInterval(syncing)
      clearInterval(sweeping)
      door.close()
      await agent.close()
      door.end()
      release()
    },
  }
}

function pinNameOf(agent: Agent, state: string): void {
  const name = agent.deviceName()
  if (name !== null && enrolledName(state) === null) pinName(state, name)
}

function readRootKey(file: string) {
  const key = readPublicKey(readOr(file, 'The root key').trim())
  if (!key) throw new Error(`${file} has no ed25519 public key (base64 of its SPKI).`)
  return key
}

/**
 * The agent's way to requests. `close` stops accepting requests, `end` ends open connections,
 * `note` writes the state of an agent without a port.
 */
type Door = { url: string; close(): void; end(): void; note(): void }

async function listen(
  agent: Agent,
  { host, port }: AgentAddress,
  certificate: { cert: string; key: string } | null,
): Promise<Door> {
  const server = serve(agent, certificate)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  const taken = (server.address() as { port: number }).port
  return {
    url: `${certificate ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    close: () => void server.close(),
    end: () => server.closeAllConnections(),
    note() {},
  }
}

function callOut(agent: Agent, options: AgentOptions, reload: () => Promise<void>): Door {
  const { state, manifestFile: manifest, rootKeyFile: rootKey, version } = options
  const places: Places = { state, manifest, rootKey }
  const { api, ca, key } = readConnection(places)
  const device = enrolledName(state)
  if (device === null) throw new Error(`The manifest in ${state} names no device: enrol this host again.`)
  const audience = createHash('sha256').update(readOr(rootKey, 'The root key').trim()).digest('hex')
  let said = `The agent has not reached ${api} yet`
  const connection = keepConnected(
    agent,
    { api, ca, key: { id: 'agent', key: createPrivateKey(key) }, device, audience, version },
    {
      say(words) {
        said = words
        console.error(`${words}.`)
      },
      async manifest(found) {
        if (found.id === agent.health().manifest_id) return
        keepIfBelieved(places, found, device)
        await reload()
      },
    },
  )
  const standing = keepStanding(state, () => {
    const { status, reason } = agent.health()
    return { isConnected: connection.isConnected(), said, status, reason }
  })
  standing.note()
  return { url: api, close() {}, end: () => connection.stop(), note: standing.note }
}

/**
 * Ends processes that an earlier agent left running, because no client waits for them and no
 * deadline ends them.
 */
async function endLeftovers(journal: Journal): Promise<void> {
  const boot = bootId()
  for (const { process: started, requestId } of journal.index.open()) {
    // Finds the processes only by the marker if the pid may have been reused.
    const isSame = started !== null && started.boot === boot && startTicksOf(started.pid) === started.startTicks
    const leader = isSame ? started.pid : nobody
    if (groupMembersOf(leader, requestId).length > 0) await terminate(leader, requestId, false)
  }
}

const nobody = -1

/** Closes the state directory to other users. A directory of another user keeps its modes. */
function closeToOthers(state: string): void {
  try {
    chmodSync(state, 0o700)
  } catch {
    // Ignores the error, because the directory belongs to another user.
  }
}

/** Lists the paths that are hidden from reads: the state, and the agent's files elsewhere. */
function hiddenFor(state: string, files: readonly string[]): HiddenPaths {
  const paths = [state, ...files.map((file) => resolve(file))].filter((path) => existsSync(path))
  return {
    paths: [...new Set(paths.flatMap((path) => [path, realpathSync(path)]))],
    rehearsals: rehearsalsIn(realpathSync(state)),
  }
}

function readOr(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`${what} cannot be read: ${(error as Error).message}`)
  }
}

function report(error: unknown): void {
  console.error(
    `The journal could not be written to the disk: ${error instanceof Error ? error.message : String(error)}`,
  )
}
