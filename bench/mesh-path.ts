import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createCoreClient } from '../clients/core.ts'
import { connect, type Db } from '../db/connect.ts'
import { claimIncident } from '../db/incidents.ts'
import { syncInventory } from '../db/inventory.ts'
import { ingestAlert } from '../db/take-body.ts'
import { createToken, ensureOperator } from '../db/tokens.ts'
import type { Alert } from '../domain/alert.ts'
import type { Tool, ToolContext } from '../domain/tool.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { ensureMeshKeys } from '../start/enrol-lab.ts'
import { freePort } from '../start/port.ts'
import { startPostgres } from '../start/postgres.ts'
import { announced } from '../test/api/announced.ts'
import { scriptedPlatform } from '../test/api/scripted-platform.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { tools } from '../tools/registry.ts'
import { startApi } from './api-process.ts'

const entry = fileURLToPath(new URL('../cli/main.ts', import.meta.url))

/** The agent as a separate process over a state directory that holds its manifest and root key, once it listens. */
export async function startAgent(state: string, listen: string): Promise<{ child: ChildProcess; url: string }> {
  const args = ['mesh', 'agent', '--state', state, '--listen', listen]
  const child = spawn(process.execPath, [entry, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stderr.on('data', (chunk) => {
      said += chunk
      const found = /Listening on (\S+):/.exec(said)?.[1]
      if (found) resolve(found)
    })
    child.once('exit', (code) => reject(new Error(`the agent ended with ${code}: ${said}`)))
  })
  return { child, url }
}

const on = 'node-osl-1'

/**
 * How long reads of a small file take (ms) from the tool registry on: core API, PostgreSQL (which need not keep what it wrote), signature,
 * HTTP, door, guard and journal, and back. API and agent are separate processes. That the run announces each before is not in it.
 */
export async function wholePath(calls: number): Promise<number[]> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  await migrateToLatest(postgres.url)
  const db = connect(postgres.url)
  const api = await startApi({ databaseUrl: postgres.url, dir, environment: { ...ensureMeshKeys(dir) } })
  const stop = await enrolledAgent(db, api.url, dir).catch((error: unknown) => error as Error)
  try {
    if (stop instanceof Error) throw stop
    const apiKey = await createToken(db, { name: 'worker', role: 'agent', operatorId: null })
    const core = createCoreClient({ baseUrl: api.url, apiKey })
    const tool = tools.get('fs_read') as Tool
    const incidentId = await claimed(db)
    const identity = { on, path: join(dir, 'files', 'small') }
    const took: number[] = []
    for (let n = 0; n < calls + warmUp; n += 1) {
      const stepKey = await announced(db, incidentId, tool.name, identity, null, 'read')
      const context: ToolContext = { core, incidentId, stepKey, ifMatch: null }
      const startedAt = performance.now()
      const answer = await tool.run(identity, context)
      if (n >= warmUp) took.push(performance.now() - startedAt)
      if (!answer.ok) throw new Error(`fs_read: ${answer.problem.code} ${answer.problem.detail}`)
    }
    return took
  } finally {
    if (!(stop instanceof Error)) stop()
    await api.stop()
    await db.destroy()
    await postgres.stop()
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

const warmUp = 50

/** A device as an admin and a person on it make it: known, enrolled, its agent running. Answers what ends that. */
async function enrolledAgent(db: Db, apiUrl: string, dir: string): Promise<() => void> {
  await syncInventory(db, scriptedPlatform().inventoryState)
  const operatorId = await ensureOperator(db, 'admin', 'admin')
  const token = await createToken(db, { name: 'admin', role: 'admin', operatorId })
  const [state, files] = [join(dir, 'state'), join(dir, 'files')]
  for (const each of [state, files]) mkdirSync(each)
  writeFileSync(join(files, 'small'), 'some lines\n'.repeat(20))
  const address = `127.0.0.1:${await freePort()}`
  const terms = { capabilities: [], roots: [{ path: files, writable: false }] }
  await ask(`${apiUrl}/api/v1/devices/${on}`, 'PUT', token, { url: `http://${address}`, mode: 'user', terms })
  const minted = await ask(`${apiUrl}/api/v1/devices/${on}/enrolment`, 'POST', token, {})
  const given = await ask(`${apiUrl}/mesh/enrolments`, 'POST', token, { token: minted.token })
  writeFileSync(join(state, 'manifest.json'), JSON.stringify(given.manifest))
  writeFileSync(join(state, 'root-key'), String(given.root_public_key))
  const { child } = await startAgent(state, address)
  return () => child.kill('SIGKILL')
}

export async function claimed(db: Db): Promise<string> {
  const alert: Alert = {
    source: 'alertmanager',
    fingerprint: 'bench',
    status: 'firing',
    name: 'bench',
    title: 'bench',
    severity: 'warning',
    severitySource: 'alert',
    severityWord: 'warning',
    labels: {},
    annotations: {},
    startsAt: new Date().toISOString(),
    endsAt: null,
    groupKey: null,
    truncatedAlerts: 0,
    cappedFields: [],
    links: { generator: null, external: null, runbook: null },
  }
  const { incidentId } = await ingestAlert(db, alert)
  if (!incidentId) throw new Error('no incident')
  const workflowId = `investigate:${incidentId}:1`
  await db.transaction().execute((trx) =>
    claimIncident(trx, {
      incidentId,
      attempt: 1,
      workflowId,
      role: 'leader',
      groupId: 'grp_bench',
      timeBudgetSeconds: 86_400,
    }),
  )
  return incidentId
}

async function ask(url: string, method: string, token: string, body: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(url, { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${method} ${new URL(url).pathname}: ${response.status} ${await response.text()}`)
  return (await response.json()) as Record<string, unknown>
}
