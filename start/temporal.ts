import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import {
  connectionOptions,
  explainTrouble,
  foreignNamespace,
  onceNamespaceIsKnown,
  type TemporalSettings,
} from '../clients/temporal.ts'
import { queueScheduleId } from '../domain/step-key.ts'
import { ForeignScheduleError, keepSchedule, type ScheduleOptions, scheduleFault } from '../worker/schedule.ts'
import { ensureSearchAttributes, searchAttributeFaults } from '../worker/search-attributes.ts'
import { freePort, isFree, isListening, type RunningProcess, releasePort, startProcess, waitFor } from './process.ts'
import type { Ledger } from './process-table.ts'

/** The search attributes that the workflows set, all of type Keyword. */
export const searchAttributes = ['IncidentType', 'Severity', 'Target', 'Role', 'Status']

interface TemporalOptions {
  /** The path of the Temporal CLI. */
  cli: string
  /** The directory in which workflows are stored. Null keeps them in memory. */
  dir: string | null
  /** The first ports to try. If absent, any free ports are used. */
  ports?: { frontend: number; ui: number }
  searchAttributes: string[]
  logFile: string
  ledger?: Ledger | undefined
  env: Record<string, string | undefined>
  /** Called with the name of a slow step. */
  progress?: (text: string) => void
  onExit?: Parameters<typeof startProcess>[0]['onExit']
}

export interface Temporal {
  address: string
  uiUrl: string
  process: RunningProcess
  stop(graceMs?: number): Promise<void>
}

/**
 * Starts Temporal's development server on 127.0.0.1. Returns when the server responds for the
 * namespace `default`. Skips ports that are in use. Not for production, because the server is one
 * process with one SQLite file.
 */
export async function startTemporal(options: TemporalOptions): Promise<Temporal> {
  if (options.dir !== null) mkdirSync(options.dir, { recursive: true, mode: 0o700 })
  for (let attempt = 1; ; attempt++) {
    const frontend = await freePort(options.ports?.frontend)
    const ui = await freePort(options.ports?.ui)
    let ready = false
    const server = await startProcess({
      name: 'temporal',
      command: options.cli,
      args: [...serverArgs(options), '--port', String(frontend), '--ui-port', String(ui)],
      // Passes only the variables that the server needs, because a TEMPORAL_* variable or a
      // configuration file of the user would misconfigure the server's client.
      env: { PATH: options.env.PATH, HOME: options.env.HOME, TMPDIR: options.env.TMPDIR },
      logFile: options.logFile,
      ledger: options.ledger,
      onExit: (exit) => ready && options.onExit?.(exit),
    })
    const stop = async (graceMs?: number) => {
      await server.stop(graceMs)
      releasePort(frontend)
      releasePort(ui)
    }
    const address = `127.0.0.1:${frontend}`
    try {
      await waitFor(server, () => whyNotReady(address), { progress: options.progress })
      ready = true
      return { address, uiUrl: `http://127.0.0.1:${ui}`, process: server, stop }
    } catch (error) {
      const lostPort = server.hasExited() && !((await isFree(frontend)) && (await isFree(ui)))
      await stop(0)
      // Tries again if another program took a port between the search and the start.
      if (!lostPort || attempt === 5) throw error
    }
  }
}

function serverArgs(options: TemporalOptions): string[] {
  const args = ['server', 'start-dev', '--ip', '127.0.0.1', '--log-level', 'warn', '--ui-disable-news-fetch']
  if (options.dir !== null) {
    // Uses a write-ahead log, which makes a server with a file 2.6 times as fast. With
    // synchronous=1, a crash of the machine may lose the last moments, but never the file.
    args.push('--db-filename', join(options.dir, 'temporal.db'))
    args.push('--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=1')
  }
  return [...args, ...options.searchAttributes.flatMap((name) => ['--search-attribute', `${name}=Keyword`])]
}

async function whyNotReady(address: string): Promise<string | null> {
  // Checks the port first, because a gRPC connection that was refused waits a second before it
  // tries again.
  if (!(await isListening(Number(address.split(':')[1])))) return `nothing listened at ${address}`
  try {
    const connection = await Connection.connect({ address, connectTimeout: 2_000 })
    await connection
      .withDeadline(Date.now() + 2_000, () => connection.workflowService.describeNamespace({ namespace: 'default' }))
      .finally(() => connection.close())
    return null
  } catch (error) {
    return `${address}: ${(error as Error).message}`
  }
}

/**
 * One thing that Nightshift needs in Temporal. `failed`: a person has to act, as `detail` explains.
 */
export type SetupRow = {
  what: 'namespace' | 'search attributes' | 'schedule'
  state: 'there' | 'made' | 'put right' | 'would be made' | 'would be put right' | 'failed'
  detail: string
}

type SetupOptions = { settings: TemporalSettings; schedule: ScheduleOptions; isDryRun: boolean }

/**
 * Sets up what Nightshift needs in a namespace, and leaves correct parts unchanged, so that a
 * second run changes nothing. With `isDryRun` it only checks. Throws TemporalError if Temporal or
 * the namespace is absent.
 */
export async function setUpTemporal(options: SetupOptions): Promise<SetupRow[]> {
  const { settings } = options
  const connection = await explainTrouble(settings, () => Connection.connect(connectionOptions(settings)))
  try {
    const client = new Client({ connection, namespace: settings.namespace })
    return [
      { what: 'namespace', state: 'there', detail: `${settings.namespace} at ${settings.address}` },
      await onceNamespaceIsKnown(() => setUpSearchAttributes(connection, options)),
      await onceNamespaceIsKnown(() => setUpSchedule(client, options)),
    ]
  } catch (error) {
    throw error instanceof ForeignScheduleError ? foreignNamespace(settings, error) : error
  } finally {
    await connection.close()
  }
}

async function setUpSearchAttributes(connection: Connection, options: SetupOptions): Promise<SetupRow> {
  const what = 'search attributes'
  const { namespace } = options.settings
  const { missing, ofOtherType } = await searchAttributeFaults(connection, namespace)
  if (ofOtherType.length > 0) {
    return {
      what,
      state: 'failed',
      detail: `${ofOtherType.join(', ')} not of the type Keyword, so no investigation could start. Remove them with "temporal operator search-attribute remove", then run this again.`,
    }
  }
  if (missing.length === 0) return { what, state: 'there', detail: 'all of type Keyword' }
  if (options.isDryRun) return { what, state: 'would be made', detail: missing.join(', ') }
  try {
    await ensureSearchAttributes(connection, namespace)
    return { what, state: 'made', detail: missing.join(', ') }
  } catch (error) {
    return { what, state: 'failed', detail: error instanceof Error ? error.message : String(error) }
  }
}

async function setUpSchedule(client: Client, { schedule, isDryRun }: SetupOptions): Promise<SetupRow> {
  const what = 'schedule'
  const detail = `${queueScheduleId}, every ${schedule.intervalSeconds} s`
  const fault = await (isDryRun ? scheduleFault : keepSchedule)(client, schedule)
  if (fault === null) return { what, state: 'there', detail }
  const isMade = fault === 'deleted'
  if (isDryRun) return { what, state: isMade ? 'would be made' : 'would be put right', detail }
  return { what, state: isMade ? 'made' : 'put right', detail }
}
